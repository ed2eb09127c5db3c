"""Live progress of a Beam job on this machine, across its threads and processes.

Beam reports metrics only at the end of a local run. So every worker counts into a small
memory-mapped file of its own, in a folder that an environment variable names, and the
process that waits sums the files. On a remote worker the variable is not set and
counting does nothing.
"""

import contextlib
import mmap
import os
import struct
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator

from tqdm import tqdm

FOLDER_VARIABLE = "PRECIS_PROGRESS_DIR"
_COUNTS = struct.Struct("<qq")  # documents done, bytes of the corpus done
_REFRESH_SECONDS = 0.5
_own = threading.local()


def advance(documents: int, size_bytes: int) -> None:
    """Adds to this worker's counters."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    if getattr(_own, "folder", None) != folder:
        _own.folder, _own.counts = folder, _open_counters(folder)
    done, size = _COUNTS.unpack_from(_own.counts)
    _COUNTS.pack_into(_own.counts, 0, done + documents, size + size_bytes)


def _open_counters(folder: str) -> mmap.mmap:
    path = os.path.join(folder, uuid.uuid4().hex)
    with open(path, "wb") as file:
        file.write(bytes(_COUNTS.size))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), _COUNTS.size)


class TaskProgress:
    """Counts the documents of one task, so that its bytes add up to the task's size
    whatever the text's encoding was.
    """

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes

    def advance(self, documents: int, size_bytes: int) -> None:
        """Some documents of about that many bytes are done."""
        step = min(size_bytes, self._left)
        self._left -= step
        advance(documents, step)

    def finish(self) -> None:
        """The task is done, however much was counted."""
        advance(0, self._left)
        self._left = 0


@contextlib.contextmanager
def shown(label: str, size: int) -> Iterator[None]:
    """Shows a bar of all workers' progress while the block runs; `size` is the whole
    job in the unit that workers count, such as bytes.
    """
    with tempfile.TemporaryDirectory(prefix="precis-progress-") as folder:
        before = os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = folder
        done = threading.Event()
        thread = threading.Thread(
            target=_show, args=(label, size, folder, done), daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            if before is None:
                del os.environ[FOLDER_VARIABLE]
            else:
                os.environ[FOLDER_VARIABLE] = before


def _show(label: str, size: int, folder: str, done: threading.Event) -> None:
    started = time.monotonic()
    layout = "{desc}: {percentage:3.0f}%|{bar:30}| {elapsed}<{remaining}, {postfix}"
    with tqdm(
        total=size,
        desc=label,
        bar_format=layout,
        mininterval=0.5 if sys.stderr.isatty() else 10,
    ) as bar:
        finished = False
        while not finished:
            finished = done.wait(_REFRESH_SECONDS)
            documents, size = total(folder)
            bar.set_postfix_str(
                f"{documents:,} documents, {documents / (time.monotonic() - started):,.0f}/s",
                refresh=False,
            )
            bar.update(size - bar.n)


def total(folder: str) -> tuple[int, int]:
    """Documents and bytes of all workers."""
    sums = [0, 0]
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read(_COUNTS.size)
        if len(content) == _COUNTS.size:  # A file that is just being made is shorter.
            sums = [
                known + new
                for known, new in zip(sums, _COUNTS.unpack(content), strict=True)
            ]
    return sums[0], sums[1]
