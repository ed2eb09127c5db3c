"""`jsonl:GLOB`: one JSON object a line, plain or gzip; large files are cut by byte
range.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import orjson

from precis.model import files
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import MAX_RAW_BYTES, Line, is_gzip, read_lines
from precis.pipelines.corpus.listing import SourceFile, cut_range, list_files
from precis.pipelines.corpus.records import check_fields, to_document
from precis.pipelines.corpus.task import Fields, Task, Unreadable

# Each task of a compressed file decompresses all that comes before it.
_MAX_GZIP_TASKS = 16
_CHECKED_LINES = 20


def list_tasks(
    pattern: str, *, fields: Fields, needed: tuple[str, ...], task_bytes: int
) -> list[Task]:
    """Byte ranges of the files, each about `task_bytes` long; ranges of a compressed
    file count its uncompressed bytes.

    Raises:
      UsageError: no file matches, or the first records lack a field of `needed`.
    """
    found = [file for file in list_files(pattern) if file.size_bytes]
    _check_first_records(found, needed)
    tasks = []
    for file in found:
        edges = (
            _gzip_edges(file, task_bytes)
            if is_gzip(file.path)
            else _plain_edges(file, task_bytes)
        )
        # The compressed size is a guess from the gzip trailer, so the last range is
        # open.
        stops = [*edges[1:-1], -1]
        for start, stop in zip(edges[:-1], stops, strict=True):
            size = file.size_bytes // len(stops)
            tasks.append(
                Task(
                    0,
                    "jsonl",
                    (file.path,),
                    start,
                    stop,
                    fields=fields,
                    version=file.version,
                    size_bytes=size,
                )
            )
    return tasks


def _plain_edges(file: SourceFile, task_bytes: int) -> list[int]:
    return cut_range(file.size_bytes, -(-file.size_bytes // task_bytes))


def _gzip_edges(file: SourceFile, task_bytes: int) -> list[int]:
    with files.open_read(file.path) as opened:
        opened.seek(max(file.size_bytes - 4, 0))
        size = int.from_bytes(opened.read(4), "little")
    # The trailer counts modulo 4 GiB and only the last member of a file; text shrinks
    # to about a third.
    if size < file.size_bytes:
        size = 3 * file.size_bytes
    return cut_range(size, min(_MAX_GZIP_TASKS, -(-size // task_bytes)))


def _check_first_records(found: list[SourceFile], needed: tuple[str, ...]) -> None:
    """A field counts as there when any of the first records has it; a file that begins
    with broken lines is left to the dead letters.
    """
    for file in found:
        lines = (line for line in read_lines(file.path) if not line.text.isspace())
        parsed = [
            _parse(line, "")
            for line in itertools.islice(lines, _CHECKED_LINES)
            if not line.problem
        ]
        records = [record for record in parsed if isinstance(record, dict)]
        if records:
            check_fields(
                dict.fromkeys(name for record in records for name in record),
                needed=needed,
                path=file.path,
            )
            return


def read(task: Task) -> Iterator[Document | Unreadable]:
    """The documents of a task. Blank lines are no records."""
    (path,) = task.paths
    for line in read_lines(path, task.start, task.stop):
        location = f"{path}:byte {line.start}"
        if line.problem:
            yield Unreadable(location, line.problem, line.detail, line.text)
        elif not line.text.isspace():
            record = _parse(line, location)
            yield (
                record
                if isinstance(record, Unreadable)
                else to_document(record, task.fields, location=location, raw=line.text)
            )


def _parse(line: Line, location: str) -> dict[str, Any] | Unreadable:
    try:
        record = orjson.loads(line.text)
    except orjson.JSONDecodeError:
        # Python writes NaN and Infinity, which orjson refuses: the slow reader has the
        # last word.
        try:
            record = json.loads(line.text.decode())
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            return Unreadable(
                location,
                "invalid_utf8",
                f"byte {error.start} of the line: {error.reason}",
                line.text[:MAX_RAW_BYTES],
            )
        except UnicodeEncodeError:
            return Unreadable(
                location,
                "invalid_json",
                "half of a surrogate pair is no character",
                line.text[:MAX_RAW_BYTES],
            )
        except (ValueError, RecursionError) as error:
            return Unreadable(
                location,
                "invalid_json",
                _without_text(error),
                line.text[:MAX_RAW_BYTES],
            )
    if not isinstance(record, dict):
        return Unreadable(
            location,
            "not_an_object",
            f"the line holds a {type(record).__name__}",
            line.text[:MAX_RAW_BYTES],
        )
    return record


def _without_text(error: Exception) -> str:
    """What is wrong, on one line."""
    return (
        f"{error.msg} at character {error.pos}"
        if isinstance(error, json.JSONDecodeError)
        else str(error)
    )
