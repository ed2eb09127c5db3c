"""What the process imports that worker processes are forked from."""

import logging

# Beam warns of packages of Google Cloud that are not installed. Each worker process
# takes its level from the process that started it.
logging.getLogger().setLevel(logging.ERROR)

import precis.pipelines.engines.tasks  # noqa: E402, F401
