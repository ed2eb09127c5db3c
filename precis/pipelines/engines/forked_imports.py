"""What the process imports that workers are forked from.

Beam logs a warning at its import about packages of Google Cloud that are not installed,
so the level of the log comes first. Each worker sets the level of its job afterwards.
"""

import logging

logging.basicConfig(level=logging.ERROR)

import precis.pipelines.engines.tasks  # noqa: E402, F401
