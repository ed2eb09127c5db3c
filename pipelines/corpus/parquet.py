"""`parquet:GLOB`: Parquet files, cut by row group.

Only the columns that are needed are read.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.arrow_types import plain_type
from precis.pipelines.corpus.lines import MAX_RAW_BYTES
from precis.pipelines.corpus.listing import (
    SourceFile,
    range_task,
    unreadable_tasks,
)
from precis.pipelines.corpus.opening import UNREADABLE, open_source
from precis.pipelines.corpus.records import (
    check_fields,
    invalid_utf8,
    to_document,
    too_large,
)
from precis.pipelines.corpus.task import (
    Fields,
    FileFailure,
    Place,
    ReadRecord,
    Task,
    Unreadable,
)

_BATCH_ROWS = 256


def list_tasks(
    source_files: list[SourceFile],
    *,
    fields: Fields,
    needed: tuple[str, ...],
    task_bytes: int,
) -> list[Task]:
    """Runs of row groups of about `task_bytes` each, uncompressed, and the files whose
    footer cannot be read.

    Raises:
      UsageError: none is Parquet, or one lacks a field of `needed`.
    """
    tasks = []
    unreadable = []
    first_types: dict[str, pa.DataType] = {}
    for file in source_files:
        try:
            metadata = _metadata(file)
        except FileFailure as failure:
            unreadable.append(file._replace(problem=UNREADABLE, detail=failure.detail))
            continue
        schema = metadata.schema.to_arrow_schema()
        _check_unique(schema.names, fields, file.path)
        check_fields(schema.names, needed=needed, path=file.path)
        types = kept_types(schema, fields)
        first_types = first_types or types
        _check_same_types(types, first_types, file.path)
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
    if unreadable and len(unreadable) == len(source_files):
        file = unreadable[0]
        raise UsageError(
            f"{file.path} is no Parquet file that can be read ({file.detail}); name "
            "Parquet files that are whole and not encrypted"
        )
    return [*tasks, *unreadable_tasks(unreadable, holds_one_document=False)]


def _metadata(file: SourceFile) -> pq.FileMetaData:
    """The footer of a file.

    Raises:
      FileFailure: it is damaged or encrypted, or there is none.
    """
    try:
        with open_source(file.path) as opened:
            return pq.read_metadata(opened)
    except (pa.ArrowInvalid, OSError) as error:
        if not _is_of_content(error):
            raise
        detail = f"its footer cannot be read: {str(error).splitlines()[0]}"
        raise FileFailure(file.path, UNREADABLE, detail) from error


def _is_of_content(error: Exception) -> bool:
    """Whether the content is damaged; the error of a disk or network has a number."""
    if isinstance(error, OSError):
        return type(error) is OSError and error.errno is None
    return True


def _check_unique(names: list[str], fields: Fields, path: str) -> None:
    for name in fields.names:
        if names.count(name) > 1:
            raise UsageError(
                f"{path} has {names.count(name)} columns named {name!r}, of which only "
                "one could be read; give each column its own name"
            )


def kept_types(schema: pa.Schema, fields: Fields) -> dict[str, pa.DataType]:
    """The types of the kept fields that no type was named for.

    Raises:
      UsageError: a type that has no plain form.
    """
    types = {}
    for name, kind in fields.kept:
        if not kind:
            source_type = schema.field(name).type
            types[name] = plain_type(source_type)
            if types[name] is None:
                raise UsageError(
                    f"--keep_fields {name}: a column of type {source_type} cannot be "
                    f"kept as it is; write {name}:json to keep it as JSON"
                )
    return types


def _check_same_types(
    types: dict[str, pa.DataType], first: dict[str, pa.DataType], path: str
) -> None:
    for name, kind in types.items():
        if kind != first[name]:
            raise UsageError(
                f"--keep_fields {name}: it is {kind} in {path} and {first[name]} in "
                f"the first file; name a type, as in {name}:string"
            )


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


def read(task: Task, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task.

    In a row group that cannot be decoded the rows from there on are lost; the other row
    groups are read.
    """
    (path,) = task.paths
    with open_source(path) as opened:
        parquet = pq.ParquetFile(opened, page_checksum_verification=True)
        sizes = [
            parquet.metadata.row_group(group).num_rows for group in range(task.stop)
        ]
        task_rows = sum(sizes[task.start :])
        rows = 0
        for group in range(task.start, task.stop):
            for content, raw in _read_group(
                parquet, group, task.fields, path, max_record_bytes
            ):
                rows += content.records if isinstance(content, Unreadable) else 1
                yield ReadRecord(content, rows / task_rows, raw)


