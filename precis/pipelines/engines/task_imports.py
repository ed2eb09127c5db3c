"""The imports of the process that worker processes are forked from, and the detector of
languages, which nearly every large corpus needs for some of its texts.
"""

import contextlib
import logging

# Beam warns about missing packages of Google Cloud. Worker processes inherit the level
# of the process that started them.
logging.getLogger().setLevel(logging.ERROR)

from precis.pipelines.run.job_progress import load_arrow, load_beam  # noqa: E402

load_arrow()
load_beam()

import precis.pipelines.engines.tasks  # noqa: E402, F401
from precis.model.text.language import load_detector  # noqa: E402

with contextlib.suppress(Exception):  # A worker that needs it raises it again.
    load_detector()
