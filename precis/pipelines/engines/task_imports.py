"""The imports of the process that worker processes are forked from."""

import logging

# Beam warns about missing packages of Google Cloud. Worker processes inherit the level
# of the process that started them.
logging.getLogger().setLevel(logging.ERROR)

from precis.pipelines.run.job_progress import load_arrow, load_beam  # noqa: E402

load_arrow()
load_beam()

import precis.pipelines.engines.tasks  # noqa: E402, F401
