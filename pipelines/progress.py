"""Live progress of a Beam job on this machine, across its threads and processes.

Beam reports metrics only at the end of a local run. So every thread of a worker counts
into a small memory-mapped file of its own, in a folder that an environment variable
names, and the process that waits for the job sums the files. On a remote worker the
variable is not set, and counting does nothing.
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
_LAYOUT = "{desc}: {percentage:3.0f}%|{bar:30}| {elapsed}<{remaining}, {postfix}"
# `folder` and `counts`: the folder of the job and this thread's file in it.
_thread = threading.local()


def advance(documents: int, size_bytes: int) -> None:
    """Adds to the counts of this thread."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    if getattr(_thread, "folder", None) != folder:
        _thread.counts = _open_counts(folder)
        _thread.folder = folder
    documents_done, bytes_done = _COUNTS.unpack_from(_thread.counts)
    _COUNTS.pack_into(
        _thread.counts, 0, documents_done + documents, bytes_done + size_bytes
    )


def _open_counts(folder: str) -> mmap.mmap:
    path = os.path.join(folder, uuid.uuid4().hex)
    with open(path, "wb") as file:
        file.write(bytes(_COUNTS.size))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), _COUNTS.size)


class TaskProgress:
    """Counts the documents of one task.

    The bytes that are counted add up to the size of the task, though a text may be
    longer or shorter than its bytes in the file.
    """

    def __init__(self, size_bytes: int) -> None:
        self._bytes_left = size_bytes

    def advance(self, documents: int, size_bytes: int) -> None:
        """Counts some documents of about that many bytes."""
        step = min(size_bytes, self._bytes_left)
        self._bytes_left -= step
        advance(documents, step)

    def finish(self) -> None:
        """Counts the bytes that are left: the task is done."""
        advance(0, self._bytes_left)
        self._bytes_left = 0


@contextlib.contextmanager
def show_progress(label: str, size: int) -> Iterator[None]:
    """Shows a bar of the progress of all workers while the block runs.

    Args:
      label: the text before the bar.
      size: the size of the whole job, in the unit that workers count, such as bytes.
    """
    with tempfile.TemporaryDirectory(prefix="precis-progress-") as folder:
        folder_before = os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = folder
        done = threading.Event()
        thread = threading.Thread(
            target=_show_bar, args=(label, size, folder, done), daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            if folder_before is None:
                del os.environ[FOLDER_VARIABLE]
            else:
                os.environ[FOLDER_VARIABLE] = folder_before


def _show_bar(label: str, size: int, folder: str, done: threading.Event) -> None:
    started = time.monotonic()
    interval = 0.5 if sys.stderr.isatty() else 10
    with tqdm(total=size, desc=label, bar_format=_LAYOUT, mininterval=interval) as bar:
        is_last = False
        while not is_last:
            is_last = done.wait(_REFRESH_SECONDS)
            documents, bytes_done = total(folder)
            rate = documents / (time.monotonic() - started)
            bar.set_postfix_str(
                f"{documents:,} documents, {rate:,.0f}/s", refresh=False
            )
            bar.update(bytes_done - bar.n)


def total(folder: str) -> tuple[int, int]:
    """Documents and bytes of all workers."""
    documents = 0
    size_bytes = 0
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read(_COUNTS.size)
        if len(content) == _COUNTS.size:  # A file that is just being made is shorter.
            counts = _COUNTS.unpack(content)
            documents += counts[0]
            size_bytes += counts[1]
    return documents, size_bytes
