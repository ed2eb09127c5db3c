"""`csv:GLOB`: comma-separated files with a header row, plain or gzip; large plain files
are cut where a row begins.
"""

import csv
import threading
from collections.abc import Iterator
from typing import NamedTuple

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import (
    MAX_LINE_BYTES,
    MAX_RAW_BYTES,
    Line,
    is_gzip,
    read_lines,
)
from precis.pipelines.corpus.listing import SourceFile, cut_range, list_files
from precis.pipelines.corpus.records import check_fields, to_document
from precis.pipelines.corpus.task import Fields, Task, Unreadable

# The csv module's limit on a field belongs to the whole process; whoever holds the lock
# has raised it.
_FIELD_LIMIT_LOCK = threading.Lock()


class Row(NamedTuple):
    """A row of a CSV file.

    Attributes:
      start: position of its first byte in the (uncompressed) file.
      cells: its cells, each byte a character (latin-1), so that broken UTF-8 in one
          cell harms no other.
      raw: its bytes, line breaks included.
      problem, detail: why it is no row; "" where it is one.
    """

    start: int
    cells: list[str]
    raw: bytes
    problem: str = ""
    detail: str = ""


def list_tasks(
    pattern: str, *, fields: Fields, needed: tuple[str, ...], task_bytes: int
) -> list[Task]:
    """Whole files, and ranges of rows of plain files larger than `task_bytes`; those
    are read through once to find where rows begin.

    Raises:
      UsageError: no file matches, or the first header lacks a field of `needed`.
    """
    found = [file for file in list_files(pattern) if file.size_bytes]
    if found:
        check_fields(_header(found[0].path), needed=needed, path=found[0].path)
    tasks = []
    for file in found:
        starts = (
            [0]
            if is_gzip(file.path) or file.size_bytes <= task_bytes
            else _row_starts(file, task_bytes)
        )
        for start, stop in zip(starts, [*starts[1:], -1], strict=True):
            size = (file.size_bytes if stop == -1 else stop) - start
            tasks.append(
                Task(
                    0,
                    "csv",
                    (file.path,),
                    start,
                    stop,
                    fields=fields,
                    version=file.version,
                    size_bytes=size,
                )
            )
    return tasks


def _row_starts(file: SourceFile, task_bytes: int) -> list[int]:
    """Where the tasks of a file begin: 0, and the first row at or after each multiple
    of the task's size.
    """
    starts = [0]
    wanted = cut_range(file.size_bytes, -(-file.size_bytes // task_bytes))[1:-1]
    for row in _rows(file.path):
        passed = False
        while wanted and row.start >= wanted[0]:
            wanted.pop(0)
            passed = True
        if passed:
            starts.append(row.start)
    return starts


def _header(path: str) -> list[str]:
    first = next((row for row in _rows(path) if row.problem or row.cells), None)
    problem = "it has no rows" if first is None else first.detail
    try:
        names = [_decode(cell) for cell in first.cells] if first else []
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason}"
    if problem:
        raise UsageError(
            f"{path} has no header row ({problem}); its first row must name the columns"
        )
    return names


def read(task: Task) -> Iterator[Document | Unreadable]:
    """The documents of a task. Blank lines are no rows."""
    (path,) = task.paths
    names = _header(path)
    header_waits = task.start == 0
    for row in _rows(path, task.start, task.stop):
        location = f"{path}:byte {row.start}"
        if row.problem:
            yield Unreadable(location, row.problem, row.detail, row.raw[:MAX_RAW_BYTES])
        elif row.cells and header_waits:
            header_waits = False
        elif row.cells:
            yield _to_document(row, names, task.fields, location=location)


def _to_document(
    row: Row, names: list[str], fields: Fields, *, location: str
) -> Document | Unreadable:
    raw = row.raw[:MAX_RAW_BYTES]
    if len(row.cells) != len(names):
        return Unreadable(
            location,
            "wrong_columns",
            f"the row has {len(row.cells)} columns, the header {len(names)}",
            raw,
        )
    try:
        record = {
            name: _decode(cell)
            for name, cell in zip(names, row.cells, strict=True)
            if name in fields
        }
    except UnicodeDecodeError as error:
        return Unreadable(
            location,
            "invalid_utf8",
            f"byte {error.start} of a cell: {error.reason}",
            raw,
        )
    return to_document(record, fields, location=location, raw=raw)


def _decode(cell: str) -> str:
    return cell.encode("latin-1").decode()


class _Feed:
    """Hands lines to the csv module and remembers those of the row at hand, which may
    span several.
    """

    def __init__(self, lines: Iterator[Line]) -> None:
        self.lines = lines
        self.taken: list[Line] = []
        self.has_ended = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = next(self.lines, None)
        if line is None:
            self.has_ended = True
            raise StopIteration
        self.taken.append(line)
        if line.problem:
            raise csv.Error(line.detail)
        return line.text.decode("latin-1")


def _rows(path: str, start: int = 0, stop: int = -1) -> Iterator[Row]:
    """The rows that begin in [start, stop); both are beginnings of rows. After a
    problem the next line begins a row.
    """
    feed = _Feed(read_lines(path, start, stop))
    reader = csv.reader(feed)
    while not feed.has_ended:
        feed.taken = []
        cells: list[str] = []
        problem = detail = ""
        try:
            with _FIELD_LIMIT_LOCK:
                limit = csv.field_size_limit(MAX_LINE_BYTES)
                try:
                    cells = next(reader, [])
                finally:
                    csv.field_size_limit(limit)
        except csv.Error as error:
            problem, detail = feed.taken[-1].problem or "invalid_csv", str(error)
        if not feed.taken:
            return
        if feed.has_ended:
            # The reader asks for a line that is not there only when it stands inside
            # quotes.
            problem, detail = "invalid_csv", "the file ends inside a quoted cell"
        raw = b"".join(line.text for line in feed.taken)
        yield Row(feed.taken[0].start, cells, raw, problem, detail)
