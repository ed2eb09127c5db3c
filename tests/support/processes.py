"""The processes of this machine, and its free ports."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


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
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    fields = _status(pid)
    return bool(fields) and fields[0] != "Z"


def descendants(pid: int, program: str) -> list[int]:
    """The processes that a process started, also through others, whose command line
    holds a word.
    """
    children: dict[int, list[int]] = {}
    for each in _all():
        if fields := _status(each):
            children.setdefault(int(fields[1]), []).append(each)
    tree = [pid]
    for parent in tree:
        tree += children.get(parent, [])
    return [each for each in sorted(tree[1:]) if program in command_line(each)]


def processes_of_session(session: int) -> list[int]:
    """The processes that run in a session."""
    found = []
    for pid in _all():
        fields = _status(pid)
        if fields and fields[0] != "Z" and fields[3] == str(session):
            found.append(pid)
    return found


def processes_with(variable: str) -> list[int]:
    """The processes whose environment holds a variable, as `NAME=value`."""
    found = []
    for pid in _all():
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if variable.encode() in variables:
                found.append(pid)
    return found


def _all() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _status(pid: int) -> list[str]:
    """The fields of a process behind its name: state, parent, group, session."""
    try:
        # The name in parentheses may have spaces and parentheses in it.
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
