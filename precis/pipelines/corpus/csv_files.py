"""`csv:GLOB`: delimited files with a header row, plain or compressed.

Large uncompressed files are cut between rows.
"""

import csv
import functools
import itertools
import math
import re
import shlex
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from precis.model.errors import UsageError
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.compression import codec_of
from precis.pipelines.corpus.formats import (
    OTHER_FORMAT,
    describe_format,
    fitting_encoding,
)
from precis.pipelines.corpus.lines import UTF_16, Line, read_lines
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    TOO_LARGE,
    CorpusFile,
    KeptField,
    Place,
    ReadRecord,
    Task,
    unread,
)

# The delimiters to try without --delimiter: the first whose header has all needed
# fields is used, or else the one that gives the most columns.
_DELIMITERS = (",", ";", "\t", "|")
_DELIMITER_LINE = re.compile(rb"sep=.\r?\n")
_LONGEST_NAME = 60  # characters; a longer cell in a header is a text
_FIRST_ROWS = 20
_KEPT_HEADERS = 1024
# The csv module has one limit on the field size for the whole process. Only the holder
# of this lock changes it.
_FIELD_LIMIT_LOCK = threading.Lock()

# The part of a file from which its dialect is detected.
_SNIFFED_BYTES = 16 << 20
_IN_QUOTES, _EVERYWHERE = "in quotes", "everywhere"  # where a backslash escapes
# The control characters of escapes such as \n in files without quotes.
_LETTERS = dict(zip("bfnrtv0", "\b\f\n\r\t\v\0", strict=True))
# The csv module gets an escaped character as a character that is not a byte, and a cell
# without a value (--null) as `_NULL`.
_HIDDEN = 0xE000
_HIDDEN_SIGN = re.compile("[\ue000-\ue0ff]")
_HIDDEN_BREAK = "\ue00a"
_NULL = "\ue100"

_MALFORMED = "malformed_csv"
# The same words wherever the quote is noticed. If a file is cut into tasks, a task may
# end before its file does, and the records are the same.
_NOT_CLOSED = (
    "a quote opens a cell that goes on after this line, but no quote closes it before "
    "other text, the end of the file or the maximum size of a row (--max_record_mb)"
)
_BACKSLASH = "; if a backslash escapes quotes in this file, add --escape '\\'"
# In the row of types that ClickHouse writes after the header.
_TYPE = re.compile(r"[A-Z][A-Za-z0-9]*(?:\(.*\))?")
_TYPE_OF_TEXT = re.compile(r"(?:\w+\()*(?:Fixed)?String(?:\(\d+\))?\)*")


