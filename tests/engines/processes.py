"""Processes of a test that end with it, whatever happens to it."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def start(command: Sequence[str], log: Path, **arguments: Any) -> subprocess.Popen:
    """Starts a process that the system kills when this one dies.

    Its output goes to a file.
    """
    with open(log, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
            **arguments,
        )


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def stop(process: subprocess.Popen) -> None:
    """Ends a process: it is asked, then killed."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_open(port: int) -> bool:
    """Whether something listens on a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("localhost", port)) == 0


def kill(pid: int) -> None:
    """Kills a process without a word."""
    os.kill(pid, signal.SIGKILL)
