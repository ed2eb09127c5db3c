"""A fresh process of this Python, so that what ends it ends nothing else."""

import signal
import subprocess
import sys
from typing import NamedTuple

_LAST_LINES = 3


class Ended(NamedTuple):
    """A process that has ended.

    Attributes:
      stdout: what it wrote.
      reason: why it failed, in one line; "" if it did not.
    """

    stdout: str
    reason: str


def run_module(module: str, *arguments: str, seconds: float) -> Ended:
    """Runs `python -m module` and waits for it."""
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended("", f"it did not end within {seconds:g} seconds")
    if done.returncode == 0:
        return Ended(done.stdout, "")
    if done.returncode < 0:
        number = -done.returncode
        name = signal.Signals(number).name
        likely = ", most often because memory ran out" * (number == signal.SIGKILL)
        return Ended(done.stdout, f"it was ended by {name}{likely}")
    lines = done.stderr.strip().splitlines()[-_LAST_LINES:]
    return Ended(done.stdout, " ".join(" ".join(lines).split()))
