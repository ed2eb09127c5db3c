"""Waiting for what another process does."""

import subprocess
import time
from collections.abc import Callable
from typing import Any


def wait_until(
    condition: Callable[[], Any],
    what: str = "",
    *,
    process: subprocess.Popen | None = None,
    seconds: float = 600.0,
) -> Any:
    """The value of a condition, as soon as it is true.

    Args:
      condition: is asked again and again.
      what: is waited for, in the message of the failure.
      process: must run meanwhile; what it printed is the message of the failure.
      seconds: end the wait for what never comes.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s {what}".strip()
        time.sleep(0.005)
    return value
