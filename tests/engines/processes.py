"""Processes of a test that end with it, whatever happens to it, and commands of precis
in processes of their own.
"""

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


_LIMIT_SECONDS = 1200
# When all jobs begin, for results that are equal byte by byte.
BEGINNING = "1700000000"


def start_precis(
    command: Sequence[str], output: Path, flags: Sequence[str] = ()
) -> subprocess.Popen:
    """Starts a command whose output comes through a pipe."""
    line = [sys.executable, "-m", "precis.pipelines.command_line.cli", *command]
    return subprocess.Popen(
        [*line, "--output", str(output), *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": BEGINNING},
    )


def finish(process: subprocess.Popen, exit_code: int = 0) -> str:
    """What a command that ends with an exit code has printed."""
    try:
        printed, _ = process.communicate(timeout=_LIMIT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == exit_code, printed
    return str(printed)