def _read_group(
    parquet: pq.ParquetFile,
    group: int,
    fields: Fields,
    path: str,
    max_record_bytes: int,
) -> Iterator[tuple[Document | Unreadable, bytes]]:
    """The records of a row group, those with a blank article with their bytes."""
    wanted = fields.names
    columns = [name for name in parquet.schema_arrow.names if name in wanted]
    types = kept_types(parquet.schema_arrow, fields)
    for name, kind in fields.kept:
        if kind:
            source_type = parquet.schema_arrow.field(name).type
            types[name] = plain_type(source_type) or source_type
    row = 0
    stop = parquet.metadata.row_group(group).num_rows
    try:
        for batch in parquet.iter_batches(
            _BATCH_ROWS, row_groups=[group], columns=columns
        ):
            places = (_place(path, group, row + index) for index in itertools.count())
            batch = _with_types(batch, types)
            yield from _documents(batch, fields, places, max_record_bytes)
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if not _is_of_content(error):
            raise
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


def _with_types(batch: pa.RecordBatch, types: dict[str, pa.DataType]) -> pa.RecordBatch:
    """A batch with the kept columns in their plain types."""
    for name, kind in types.items():
        index = batch.schema.get_field_index(name)
        if batch.schema.field(index).type != kind:
            # Nanoseconds are cut to microseconds.
            column = batch.column(index).cast(kind, safe=False)
            batch = batch.set_column(index, pa.field(name, kind), column)
    return batch


def _documents(
    batch: pa.RecordBatch,
    fields: Fields,
    places: Iterator[Place],
    max_record_bytes: int,
) -> Iterator[tuple[Document | Unreadable, bytes]]:
    sizes = _text_sizes(batch)
    records: list[dict[str, Any] | None] = [None] * batch.num_rows
    if max(sizes, default=0) <= max_record_bytes:
        with contextlib.suppress(ValueError, OverflowError):
            records = batch.to_pylist()
    for index, (record, place) in enumerate(zip(records, places, strict=False)):
        if sizes[index] > max_record_bytes:
            yield too_large(sizes[index], max_record_bytes, place, b""), b""
            continue
        content = record or _one_record(batch, index, place)
        if isinstance(content, Unreadable):
            yield content, b""
            continue
        document = to_document(content, fields, place=place, raw=b"")
        if isinstance(document, Unreadable):
            yield document._replace(raw=_raw(content)), b""
        else:
            is_blank = not document.article or document.article.isspace()
            yield document, _raw(content) if is_blank else b""


def _text_sizes(batch: pa.RecordBatch) -> list[int]:
    """How many bytes of text each row has."""
    sizes = pa.array([0] * batch.num_rows)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = _text_lengths(column.dictionary)
            lengths = None if lengths is None else pc.take(lengths, column.indices)
        else:
            lengths = _text_lengths(column)
        if lengths is not None:
            sizes = pc.add(sizes, pc.fill_null(lengths, 0).cast(pa.int64()))
    return list(sizes.to_pylist())


def _text_lengths(column: pa.Array) -> pa.Array | None:
    """How many bytes each text has; None for a column without texts."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return pc.binary_length(column)
    return None


def _one_record(
    batch: pa.RecordBatch, index: int, place: Place
) -> dict[str, Any] | Unreadable:
    """The row of a batch in which at least one value is none of Python's."""
    record = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            record[name] = column[index].as_py()
        except UnicodeDecodeError as error:
            return invalid_utf8(error, "a value", place=place, raw=error.object)
        except (ValueError, OverflowError):
            # Such as a year beyond 9999.
            detail = f"{name!r} holds a value that is no valid {column.type}"
            return Unreadable(*place, "wrong_type", detail, b"")
    return record


def _raw(record: dict[str, Any]) -> bytes:
    """The columns that were read as JSON; a row has no bytes of its own."""
    text = json.dumps(record, ensure_ascii=False, default=repr)
    # A half of a surrogate pair cannot be encoded.
    return text.encode(errors="backslashreplace")[:MAX_RAW_BYTES]
