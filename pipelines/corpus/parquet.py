"""`parquet:GLOB`: Parquet files, cut by row group.

Only the columns that are needed are read.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import MAX_RAW_BYTES
from precis.pipelines.corpus.listing import SourceFile, list_files, range_task
from precis.pipelines.corpus.records import check_fields, invalid_utf8, to_document
from precis.pipelines.corpus.task import (
    Fields,
    Place,
    ReadRecord,
    Task,
    Unreadable,
)

_BATCH_ROWS = 256


def list_tasks(
    pattern: str, *, fields: Fields, needed: tuple[str, ...], task_bytes: int
) -> list[Task]:
    """Runs of row groups of about `task_bytes` each, uncompressed.

    Raises:
      UsageError: no file matches, one is not Parquet, or one lacks a field of `needed`.
    """
    tasks = []
    for file in list_files(pattern):
        metadata = _metadata(file)
        check_fields(
            metadata.schema.to_arrow_schema().names, needed=needed, path=file.path
        )
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        sizes = [group.total_byte_size for group in groups]
        for start, stop in _runs(sizes, task_bytes):
            if not any(group.num_rows for group in groups[start:stop]):
                continue
            size_bytes = sum(sizes[start:stop])
            tasks.append(
                range_task(
                    "parquet", file, start, stop, size_bytes=size_bytes, fields=fields
                )
            )
    return tasks


def _metadata(file: SourceFile) -> pq.FileMetaData:
    try:
        with files.open_read(file.path) as opened:
            return pq.read_metadata(opened)
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"{file.path} is not a Parquet file ({error}); name the Parquet files alone"
        ) from error


def _runs(sizes: list[int], task_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of neighbours with a total size of at most `task_bytes`.

    A neighbour that is larger is a range by itself.
    """
    start = 0
    total = 0
    for index, size in enumerate(sizes):
        if index > start and total + size > task_bytes:
            yield start, index
            start = index
            total = 0
        total += size
    if sizes:
        yield start, len(sizes)


def read(task: Task) -> Iterator[ReadRecord]:
    """The records of a task.

    In a row group that cannot be decoded the rows from there on are lost; the other row
    groups are read.
    """
    (path,) = task.paths
    with files.open_read(path) as opened:
        parquet = pq.ParquetFile(opened)
        sizes = [
            parquet.metadata.row_group(group).num_rows for group in range(task.stop)
        ]
        task_rows = sum(sizes[task.start :])
        rows = 0
        for group in range(task.start, task.stop):
            for content, raw in _read_group(parquet, group, task.fields, path):
                rows += content.records if isinstance(content, Unreadable) else 1
                yield ReadRecord(content, rows / task_rows, raw)


def _read_group(
    parquet: pq.ParquetFile, group: int, fields: Fields, path: str
) -> Iterator[tuple[Document | Unreadable, bytes]]:
    """The records of a row group, those with a blank article with their bytes."""
    columns = [name for name in parquet.schema_arrow.names if name in fields]
    row = 0
    stop = parquet.metadata.row_group(group).num_rows
    try:
        for batch in parquet.iter_batches(
            _BATCH_ROWS, row_groups=[group], columns=columns
        ):
            places = (_place(path, group, row + index) for index in itertools.count())
            yield from _documents(batch, fields, places)
            row += batch.num_rows
    except OSError as error:
        # A damaged page raises an OSError without a number; the error of a disk or
        # network has one.
        if type(error) is not OSError or error.errno is not None:
            raise
        yield _lost_rows(_place(path, group, row), row, stop, error), b""
    except pa.ArrowInvalid as error:
        yield _lost_rows(_place(path, group, row), row, stop, error), b""


def _place(path: str, group: int, row: int) -> Place:
    return Place(path, f"row group {group} row {row}")


def _lost_rows(place: Place, row: int, stop: int, error: Exception) -> Unreadable:
    message = str(error).splitlines()[0]
    return Unreadable(
        *place,
        "broken_parquet",
        f"rows {row} to {stop - 1} of the row group are lost: {message}",
        b"",
        stop - row,
    )


def _documents(
    batch: pa.RecordBatch, fields: Fields, places: Iterator[Place]
) -> Iterator[tuple[Document | Unreadable, bytes]]:
    try:
        records: list[dict[str, Any] | UnicodeDecodeError] = list(batch.to_pylist())
    except UnicodeDecodeError:
        records = [_one_record(batch, index) for index in range(batch.num_rows)]
    for record, place in zip(records, places, strict=False):
        if isinstance(record, UnicodeDecodeError):
            yield invalid_utf8(record, "a value", place=place, raw=record.object), b""
            continue
        document = to_document(record, fields, place=place, raw=b"")
        if isinstance(document, Unreadable):
            yield document._replace(raw=_raw(record)), b""
        else:
            is_blank = not document.article or document.article.isspace()
            yield document, _raw(record) if is_blank else b""


def _raw(record: dict[str, Any]) -> bytes:
    """The columns that were read as JSON; a row has no bytes of its own."""
    text = json.dumps(record, ensure_ascii=False, default=repr)
    # A half of a surrogate pair cannot be encoded.
    return text.encode(errors="backslashreplace")[:MAX_RAW_BYTES]


def _one_record(
    batch: pa.RecordBatch, index: int
) -> dict[str, Any] | UnicodeDecodeError:
    try:
        return batch.slice(index, 1).to_pylist()[0]
    except UnicodeDecodeError as error:
        return error
