"""The processes of this machine, its free ports, and waiting for what they do."""

import contextlib
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil


def free_port() -> int:
    """A port on which nothing listens.

    It lies below those that Linux gives to whoever asks for any, so that no other
    process gets it by chance before it is used.
    """
    while True:
        port = random.SystemRandom().randrange(20000, 32768)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses every connection.

    It is held for the block: another process that got it would answer, or keep a
    client waiting.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def command_line(pid: int) -> str:
    """The words of a process; empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        return " ".join(psutil.Process(pid).cmdline())
    return ""


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def descendants(pid: int, program: str) -> list[int]:
    """The processes that a process started, also through others, whose command line
    holds a word.
    """
    with contextlib.suppress(psutil.Error):
        started = psutil.Process(pid).children(recursive=True)
        return sorted(each.pid for each in started if program in command_line(each.pid))
    return []


def processes_of_session(session: int) -> list[int]:
    """The processes that run in a session."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session and is_running(pid):
                found.append(pid)
    return found


def processes_with(variable: str) -> list[int]:
    """The processes whose environment holds a variable, as `NAME=value`."""
    name, _, value = variable.partition("=")
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(name) == value:
                found.append(process.pid)
    return found


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
