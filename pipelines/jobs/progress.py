"""Counts the progress of a Beam job on this machine, across its threads and processes.

Beam reports metrics only at the end of a local run. So every thread of a worker counts
into a small memory-mapped file of its own, in a folder that an environment variable
names, and the process that waits for the job sums the files. On a remote worker the
variable is not set, and counting does nothing.
"""

import contextlib
import mmap
import os
import struct
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from precis.pipelines.corpus.task import Position

FOLDER_VARIABLE = "PRECIS_PROGRESS_DIR"
# `folder` and `counts`: the folder of the job and this thread's file in it.
_thread = threading.local()


class Counts(NamedTuple):
    """What one thread has done, or all of them.

    Attributes:
      documents: finished by this run.
      size: how much of the job they are, in the job's unit, such as bytes on disk.
      earlier_documents, earlier_size: the same of tasks that an earlier run finished.
      started: when the first task began, in seconds of a clock that all processes of
          this machine share; 0 where none has.
      ended: when the last document was finished.
    """

    documents: int = 0
    size: int = 0
    earlier_documents: int = 0
    earlier_size: int = 0
    started: float = 0.0
    ended: float = 0.0


_LAYOUT = struct.Struct("<qqqqdd")  # the fields of `Counts`


@contextlib.contextmanager
def counting_folder() -> Iterator[str]:
    """A folder that the workers of this process and of its children count into."""
    with tempfile.TemporaryDirectory(prefix="precis-progress-") as folder:
        folder_before = os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield folder
        finally:
            if folder_before is None:
                del os.environ[FOLDER_VARIABLE]
            else:
                os.environ[FOLDER_VARIABLE] = folder_before


def count(documents: int, size: int) -> None:
    """Adds what this thread has just done."""
    _add(documents, size, 0, 0, now=time.monotonic())


def count_earlier_task(documents: int, size: int) -> None:
    """Adds a task that an earlier run finished."""
    _add(0, 0, documents, size, now=0.0)


def _add(
    documents: int, size: int, earlier_documents: int, earlier_size: int, *, now: float
) -> None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    if getattr(_thread, "folder", None) != folder:
        try:
            _thread.counts = _open_counts(folder)
        except OSError:  # A job does not fail because its progress cannot be shown.
            return
        _thread.folder = folder
    before = Counts(*_LAYOUT.unpack_from(_thread.counts))
    _LAYOUT.pack_into(
        _thread.counts,
        0,
        before.documents + documents,
        before.size + size,
        before.earlier_documents + earlier_documents,
        before.earlier_size + earlier_size,
        before.started or now,
        now or before.ended,
    )


def _open_counts(folder: str) -> mmap.mmap:
    path = os.path.join(folder, uuid.uuid4().hex)
    with open(path, "wb") as file:
        file.write(bytes(_LAYOUT.size))
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), _LAYOUT.size)


def total(folder: str) -> Counts:
    """The counts of all workers."""
    parts = [Counts()]
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read(_LAYOUT.size)
        if len(content) == _LAYOUT.size:  # A file that is just being made is shorter.
            parts.append(Counts(*_LAYOUT.unpack(content)))
    return Counts(
        sum(part.documents for part in parts),
        sum(part.size for part in parts),
        sum(part.earlier_documents for part in parts),
        sum(part.earlier_size for part in parts),
        min((part.started for part in parts if part.started), default=0.0),
        max(part.ended for part in parts),
    )


class TaskProgress:
    """Counts what is done of one task.

    Whoever finishes documents says where their reader was after the last of them.
    Documents that were only read do not count, so a job that reads ahead moves with its
    results. What is counted never exceeds the task's size, and adds up to it.
    """

    def __init__(self, size: int) -> None:
        """Starts the clock.

        Args:
          size: of the task, in the job's unit.
        """
        self._size = size
        self._done = Position()
        self._counted = (0, 0)  # documents and size
        count(0, 0)

    def advance_to(self, position: Position, part: float = 1.0) -> None:
        """Counts the documents up to a position.

        Args:
          position: of the reader, after the last of them.
          part: how much is done of the work that lies between the last position that
              was reached and this one.
        """
        before = self._done
        records = before.records + part * (position.records - before.records)
        share = before.share + part * (position.share - before.share)
        self._count_up_to(int(records), round(self._size * min(share, 1.0)))
        if part == 1.0:
            self._done = position

    def finish(self) -> None:
        """Counts what is left of the size: the task is done."""
        self._count_up_to(self._done.records, self._size)

    def _count_up_to(self, documents: int, size: int) -> None:
        documents_before, size_before = self._counted
        count(documents - documents_before, size - size_before)
        self._counted = (documents, size)
