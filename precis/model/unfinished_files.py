"""The files that this process is writing, so that none stays when it is ended."""

import threading
from typing import IO

_names: set[str] = set()
_may_begin = threading.Lock()


def begin_file(name: str) -> IO[bytes]:
    """Opens a file that has its final name only when it is complete."""
    with _may_begin:
        _names.add(name)
        return open(name, "wb")


def end_file(name: str) -> None:
    """Notes that a file is complete, or removed."""
    _names.discard(name)


def end_all_files() -> list[str]:
    """Lets no file be begun any more, and gives the names of those that were."""
    _may_begin.acquire()  # For ever: the process ends.
    return sorted(_names)
