"""`jsonl:GLOB`: JSON lines, one object per line, plain or compressed.

Large plain and gzip files are cut by byte range.
"""

import itertools
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus import kept_fields, listing, records
from precis.pipelines.corpus.compression import codec_of
from precis.pipelines.corpus.formats import OTHER_FORMAT, describe_format, wrapped_list
from precis.pipelines.corpus.lines import UTF_16, Line, read_lines
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import CorpusFile, Place, ReadRecord, Task, unread
from precis.pipelines.corpus.values import field_value

# The number of records that are read first, for their fields and types.
_FIRST_RECORDS = 20
# Each task of a compressed file must decompress parts before its range.
_MAX_GZIP_TASKS = 16
_MOST_SHRINKING = 10


def list_tasks(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[Task]:
    """Cuts the files into byte ranges of about `task_bytes`.

    Ranges of a compressed file count uncompressed bytes.

    Raises:
      UsageError: the first records lack a field that is needed, or there are none and
          the first file has another format.
    """
    corpus_files = [file for file in corpus_files if file.size_bytes]
    first = _first_records(corpus_files, options)
    fields = options.typed_fields(lambda name: kept_fields.found_kind(first, name))
    tasks = []
    for file in corpus_files:
        edges = _edges(file, options)
        # The uncompressed size of a gzip file is estimated, so the last range is open.
        stops = [*edges[1:-1], -1]
        size = file.size_bytes // len(stops)
        tasks += [
            listing.range_task(file, start, stop, size, fields)
            for start, stop in zip(edges[:-1], stops, strict=True)
        ]
    return tasks


def _edges(file: CorpusFile, options: CorpusOptions) -> list[int]:
    """The starts of the tasks of a file, and its end."""
    size = most = file.size_bytes
    codec = codec_of(file.path)
    if codec not in ("", "gzip") or options.encoding == UTF_16:
        return [0, size]
    if codec:
        with open_source(file.path) as opened:
            opened.seek(max(file.size_bytes - 4, 0))
            size = int.from_bytes(opened.read(4), "little")
        # The trailer has the size modulo 4 GiB, and only of the last member. Text
        # shrinks to about a third.
        if size < file.size_bytes:
            size = 3 * file.size_bytes
        # Smaller files hold almost nothing, and each task decompresses all of it.
        size, most = min(size, _MOST_SHRINKING * file.size_bytes), _MAX_GZIP_TASKS
    return listing.cut_range(size, min(most, -(-size // options.task_bytes)))


def _first_records(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[dict[str, Any]]:
    """The first records, after a check that together they have the needed fields.

    Files that begin with invalid lines are skipped: the lines become dead letters.
    """
    for file in corpus_files:
        lines = [*itertools.islice(_records(file, options), _FIRST_RECORDS)]
        parsed = [_parse(line, file.path, options) for line in lines]
        folders = dict.fromkeys(records.folder_values(file.path), "")
        first = [record | folders for record in parsed if isinstance(record, dict)]
        # A line of an array, or of an object over lines, may be an object, too.
        is_other = first and not isinstance(parsed[0], dict)
        if first and not (is_other and _other_format(file, lines, options)):
            names = dict.fromkeys(
                name for record in first for name in records.field_names(record)
            )
            if options.article_field not in names:
                _refuse_other_format(file, lines, options)
            records.check_record_fields(
                names, options.required_fields, options.fields, file.path, first
            )
            return first
    for file in corpus_files[:1]:
        lines = [*itertools.islice(_records(file, options), 2)]
        _refuse_other_format(file, lines, options)
    return []


def _refuse_other_format(
    file: CorpusFile, lines: Sequence[Line], options: CorpusOptions
) -> None:
    if other := _other_format(file, lines, options):
        raise UsageError(f"{file.path} does not hold JSON lines: it is {other}")


def _other_format(
    file: CorpusFile, lines: Sequence[Line], options: CorpusOptions
) -> str:
    """Describes a file that is not JSON lines by its first lines, at least two if it
    has two; "" if it may be JSON lines.
    """
    text = lines[0].text.decode(errors="replace") if len(lines) == 1 else ""
    other = wrapped_list(text, options.article_field)
    other = other.replace("FILE", shlex.quote(file.path))
    return other or describe_format(file.path, "jsonl", options)


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task, without blank lines."""
    (file,) = task.files
    lines = _records(file, options, task.start, task.stop, version=file.version)
    first = [*itertools.islice(lines, 2)]
    for line in itertools.chain(first, lines):
        content = _parse(line, file.path, options)
        if isinstance(content, dict):
            place = Place(file.path, f"byte {line.start}")
            content |= records.folder_values(file.path)
            content = records.to_document(content, task.fields, place)
        if line is first[0] and not (task.start or isinstance(content, Document)):
            if problem := _file_problem(first, task, options):
                content = content._replace(reason=OTHER_FORMAT, detail=problem)
        yield ReadRecord(content, line.share, line.text)


def _file_problem(first: Sequence[Line], task: Task, options: CorpusOptions) -> str:
    """Describes a file that is not JSON lines, if its first line is not a document.

    Args:
      first: the first one or two lines of the file.
      task: the task that begins with these lines.
      options: how to read the file.
    """
    is_all = len(first) == 1 and task.stop == -1
    if other := _other_format(task.files[0], first if is_all else (), options):
        return f"the file is {other}"
    names = (f'"{name.rpartition(".")[2]}"'.encode() for name in task.fields.names)
    is_all = is_all and not first[0].problem
    if is_all and not any(name in first[0].text for name in names):
        return "the file has one line, which holds none of the fields to read"
    return ""


def _records(
    file: CorpusFile,
    options: CorpusOptions,
    start: int = 0,
    stop: int = -1,
    version: str = "",
) -> Iterator[Line]:
    """The non-blank lines of a range."""
    lines = read_lines(
        file.path,
        start,
        stop,
        max_bytes=options.max_record_bytes,
        spaces_are_blank=True,
        version=version,
        encoding=options.encoding,
    )
    return (line for line in lines if line.problem or not line.text.isspace())


def _parse(line: Line, path: str, options: CorpusOptions) -> Any:
    """The object of a line, or its dead letter."""
    place = Place(path, f"byte {line.start}")
    if line.problem:
        return unread(place, line.problem, line.detail)
    text = line.text
    try:
        if options.encoding not in ("utf-8", UTF_16):
            text = text.decode(options.encoding).encode()
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            # orjson refuses NaN and Infinity, which Python writes; `json` reads them.
            record = json.loads(text.decode())
            json.dumps(record, ensure_ascii=False).encode()
        # orjson rounds integers from 2**64 on.
        if options.keep_fields or _has_large_id(record, options):
            record = json.loads(text.decode(), parse_float=kept_fields.Float)
    except UnicodeDecodeError as error:
        return records.undecodable(error, "the line", place)
    except (ValueError, RecursionError) as error:
        # Half of a surrogate pair is not a character and cannot be encoded.
        return unread(place, "invalid_json", str(error))
    if not isinstance(record, dict):
        detail = f"the line holds a {type(record).__name__} instead of an object"
        return unread(place, "not_an_object", detail)
    return record


def _has_large_id(record: Any, options: CorpusOptions) -> bool:
    """Whether an id was read as a float that may be a rounded integer."""
    if not isinstance(record, dict):
        return False
    value = field_value(record, options.id_field or "id")
    return type(value) is float and abs(value) >= 2**63