class _Dialect(NamedTuple):
    r"""How a file writes its cells.

    quote  escape      cells                  written by
    "                  "say ""no"", c:\"      RFC 4180, pandas, BigQuery, ClickHouse
                       say "no", c:\          TSV without quotes
    "      in quotes   "say \"no\", c:\\",    Spark, DuckDB, MySQL and PostgreSQL
                       c:\                    with ESCAPE '\'
    "      everywhere  say \"no\", c:\\       pandas with an escapechar
           everywhere  say "no"\n\tc:\\       text of PostgreSQL, MySQL, ClickHouse
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""

    @property
    def escaped(self) -> str:
        """Matches a character with its backslash, or a single carriage return."""
        if self.escape != _EVERYWHERE:
            return r'\\(["\\\r\n])'
        letters = "" if self.quote else "'" + "".join(_LETTERS)
        return rf'\\(["\\\r\n{re.escape(self.delimiter)}{letters}])|\r(?!\n|$)'

    @property
    def cell(self) -> str:
        """Matches a quoted cell up to its last quote."""
        inner = r'[^"\\]++|\\.|""' if self.escape or not self.quote else '[^"]++|""'
        return rf'(?s:(?<![^{re.escape(self.delimiter)}])"(?:{inner})*+)'


def list_tasks(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[Task]:
    """Makes tasks of whole files, and of row ranges of plain files over `task_bytes`.

    Such large files are read once to find where their rows begin.

    Raises:
      UsageError: the first header lacks a field that is needed, or a file has no header
          or a header that repeats a name.
    """
    corpus_files = [file for file in corpus_files if file.size_bytes]
    # A cell of type json already contains JSON.
    kinds = {"": "string", "json": "json_text"}
    kept = (
        KeptField(name, kinds.get(kind, kind)) for name, kind in options.kept_fields
    )
    fields = options.fields._replace(kept=tuple(kept))
    tasks: list[Task] = []
    lost = []
    forms: dict[tuple[str, ...], str] = {}
    for file in corpus_files:
        try:
            dialect = _dialect_of(file, options)
            names = _column_names(file, dialect, options)
            if not tasks or options.article_field not in names:
                _check_fields(file, dialect, names, options)
        except UsageError as error:
            if not tasks:
                raise
            # Leave out the column names, because they may be text of an article.
            detail = str(error).removeprefix(f"{file.path} ").partition(", it has ")[0]
            lost.append(file._replace(problem=OTHER_FORMAT, detail=detail))
            continue
        kinds = dict.fromkeys([*names, *records.folder_values(file.path)], "text")
        forms.setdefault(records.main_kinds(kinds, options.fields), file.path)
        starts = _row_starts(file, dialect, options)
        for start, stop in itertools.pairwise([*starts, -1]):
            size = (file.size_bytes if stop == -1 else stop) - start
            task = listing.range_task(file, start, stop, size, fields)
            tasks.append(task._replace(dialect=dialect))
    records.note_mixed_files(forms, options.fields)
    return [*tasks, *listing.unreadable_tasks(lost)]


def _check_fields(
    file: CorpusFile, dialect: _Dialect, names: Sequence[str], options: CorpusOptions
) -> None:
    """Refuses a file without a needed column, or without a header row."""
    needed = options.required_fields
    longest = max(names, key=len)
    if len(longest) > _LONGEST_NAME and needed[0] not in names:
        numbered = {longest: needed[0]}
        row = (numbered.get(name, f"c{n}") for n, name in enumerate(names, 1))
        raise UsageError(
            f"{file.path} has no header row (its first row holds a text of "
            f"{len(longest)} characters); write one before it: `(echo "
            f"'{dialect.delimiter.join(row)}'; cat {shlex.quote(file.path)}) > NEW.csv`"
        )
    rows = itertools.islice(_rows(file, dialect, options), 1, _FIRST_ROWS)
    first = (dict(zip(names, cells, strict=False)) for _, cells in rows)
    records.check_record_fields(names, needed, options.fields, file.path, first)


def _row_starts(
    file: CorpusFile, dialect: _Dialect, options: CorpusOptions
) -> list[int]:
    """The starts of the tasks of a file: the first row in each of its equal pieces."""
    is_one_task = codec_of(file.path) or options.encoding == UTF_16
    pieces = 1 if is_one_task else -(-file.size_bytes // options.task_bytes)
    starts = [0]
    edges = listing.cut_range(file.size_bytes, pieces)[1:-1]
    for line, _ in _rows(file, dialect, options) if edges else ():
        start = line.start
        if edges and start >= edges[0]:
            starts.append(start)
            edges = [edge for edge in edges if edge > start]
    return starts


def _dialect_of(file: CorpusFile, options: CorpusOptions) -> _Dialect:
    """The dialect that the flags name, or that fits a file's beginning best."""
    given = options.delimiter.replace("\\t", "\t")
    needed = {*options.required_fields} - records.folder_values(file.path).keys()
    columns, best = 0, ""
    errors = []
    for delimiter in given or _DELIMITERS:
        try:
            names = _column_names(file, _dialects(delimiter, options)[0], options)
        except UsageError as error:  # Quoted cells need the right delimiter.
            errors.append(error)
            continue
        has_all = needed <= set(names)
        if has_all or len(names) > columns:
            columns, best = len(names), delimiter
        if has_all:
            break
    else:
        if errors and columns <= 1:
            raise errors[0]
    return _find_dialect(file, best, options)


