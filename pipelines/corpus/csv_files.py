"""`csv:GLOB`: comma-separated files with a header row, plain or gzip.

Large plain files are cut where a row begins.
"""

import csv
import math
import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import KeptField
from precis.pipelines.corpus.lines import (
    BROKEN_GZIP,
    MAX_RAW_BYTES,
    TOO_LARGE,
    Line,
    is_gzip,
    read_lines,
)
from precis.pipelines.corpus.listing import (
    SourceFile,
    cut_range,
    range_task,
)
from precis.pipelines.corpus.records import check_fields, invalid_utf8, to_document
from precis.pipelines.corpus.task import (
    Fields,
    Place,
    ReadRecord,
    Task,
    Unreadable,
)

# The csv module has one limit on the size of a field for the whole process. Only the
# holder of this lock changes it.
_FIELD_LIMIT_LOCK = threading.Lock()

_MALFORMED = "malformed_csv"
# The same words for all ways in which that shows. Where a file is cut into tasks, the
# task may end before the file does, and the records are the same.
_NOT_CLOSED = (
    "a quote opens a cell that goes on behind this line, and no quote closes it before "
    "other text, the end of the file or the size of a row (--max_record_mb)"
)


class CsvRow(NamedTuple):
    """A row of a CSV file.

    Attributes:
      start: position of its first byte in the (uncompressed) file.
      cells: its cells, one character a byte (latin-1), so that broken UTF-8 in one cell
          does not damage the others.
      raw: its bytes, line breaks included.
      problem: "", `malformed_csv`, `record_too_large` or the problem of its line.
      detail: the problem in words.
      share: how much of the range is read with the row, from 0 to 1.
    """

    start: int
    cells: list[str]
    raw: bytes
    problem: str = ""
    detail: str = ""
    share: float = 0.0


def list_tasks(
    source_files: list[SourceFile],
    *,
    fields: Fields,
    needed: tuple[str, ...],
    task_bytes: int,
    max_record_bytes: int,
) -> list[Task]:
    """Whole files, and ranges of rows of plain files larger than `task_bytes`.

    Such large files are read once from end to end, to find where rows begin.

    Raises:
      UsageError: the first header lacks a field of `needed`, or a file has no header or
          one that names a column twice.
    """
    source_files = [file for file in source_files if file.size_bytes]
    headers = [_header(file.path, max_record_bytes) for file in source_files]
    if source_files:
        check_fields(headers[0], needed=needed, path=source_files[0].path)
    fields = fields._replace(kept=_with_text_kinds(fields.kept))
    tasks = []
    for file in source_files:
        if is_gzip(file.path) or file.size_bytes <= task_bytes:
            starts = [0]
        else:
            starts = _row_starts(file, task_bytes, max_record_bytes)
        for start, stop in zip(starts, [*starts[1:], -1], strict=True):
            size_bytes = (file.size_bytes if stop == -1 else stop) - start
            tasks.append(
                range_task(
                    "csv", file, start, stop, size_bytes=size_bytes, fields=fields
                )
            )
    return tasks


def _with_text_kinds(kept: tuple[KeptField, ...]) -> tuple[KeptField, ...]:
    """The kept fields with the types of cells: a cell of type json is JSON already."""
    kinds = {"": "string", "json": "json_text"}
    return tuple(KeptField(name, kinds.get(kind, kind)) for name, kind in kept)


