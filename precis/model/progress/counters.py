"""Counts the work of a job across the threads and processes of this machine.

Every thread of a worker counts into a small memory-mapped file, in a folder that an
environment variable names. The process that shows the progress sums the files. The name
of a file begins with the step of the job that its thread has entered:

    precis-progress-8f3a/scan-5e1c.counts

If the variable is not set, as on a remote worker, counting does nothing.
"""

import contextlib
import functools
import mmap
import os
import struct
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER_VARIABLE = "PRECIS_PROGRESS_DIR"
# `step` is the step that the thread works on.
_thread = threading.local()


class Counts(NamedTuple):
    """The work of one thread, or of all threads. Times are in seconds of a clock that
    all processes of this machine share.

    Attributes:
      documents: documents finished in this run, or other units that a stage counts,
          such as the steps of a training.
      size: the size of the finished work, in the job's unit, such as bytes on disk;
          includes earlier runs.
      tokens: tokens that were encoded, read or written for the documents.
      dead_letters: records that became dead letters, in this and earlier runs.
      flagged: rows whose summary has a quality flag, in this and earlier runs.
      earlier_documents: documents finished before the clock started, such as in an
          earlier run. They do not count for the rate.
      first_documents: the documents counted first; their time includes compiling.
      started: when the first task began; 0 if none has begun.
      first: when the first documents were finished; 0 if none are.
      ended: when the last document was finished.
    """

    documents: int = 0
    size: int = 0
    tokens: int = 0
    dead_letters: int = 0
    flagged: int = 0
    earlier_documents: int = 0
    first_documents: int = 0
    started: float = 0.0
    first: float = 0.0
    ended: float = 0.0


_LAYOUT = struct.Struct("<7q3d")  # the fields of `Counts`


@contextlib.contextmanager
def counting_folder() -> Iterator[str]:
    """Yields a folder into which workers of this process and its children count."""
    with tempfile.TemporaryDirectory(prefix="precis-progress-") as folder:
        folder_before = os.environ.get(FOLDER_VARIABLE)
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield folder
        finally:
            os.environ.pop(FOLDER_VARIABLE, None)  # or another thread did
            if folder_before is not None:
                os.environ[FOLDER_VARIABLE] = folder_before


def enter_step(name: str) -> None:
    """Sets the step of the job that this thread works on."""
    _thread.step = name


def count(**done: int) -> None:
    """Adds work that this thread has just done; the first call starts the clock.

    Args:
      **done: `documents`, `size`, `tokens`, `dead_letters` and `flagged` of `Counts`.
    """
    now = time.monotonic()
    _add(Counts(**done)._replace(started=now, ended=now))


def count_earlier(**done: int) -> None:
    """Adds work that was done before the clock starts, such as in an earlier run.

    Args:
      **done: `earlier_documents`, `size`, `dead_letters` and `flagged` of `Counts`.
    """
    _add(Counts(**done))


def _add(counts: Counts) -> None:
    folder = os.environ.get(FOLDER_VARIABLE)
    # A job does not fail because its progress cannot be shown.
    with contextlib.suppress(OSError):
        if folder:
            step, thread = getattr(_thread, "step", ""), threading.get_ident()
            file = _open_file(folder, step, os.getpid(), thread)
            before = Counts(*_LAYOUT.unpack_from(file))
            if (documents := counts.documents) and not before.first:
                counts = counts._replace(first_documents=documents, first=counts.ended)
            _LAYOUT.pack_into(file, 0, *sum_counts([before, counts]))


@functools.lru_cache(maxsize=256)
def _open_file(folder: str, step: str, process: int, thread: int) -> mmap.mmap:
    """The file of a thread for the step that it works on."""
    with open(os.path.join(folder, f"{step}-{uuid.uuid4().hex}.counts"), "w+b") as file:
        file.truncate(_LAYOUT.size)
        return mmap.mmap(file.fileno(), _LAYOUT.size)


def totals(folder: str) -> dict[str, Counts]:
    """The counts of all workers, by step."""
    sums: dict[str, Counts] = {}
    for path in Path(folder).glob("*.counts"):
        content, step = path.read_bytes(), path.name.rpartition("-")[0]
        if len(content) == _LAYOUT.size:  # shorter while it is being made
            counts = Counts(*_LAYOUT.unpack(content))
            sums[step] = sum_counts([sums.get(step, Counts()), counts])
    return sums


def sum_counts(parts: Iterable[Counts]) -> Counts:
    """Sums the counts of several workers or steps."""
    *counts, started, first, ended = zip(Counts(), *parts, strict=True)
    begun, done = (min(filter(None, times), default=0.0) for times in (started, first))
    sums = Counts(*map(sum, counts))
    return sums._replace(started=begun, first=done, ended=max(ended))
