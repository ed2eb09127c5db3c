"""`jsonl:GLOB`: one JSON object a line, plain or gzip.

Large files are cut by byte range.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import orjson

from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import infer_kind, with_kinds
from precis.pipelines.corpus.lines import MAX_RAW_BYTES, Line, is_gzip, read_lines
from precis.pipelines.corpus.listing import (
    SourceFile,
    cut_range,
    range_task,
)
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.records import check_fields, invalid_utf8, to_document
from precis.pipelines.corpus.task import (
    Fields,
    Place,
    ReadRecord,
    Task,
    Unreadable,
)

# Each task of a compressed file decompresses all that comes before its range.
_MAX_GZIP_TASKS = 16
_MOST_SHRINKING = 10
_CHECKED_LINES = 20


def list_tasks(
    source_files: list[SourceFile],
    *,
    fields: Fields,
    needed: tuple[str, ...],
    task_bytes: int,
    max_record_bytes: int,
) -> list[Task]:
    """Byte ranges of the files, each about `task_bytes` long.

    The ranges of a compressed file count its uncompressed bytes.

    Raises:
      UsageError: the first records lack a field of `needed`.
    """
    source_files = [file for file in source_files if file.size_bytes]
    first_records = _first_records(source_files, needed, max_record_bytes)
    kinds = {
        field.name: infer_kind(record.get(field.name) for record in first_records)
        for field in fields.kept
    }
    fields = fields._replace(kept=with_kinds(fields.kept, kinds))
    tasks = []
    for file in source_files:
        if is_gzip(file.path):
            edges = _gzip_edges(file, task_bytes)
        else:
            edges = _plain_edges(file, task_bytes)
        # The uncompressed size of a gzip file is a guess, so the last range is open.
        stops = [*edges[1:-1], -1]
        size_bytes = file.size_bytes // len(stops)
        tasks += [
            range_task("jsonl", file, start, stop, size_bytes=size_bytes, fields=fields)
            for start, stop in zip(edges[:-1], stops, strict=True)
        ]
    return tasks


def _plain_edges(file: SourceFile, task_bytes: int) -> list[int]:
    return cut_range(file.size_bytes, -(-file.size_bytes // task_bytes))


def _gzip_edges(file: SourceFile, task_bytes: int) -> list[int]:
    with open_source(file.path) as opened:
        opened.seek(max(file.size_bytes - 4, 0))
        size = int.from_bytes(opened.read(4), "little")
    # The trailer counts modulo 4 GiB, and only the last member of a file. Text shrinks
    # to about a third.
    if size < file.size_bytes:
        size = 3 * file.size_bytes
    # Much smaller files hold next to nothing, and each task decompresses it all.
    size = min(size, _MOST_SHRINKING * file.size_bytes)
    return cut_range(size, min(_MAX_GZIP_TASKS, -(-size // task_bytes)))


def _first_records(
    source_files: list[SourceFile], needed: tuple[str, ...], max_record_bytes: int
) -> list[dict[str, Any]]:
    """The first records, with their fields checked; any of them may have a field.

    A file that begins with broken lines is not looked at: they become dead letters.
    """
    for file in source_files:
        lines = _records(file.path, max_bytes=max_record_bytes)
        parsed = [
            _parse(line, _place(file.path, line))
            for line in itertools.islice(lines, _CHECKED_LINES)
            if not line.problem
        ]
        records = [record for record in parsed if isinstance(record, dict)]
        if records:
            present = dict.fromkeys(name for record in records for name in record)
            check_fields(present, needed=needed, path=file.path)
            return records
    return []


def read(task: Task, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task. Blank lines are no records."""
    (path,) = task.paths
    for line in _records(
        path,
        task.start,
        task.stop,
        max_bytes=max_record_bytes,
        version=task.files[0].version,
    ):
        content = _to_document(line, task.fields, _place(path, line))
        yield ReadRecord(content, line.share, line.text[:MAX_RAW_BYTES])


def _records(
    path: str, start: int = 0, stop: int = -1, *, max_bytes: int, version: str = ""
) -> Iterator[Line]:
    """The lines of a range that are not blank."""
    lines = read_lines(
        path, start, stop, max_bytes=max_bytes, spaces_are_blank=True, version=version
    )
    return (line for line in lines if line.problem or not line.text.isspace())


def _place(path: str, line: Line) -> Place:
    return Place(path, f"byte {line.start}")


def _to_document(line: Line, fields: Fields, place: Place) -> Document | Unreadable:
    if line.problem:
        return Unreadable(*place, line.problem, line.detail, line.text)
    record = _parse(line, place)
    if isinstance(record, Unreadable):
        return record
    return to_document(record, fields, place=place, raw=line.text)


def _parse(line: Line, place: Place) -> dict[str, Any] | Unreadable:
    try:
        record = orjson.loads(line.text)
    except orjson.JSONDecodeError:
        # orjson refuses NaN and Infinity, which Python writes; `json` reads them.
        try:
            record = json.loads(line.text.decode())
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            return invalid_utf8(error, "the line", place=place, raw=line.text)
        except UnicodeEncodeError:
            detail = "half of a surrogate pair is no character"
            return _unreadable(line, place, "invalid_json", detail)
        except (ValueError, RecursionError) as error:
            return _unreadable(line, place, "invalid_json", _without_text(error))
    if not isinstance(record, dict):
        detail = f"the line holds a {type(record).__name__}"
        return _unreadable(line, place, "not_an_object", detail)
    return record


def _unreadable(line: Line, place: Place, reason: str, detail: str) -> Unreadable:
    return Unreadable(*place, reason, detail, line.text[:MAX_RAW_BYTES])


def _without_text(error: Exception) -> str:
    """The message of an error on one line, without the text that was parsed."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return str(error)