def _row_starts(file: SourceFile, task_bytes: int, max_record_bytes: int) -> list[int]:
    """Where the tasks of a file begin: the first row of each of its equal pieces."""
    starts = [0]
    edges = cut_range(file.size_bytes, -(-file.size_bytes // task_bytes))[1:-1]
    for row in _rows(file.path, max_bytes=max_record_bytes):
        is_first_of_piece = False
        while edges and row.start >= edges[0]:
            edges.pop(0)
            is_first_of_piece = True
        if is_first_of_piece:
            starts.append(row.start)
    return starts


def _header(path: str, max_record_bytes: int) -> list[str]:
    rows = _rows(path, max_bytes=max_record_bytes)
    first = next((row for row in rows if row.problem or row.cells), None)
    problem = "it has no rows" if first is None else first.detail
    try:
        names = [_decode(cell) for cell in first.cells] if first else []
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8: {error.reason}"
    if problem:
        raise UsageError(
            f"{path} has no header row ({problem}); its first row must name the columns"
        )
    for name in names:
        # Columns without a name cannot be chosen, so none of them is chosen wrongly.
        if name and names.count(name) > 1:
            raise UsageError(
                f"{path} has {names.count(name)} columns named {name!r}, of which only "
                "one could be read; give each column its own name"
            )
    return names


def read(task: Task, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task. Blank lines are no rows."""
    (path,) = task.paths
    header = _header(path, max_record_bytes)
    wanted = task.fields.names
    columns = [(index, name) for index, name in enumerate(header) if name in wanted]
    is_before_header = task.start == 0
    for row in _rows(
        path,
        task.start,
        task.stop,
        max_bytes=max_record_bytes,
        version=task.files[0].version,
    ):
        if not row.problem and row.cells and is_before_header:
            is_before_header = False
        elif row.problem or row.cells:
            place = Place(path, f"byte {row.start}")
            problem = row.problem
            detail = row.detail
            if not problem and len(row.cells) != len(header):
                problem = "wrong_columns"
                detail = (
                    f"the row has {len(row.cells)} columns, the header {len(header)}"
                )
            content: Document | Unreadable
            if problem:
                content = Unreadable(*place, problem, detail, row.raw[:MAX_RAW_BYTES])
            else:
                content = _to_document(row, columns, task.fields, place)
            yield ReadRecord(content, row.share, row.raw[:MAX_RAW_BYTES])


def _to_document(
    row: CsvRow, columns: list[tuple[int, str]], fields: Fields, place: Place
) -> Document | Unreadable:
    try:
        record = {name: _decode(row.cells[index]) for index, name in columns}
    except UnicodeDecodeError as error:
        return invalid_utf8(error, "a cell", place=place, raw=row.raw)
    return to_document(record, fields, place=place, raw=row.raw)


def _decode(cell: str) -> str:
    return cell.encode("latin-1").decode()


class _RowLines:
    """Gives lines to the csv module and keeps the lines of the current row.

    A row has several lines if a cell has line breaks. A quote that nothing closes would
    take all lines behind it into its cell, so a row that goes on must end before its
    deadline, and the lines behind the first one of a malformed row are read again.

    Attributes:
      row_lines: the lines of the current row.
    """

    def __init__(self, lines: Iterator[Line], max_bytes: int) -> None:
        self._lines = lines
        self._max_bytes = max_bytes
        self._lines_again: deque[Line] = deque()
        # A row that goes on with a line up to the first of these positions, and has no
        # later deadline than the second, is malformed. So no line is read many times.
        self._malformed: tuple[int, float] = (-1, -1)
        self.row_lines: list[Line] = []

    def __iter__(self) -> "_RowLines":
        return self

    def __next__(self) -> str:
        again = self._lines_again
        line = again.popleft() if again else next(self._lines, None)
        if line is None:
            if self.row_lines:  # The csv module asks for more inside a quoted cell.
                raise csv.Error(_NOT_CLOSED)
            raise StopIteration
        self.row_lines.append(line)
        if line.problem:
            raise csv.Error(line.detail)
        if len(self.row_lines) > 1:
            deadline = self._deadline()
            is_late = line.start + len(line.text) > deadline
            if is_late or self._is_known(line, deadline):
                raise csv.Error(_NOT_CLOSED)
        return line.text.decode("latin-1")

    def _deadline(self) -> int:
        """Where the current row must have ended.

        It is the same for all rows of a block of the file, wherever reading began.
        """
        return (self.row_lines[0].start // self._max_bytes + 2) * self._max_bytes

    def _is_known(self, line: Line, deadline: float) -> bool:
        """Whether a row that goes on with a line is malformed like one before it."""
        return line.start <= self._malformed[0] and deadline <= self._malformed[1]

    def read_again(self) -> None:
        """Keeps the first line of the row, which is malformed with those behind it."""
        last = self.row_lines[-1]
        deadline: float = self._deadline()
        if not self._is_known(last, deadline):
            is_late = last.start + len(last.text) > deadline
            self._malformed = last.start, deadline if is_late else math.inf
        self._lines_again.extendleft(reversed(self.row_lines[1:]))
        del self.row_lines[1:]


def _rows(
    path: str, start: int = 0, stop: int = -1, *, max_bytes: int, version: str = ""
) -> Iterator[CsvRow]:
    """The rows that begin in [start, stop), two positions where rows begin.

    After a malformed row the line behind its first one begins a row.
    """
    read = read_lines(path, start, stop, max_bytes=max_bytes, version=version)
    lines = _RowLines(read, max_bytes)
    reader = csv.reader(lines, strict=True)
    while True:
        lines.row_lines = []
        cells: list[str] = []
        problem = ""
        detail = ""
        try:
            cells = _next_cells(reader, 2 * max_bytes)
        except csv.Error as error:
            problem = lines.row_lines[-1].problem or _MALFORMED
            detail = str(error)
            if len(lines.row_lines) > 1 and problem != BROKEN_GZIP:
                problem, detail = _MALFORMED, _NOT_CLOSED
                lines.read_again()
        if not lines.row_lines:
            return
        raw = b"".join(line.text for line in lines.row_lines)
        if cells and len(raw) > max_bytes:
            problem = TOO_LARGE
            detail = f"the row has more than {max_bytes:,} bytes (--max_record_mb)"
        first, last = lines.row_lines[0], lines.row_lines[-1]
        yield CsvRow(first.start, cells, raw, problem, detail, last.share)


def _next_cells(reader: Iterator[list[str]], max_bytes: int) -> list[str]:
    """The cells of the next row, whose lines have at most `max_bytes`."""
    with _FIELD_LIMIT_LOCK:
        limit = csv.field_size_limit(max_bytes)
        try:
            return next(reader, [])
        finally:
            csv.field_size_limit(limit)
