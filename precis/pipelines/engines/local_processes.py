"""Work that several processes of this machine share.

    for rows in run_in_processes(load, tasks, 4):

A process that is done takes the next element. The processes are forked from one that
has imported what they need and computed nothing. Each of them computes on one thread.
"""

import functools
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from precis.model.errors import JobError
from precis.model.inference.processes import Processes, Work, fork_context

# The module that the process imports from which the others are forked.
WORKER_IMPORTS = "precis.pipelines.engines.forked_imports"

# One thread in each process, whichever library computes.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}
# The loggers whose levels the processes take over; "" is the root.
_LOGGERS = ("", "gcsfs")


def run_in_processes(
    load: Callable[[], Work], elements: Sequence[Any], count: int
) -> Iterator[Any]:
    """What a function returns for each element, in the order in which they are done.

    Args:
      load: gives the function, in each process once.
      elements: begun in their order; where they name files, in `paths`.
      count: how many processes there are at most.

    Raises:
      PrecisError: as the function raised it; the other processes are ended.
      JobError: a process died twice with the same element.
    """
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    processes = Processes(
        min(count, len(elements)),
        functools.partial(_load, load, levels),
        environment={**os.environ, **_ONE_THREAD},
        context=fork_context(WORKER_IMPORTS),
    )
    with ThreadPoolExecutor(count) as threads:
        try:
            calls = [threads.submit(_call, processes, each) for each in elements]
            for call in as_completed(calls):
                yield call.result()
        finally:
            processes.close()
            threads.shutdown(cancel_futures=True)


def _call(processes: Processes, element: Any) -> Any:
    """What comes of an element.

    Raises:
      JobError: processes died with it.
    """
    try:
        return processes.call(element)
    except BrokenProcessPool as error:
        paths = ", ".join(getattr(element, "paths", ()))
        raise JobError(
            f"a worker process died twice with the same task ({paths or element}); "
            "most often memory runs out, and --workers 1 needs the least of it; the "
            "same command goes on where this one ended"
        ) from error


def _load(load: Callable[[], Work], levels: Mapping[str, int]) -> Work:
    """Loads the function in one of the processes, with the log levels of this one."""
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    return load()