def _find_dialect(file: CorpusFile, delimiter: str, options: CorpusOptions) -> _Dialect:
    """The first dialect that fits the most rows at the beginning of a file."""
    dialects = _dialects(delimiter, options)
    hint = re.compile(rb'\\|"' if delimiter == "\t" else rb"\\\W")
    max_bytes = options.max_record_bytes
    lines = read_lines(file.path, max_bytes=max_bytes, encoding=options.encoding)
    head = itertools.takewhile(lambda line: line.start < _SNIFFED_BYTES, lines)
    if not any(hint.search(line.text) for line in head):
        return dialects[0]
    fitting = (each for each in dialects if not _doubts(file, each, options))
    return next(fitting, None) or min(
        dialects, key=lambda each: _doubts(file, each, options)
    )


def _dialects(delimiter: str, options: CorpusOptions) -> list[_Dialect]:
    """The possible dialects of a file, the most common first."""
    # Only with tabs is it likely that cells have neither quotes nor escapes.
    plain = [""] if options.quote or delimiter == "\t" else []
    quotes = {"": ['"', *plain], _IN_QUOTES: ['"'], _EVERYWHERE: ['"', ""]}
    return [
        _Dialect(delimiter, quote, escape)
        for escape in quotes
        for quote in quotes[escape]
        if options.quote in ("", quote or "none")
        and options.escape in ("", "\\" if escape else "none")
    ]


@functools.lru_cache(_KEPT_HEADERS)
def _doubts(file: CorpusFile, dialect: _Dialect, options: CorpusOptions) -> float:
    """Counts rows at the beginning of a file that another dialect would explain."""
    escaped = re.compile(dialect.escaped)
    is_everywhere, is_tab = dialect.escape == _EVERYWHERE, dialect.delimiter == "\t"
    unlikely = {'"'} if dialect.quote and (is_everywhere or is_tab) else set()
    if not is_everywhere:
        signs = '"' + "\\" * bool(dialect.escape)
        signs += "".join(_LETTERS) + "\\\t\n" if is_tab else ""
        unlikely |= {f"\\{sign}" for sign in signs}
    quoted = re.compile(rf'{dialect.cell}"(?=[{re.escape(dialect.delimiter)}\r\n]|$)')
    doubts = width = 0
    for line, cells in _rows(file, dialect, options):
        if line.start > _SNIFFED_BYTES:
            break
        row = line.text.decode("latin-1")
        plain = quoted.sub("", row)
        found = {*re.findall(r'\\.|"', plain, re.DOTALL)}
        others = found - {'"', r"\N"}
        if is_everywhere and not all(map(escaped.fullmatch, others)):
            return math.inf
        width = width or len(cells)
        doubts += bool(
            line.problem
            or (cells and len(cells) != width)
            or (not dialect.quote and plain != row)
            or found & unlikely
        )
    return doubts


