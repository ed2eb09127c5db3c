"""Starts the fork server of worker processes while the command imports Beam, which this
module does not import.
"""

import glob
import itertools
import os

from precis.model import files
from precis.model.processes import start_fork_server, usable_cores
from precis.pipelines.corpus.options import parse_addresses

# The module that the fork server of worker processes imports.
TASK_IMPORTS = "precis.pipelines.engines.task_imports"
# A smaller corpus is done before further processes can start.
LEAST_BYTES = 8 << 20
_MOST_FILES = 1000  # whose sizes are added, of perhaps millions


def start_early(corpus: str, workers: int) -> None:
    """Starts the fork server of worker processes if the job will probably use it.

    It imports on another core what this process imports too, so a large job begins half
    a second earlier. A wrong guess costs only that.

    Args:
      corpus: the value of --corpus.
      workers: the value of --workers; 0 means one for each core if the corpus is large.
    """
    if (workers or usable_cores()) > 1 and (workers or _is_large(corpus)):
        start_fork_server(TASK_IMPORTS)


def _is_large(corpus: str) -> bool:
    """Whether the local files of a corpus are large enough for several processes."""
    patterns = [
        pattern
        for _, where in parse_addresses(corpus)
        if files.is_local(where)
        for pattern in (where, os.path.join(where, "*"))
    ]
    found = itertools.chain.from_iterable(map(glob.iglob, patterns))
    names = filter(os.path.isfile, itertools.islice(found, _MOST_FILES))
    return sum(map(os.path.getsize, names)) >= LEAST_BYTES
