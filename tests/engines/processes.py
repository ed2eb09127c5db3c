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


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether something listens on a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("localhost", port)) == 0


def descendants(pid: int, program: str) -> list[int]:
    """The processes that a process started, also through others, whose command line
    holds a word.
    """
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text()
            except OSError:  # It has ended.
                continue
            parents[int(folder.name)] = int(status.rpartition(")")[2].split()[1])
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - (
        below
    ):
        below |= more
    return [each for each in sorted(below - {pid}) if program in _command(each)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def kill(pid: int) -> None:
    """Kills a process without a word."""
    os.kill(pid, signal.SIGKILL)