@functools.lru_cache(_KEPT_HEADERS)
def _column_names(
    file: CorpusFile, dialect: _Dialect, options: CorpusOptions
) -> tuple[str, ...]:
    rows = _rows(file, dialect, options)
    missing: tuple[Line, list[str]] = Line(0, b"", detail="it has no rows"), []
    line, cells = next((row for row in rows if row[0].problem or row[1]), missing)
    problem = line.detail
    names: list[str] = []
    try:
        names = [_decode(cell, options) or "" for cell in cells]
    except UnicodeDecodeError as error:
        problem = f"it is not {options.encoding.upper()}: {error.reason}"
        if fitting := fitting_encoding(line.text):
            problem += f"; --encoding {fitting} fits"
    if other := describe_format(file.path, "csv", options):
        raise UsageError(f"{file.path} does not hold CSV: it is {other}")
    if problem:
        raise UsageError(
            f"{file.path} has no header row ({problem}); its first row must hold the "
            "names of the columns"
        )
    records.check_repeated(names, options.fields, file.path)
    _, second = next(rows, missing)
    if all(map(_TYPE.fullmatch, second)) and any(map(_TYPE_OF_TEXT.fullmatch, second)):
        raise UsageError(
            f"{file.path} has the types of its columns in its second row, as "
            "TSVWithNamesAndTypes of ClickHouse writes them; write it with FORMAT "
            f"TSVWithNames, or `sed 2d {shlex.quote(file.path)} > NEW.tsv`"
        )
    return tuple(names)


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task, without blank lines."""
    (file,) = task.files
    dialect = _Dialect(*task.dialect)
    names = _column_names(file, dialect, options)
    columns = [each for each in enumerate(names) if each[1] in task.fields.names]
    is_before_header = task.start == 0
    for line, cells in _rows(
        file, dialect, options, task.start, task.stop, file.version
    ):
        place = Place(file.path, f"byte {line.start}")
        content: Any
        if line.problem:
            content = unread(place, line.problem, line.detail)
        elif not cells or is_before_header:
            is_before_header = is_before_header and not cells
            continue
        elif len(cells) != len(names):
            detail = f"the row has {len(cells)} columns, but the header {len(names)}"
            content = unread(place, "wrong_columns", detail)
        else:
            try:
                record = {
                    name: _decode(cells[index], options) for index, name in columns
                }
                record |= records.folder_values(file.path)
                content = records.to_document(record, task.fields, place)
            except UnicodeDecodeError as error:
                content = records.undecodable(error, "a cell", place)
        yield ReadRecord(content, line.share, line.text)


def _decode(cell: str, options: CorpusOptions) -> str | None:
    if cell == _NULL:
        return None
    cell = cell.replace(_NULL, _null_cell(options))
    cell = _HIDDEN_SIGN.sub(lambda sign: chr(ord(sign[0]) - _HIDDEN), cell)
    return cell.encode("latin-1").decode(_encoding(options))


def _encoding(options: CorpusOptions) -> str:
    """The encoding of the lines; UTF-16 files are read as UTF-8."""
    return "utf-8" if options.encoding == UTF_16 else options.encoding


def _null_cell(options: CorpusOptions) -> str:
    """The text of a null cell, one character per byte."""
    return options.null.encode(_encoding(options), "replace").decode("latin-1")


class _RowLines:
    """Passes lines to the csv module and keeps the lines of the current row.

    A row has several lines if a cell contains line breaks. An unclosed quote would take
    all later lines into its cell. So a row must end before its deadline, and the lines
    after the first line of a malformed row are read again.

    Attributes:
      row_lines: the lines of the current row.
    """

    def __init__(
        self, lines: Iterator[Line], dialect: _Dialect, options: CorpusOptions
    ) -> None:
        self._lines = lines
        self._max_bytes = options.max_record_bytes
        self._null_cell = _null_cell(options)
        self._escape = dialect.escape
        self._escaped = re.compile(dialect.escaped)
        is_everywhere = dialect.escape == _EVERYWHERE
        self._with_escapes = re.compile(
            "(?s).*" if is_everywhere else f'{dialect.cell}"?'
        )
        sign = re.escape(dialect.delimiter)
        cell = rf"(?<![^{sign}]){re.escape(self._null_cell)}(?=[{sign}\r\n]|$)"
        self._null = re.compile(cell)
        self._lines_again: deque[Line] = deque()
        # A row that continues to a line up to this position, with no later deadline, is
        # malformed like an earlier row. So no line is read many times.
        self._malformed: tuple[int, float] = (-1, -1)
        self.row_lines: list[Line] = []

    def __iter__(self) -> "_RowLines":
        return self

    def __next__(self) -> str:
        text = self._next_text()
        # After an escaped line break outside quotes, the row continues.
        while self._escape == _EVERYWHERE and text.endswith(_HIDDEN_BREAK):
            text += self._next_text(is_in_quotes=False)
        return text

    def _next_text(self, *, is_in_quotes: bool = True) -> str:
        again = self._lines_again
        line = again.popleft() if again else next(self._lines, None)
        if line is None:
            if self.row_lines:  # The csv module needs more of a quoted cell.
                raise csv.Error(_NOT_CLOSED)
            raise StopIteration
        self.row_lines.append(line)
        if line.problem:
            raise csv.Error(line.detail)
        if len(self.row_lines) > 1:
            deadline = self._deadline()
            is_late = line.start + len(line.text) > deadline
            if is_late or (is_in_quotes and self._is_known(line, deadline)):
                raise csv.Error(_NOT_CLOSED)
        text = line.text.decode("latin-1")
        if self._escape:
            # A line after the first of its row begins within a quoted cell.
            begin = '"' * (len(self.row_lines) > 1)
            text = self._with_escapes.sub(
                lambda cell: self._escaped.sub(_hidden, cell[0]), begin + text
            )[len(begin) :]
        if self._null_cell in text and text.strip("\r\n"):
            text = self._null.sub(_NULL, text)
        return text

    def _deadline(self) -> int:
        """The position at which the current row must have ended.

        It is the same for all rows in a block of the file, wherever reading began.
        """
        return (self.row_lines[0].start // self._max_bytes + 2) * self._max_bytes

    def _is_known(self, line: Line, deadline: float) -> bool:
        """Whether a row that reaches a line is malformed like an earlier row."""
        return line.start <= self._malformed[0] and deadline <= self._malformed[1]

    def read_again(self) -> None:
        """Keeps only the first line of a malformed row, and reads the others again."""
        last = self.row_lines[-1]
        deadline: float = self._deadline()
        if not self._is_known(last, deadline):
            is_late = last.start + len(last.text) > deadline
            self._malformed = last.start, deadline if is_late else math.inf
        self._lines_again.extendleft(reversed(self.row_lines[1:]))
        del self.row_lines[1:]


def _hidden(escaped: re.Match[str]) -> str:
    sign = escaped[1] or escaped[0]
    return chr(_HIDDEN + ord(_LETTERS.get(sign, sign)))


def _rows(
    file: CorpusFile,
    dialect: _Dialect,
    options: CorpusOptions,
    start: int = 0,
    stop: int = -1,
    version: str = "",
) -> Iterator[tuple[Line, list[str]]]:
    """The rows that begin in [start, stop); a row must begin at `start`.

    Yields the lines of a row as one, with their problem, and its cells with one
    character per byte (latin-1), so that invalid UTF-8 in a cell does not affect the
    others. After a malformed row, reading continues at the line after its first.
    """
    max_bytes, encoding = options.max_record_bytes, options.encoding
    physical = read_lines(
        file.path, start, max_bytes=max_bytes, version=version, encoding=encoding
    )
    # Excel writes and reads a first line that names the delimiter.
    physical = itertools.dropwhile(
        lambda line: line.start == 0 and _DELIMITER_LINE.fullmatch(line.text), physical
    )
    lines = _RowLines(physical, dialect, options)
    reader = csv.reader(
        lines,
        strict=True,
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )
    while True:
        lines.row_lines = []
        cells: list[str] = []
        problem = detail = ""
        try:
            cells = _next_cells(reader, 2 * max_bytes)
        except csv.Error as error:
            problem = lines.row_lines[-1].problem or _MALFORMED
            detail = str(error)
            is_broken = problem not in (_MALFORMED, TOO_LARGE)
            if len(lines.row_lines) > 1 and not is_broken:
                problem, detail = _MALFORMED, _NOT_CLOSED
                lines.read_again()
        if not lines.row_lines or 0 <= stop <= lines.row_lines[0].start:
            return
        raw = b"".join(line.text for line in lines.row_lines)
        if problem == _MALFORMED and b"\\" in raw and not dialect.escape:
            detail += _BACKSLASH
        if cells and len(raw) > max_bytes:
            problem = TOO_LARGE
            detail = f"the row has more than {max_bytes:,} bytes (--max_record_mb)"
        first, last = lines.row_lines[0], lines.row_lines[-1]
        share = (first.start - start) / (stop - start) if stop >= 0 else last.share
        yield Line(first.start, raw, problem, detail, share), cells


def _next_cells(reader: Iterator[list[str]], max_bytes: int) -> list[str]:
    """Reads the cells of the next row, whose lines have at most `max_bytes`."""
    with _FIELD_LIMIT_LOCK:
        limit = csv.field_size_limit(max_bytes)
        try:
            return next(reader, [])
        finally:
            csv.field_size_limit(limit)
