"""`parquet:GLOB`: Parquet files, cut by row group.

Only the columns that are needed are read.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.formats import describe_file
from precis.pipelines.corpus.kept_fields import field_types, kept_types, plain_type
from precis.pipelines.corpus.opening import UNREADABLE, open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    DeadLetter,
    Place,
    ReadRecord,
    SourceFile,
    Task,
    unread,
)

_BATCH_ROWS = 256


def list_tasks(source: Sequence[SourceFile], options: CorpusOptions) -> list[Task]:
    """Runs of row groups of about `task_bytes` each, uncompressed, and the files whose
    footer cannot be read.

    Raises:
      UsageError: none is Parquet, or one lacks a field that is needed.
    """
    tasks: list[Task] = []
    unreadable = []
    first_types: dict[str, pa.DataType] = {}
    for file in source:
        try:
            with open_source(file.path) as opened:
                metadata = pq.read_metadata(opened)
        except (pa.ArrowInvalid, OSError) as error:
            if not is_damage(error):
                raise
            detail = f"its footer cannot be read: {str(error).splitlines()[0]}"
            unreadable.append(file._replace(problem=UNREADABLE, detail=detail))
            continue
        types = _check_columns(file, metadata.schema.to_arrow_schema(), options)
        first_types = first_types or types
        for name, kind in types.items():
            if kind != first_types[name]:
                raise UsageError(
                    f"--keep_fields {name}: it is {kind} in {file.path} and "
                    f"{first_types[name]} in the first file; name a type, as in "
                    f"{name}:string"
                )
        tasks += _group_tasks(file, metadata, options)
    if unreadable and len(unreadable) == len(source):
        file = unreadable[0]
        other = describe_file(file.path)
        raise UsageError(
            f"{file.path} is no Parquet file that can be read ({file.detail}); "
            + (f"it is {other}; " if other else "")
            + "name Parquet files that are whole and not encrypted"
        )
    return [*tasks, *listing.unreadable_tasks(unreadable, holds_one_document=False)]


def _check_columns(
    file: SourceFile, schema: pa.Schema, options: CorpusOptions
) -> dict[str, pa.DataType]:
    """The types of the kept fields of a file.

    Raises:
      UsageError: a field that is needed is missing, or is there twice.
    """
    for name in options.fields.names:
        if schema.names.count(name) > 1:
            raise UsageError(
                f"{file.path} has {schema.names.count(name)} columns named {name!r}, "
                "of which only one could be read; give each column its own name"
            )
    present = field_types(schema)
    records.check_fields(
        present, options.required_fields, file.path, _first_records(file)
    )
    return kept_types(schema, options.fields)


def _first_records(file: SourceFile) -> Iterator[dict[str, Any]]:
    with open_source(file.path) as opened, contextlib.suppress(ValueError, OSError):
        batches = pq.ParquetFile(opened).iter_batches(records.FIRST_RECORDS)
        yield from next(batches).to_pylist()


def _group_tasks(
    file: SourceFile, metadata: pq.FileMetaData, options: CorpusOptions
) -> Iterator[Task]:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    start = 0
    for run in listing.groups_of(
        groups, lambda group: group.total_byte_size, options.task_bytes
    ):
        stop = start + len(run)
        if any(group.num_rows for group in run):
            size = sum(group.total_byte_size for group in run)
            yield listing.range_task(file, start, stop, size, options.fields)
        start = stop


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of a task.

    In a row group that cannot be decoded the rows from there on are lost; the other row
    groups are read.
    """
    with open_source(task.paths[0]) as opened:
        parquet = pq.ParquetFile(opened, page_checksum_verification=True)
        groups = range(task.start, task.stop)
        task_rows = sum(parquet.metadata.row_group(group).num_rows for group in groups)
        rows = 0
        for group in groups:
            for content, raw in _read_group(parquet, group, task, options):
                rows += content.records if isinstance(content, DeadLetter) else 1
                yield ReadRecord(content, rows / task_rows, raw)


def _read_group(
    parquet: pq.ParquetFile, group: int, task: Task, options: CorpusOptions
) -> Iterator[tuple[Document | DeadLetter, bytes]]:
    """The records of a row group, those with a blank article with their bytes."""
    types = field_types(parquet.schema_arrow)
    names = [name for name in types if name in task.fields.names]
    kept = {name: plain_type(types[name]) for name, _ in task.fields.kept}
    path, row = task.paths[0], 0
    try:
        for batch in parquet.iter_batches(
            _BATCH_ROWS, row_groups=[group], columns=names
        ):
            columns = {name: _column(batch, name, kept.get(name)) for name in names}
            rows: list[Any] = [None] * batch.num_rows
            # A value that Python does not have costs its row alone.
            with contextlib.suppress(ValueError, OverflowError):
                rows = pa.RecordBatch.from_pydict(columns).to_pylist()
            for index, record in enumerate(rows):
                place = Place(path, f"row group {group} row {row + index}")
                content = record or _one_record(columns, index, place)
                yield _to_document(content, task, options.max_record_bytes, place)
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if not is_damage(error):
            raise
        lost = parquet.metadata.row_group(group).num_rows - row
        message = str(error).splitlines()[0]
        detail = f"rows {row} to {row + lost - 1} of the row group are lost: {message}"
        place = Place(path, f"row group {group} row {row}")
        yield unread(place, "broken_parquet", detail, records=lost), b""


def _to_document(
    content: dict[str, Any] | DeadLetter, task: Task, most: int, place: Place
) -> tuple[Document | DeadLetter, bytes]:
    """The document of a row, or its dead letter; the row's bytes where it is blank."""
    if isinstance(content, DeadLetter):
        return content, b""
    texts = [value for value in content.values() if isinstance(value, str)]
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    if size > most:
        return records.too_large(size, most, place), b""
    document = records.to_document(content, task.fields, place)
    is_good = isinstance(document, Document) and document.article.strip()
    return document, b"" if is_good else _raw(content)


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType | None) -> pa.Array:
    """A column of a batch, or a field within one, as `doc.body`.

    Args:
      batch: the rows.
      name: of the column.
      kind: the type to cast it to; None for its own.
    """
    top = max(
        (top for top in batch.schema.names if f"{name}.".startswith(f"{top}.")), key=len
    )
    inner = name.removeprefix(top).split(".")[1:]
    column = pc.struct_field(batch.column(top), inner) if inner else batch.column(top)
    if kind is None or column.type == kind:
        return column
    return column.cast(kind, safe=False)  # Nanoseconds are cut to microseconds.


def _one_record(
    columns: dict[str, pa.Array], index: int, place: Place
) -> dict[str, Any] | DeadLetter:
    """A row of which at least one value is none of Python's."""
    record = {}
    for name, column in columns.items():
        try:
            record[name] = column[index].as_py()
        except UnicodeDecodeError as error:
            letter = records.undecodable(error, "a value", place)
            return letter._replace(raw=error.object)
        except (ValueError, OverflowError):  # Such as a year beyond 9999.
            detail = f"{name!r} holds a value that is no valid {column.type}"
            return unread(place, "wrong_type", detail)
    return record


def _raw(record: dict[str, Any]) -> bytes:
    """The columns that were read as JSON; a row has no bytes of its own."""
    text = json.dumps(record, ensure_ascii=False, default=repr)
    # A half of a surrogate pair cannot be encoded.
    return text.encode(errors="backslashreplace")
