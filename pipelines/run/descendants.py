"""The processes below this one: which there are, what they write, and their end."""

import contextlib
import os
import signal

# The end of the name of a file that is being written: `precis.model.files.ASIDE`, which
# takes too long to import before signals are handled.
_ASIDE = ".aside"


def kill_descendants() -> list[str]:
    """Kills all processes below this one.

    They are stopped before they are killed, so that none can start another or be lost
    with its parent.

    Returns:
      The files that they were writing.
    """
    stopped: list[int] = []
    while new := [pid for pid in descendants() if pid not in stopped]:
        for pid in new:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        stopped += new
    asides = [path for pid in stopped for path in open_asides(pid)]
    for pid in stopped:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return asides


def open_asides(pid: int) -> list[str]:
    """The unfinished files that a process has open; none where there is no /proc."""
    paths = []
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                paths.append(os.readlink(f"{folder}/{name}"))
    return [path for path in paths if path.endswith(_ASIDE)]


def descendants(root: int = 0) -> list[int]:
    """The processes below one, parents first; none where there is no /proc.

    Args:
      root: the process; 0 is this one.
    """
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (parent := _parent(name)):
                children.setdefault(parent, []).append(int(name))
    found = [root or os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def _parent(pid: str) -> int:
    """The parent of a process; 0 where it has ended or is to end by itself."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may have spaces and parentheses in it.
            state, parent, *_ = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read()
    except OSError:
        return 0
    # The tracker of multiprocessing removes what the others leave in shared memory, and
    # ends when the last of them has.
    is_tracker = b"multiprocessing.resource_tracker" in command
    return 0 if state in b"ZX" or is_tracker else int(parent)
