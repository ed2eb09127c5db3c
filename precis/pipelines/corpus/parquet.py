"""`parquet:GLOB`: Parquet files, cut by row group.

Only the needed columns are read.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.formats import describe_format
from precis.pipelines.corpus.opening import UNREADABLE, open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    CorpusFile,
    DeadLetter,
    Fields,
    Place,
    ReadRecord,
    Task,
    unread,
)
from precis.pipelines.corpus.values import field_value

_BATCH_ROWS = 256
# The types of kept fields, by Arrow type name.
_KINDS = {
    "string": r"(large_)?string(_view)?",
    "int64": r"u?int\d+",
    "double": r"halffloat|float|double|decimal.*",
    "bool": r"bool",
    "date": r"date.*",
    "timestamp": r"timestamp.*",
}


def list_tasks(
    corpus_files: Sequence[CorpusFile],
    options: CorpusOptions,
    schema: pa.Schema | None = None,
) -> list[Task]:
    """Groups row groups into tasks of about `task_bytes`, uncompressed; files with an
    unreadable footer get tasks too.

    Args:
      corpus_files: the files.
      options: how to read them.
      schema: the fields of all files, if some need not have all; default: those of
          each file and of its folders.

    Raises:
      UsageError: no file is Parquet, or a file lacks a field that is needed.
    """
    tasks: list[Task] = []
    unreadable = []
    forms: dict[tuple[str, ...], str] = {}
    for file in corpus_files:
        try:
            with open_source(file.path) as opened:
                metadata = pq.read_metadata(opened)
        except (pa.ArrowInvalid, OSError) as error:
            if not is_damage(error):
                raise
            detail = (
                f"its footer cannot be read: {str(error).splitlines()[0]}; name files "
                "that are complete"
            )
            if other := describe_format(file.path, "parquet", options):
                detail = f"it is {other}"
            unreadable.append(file._replace(problem=UNREADABLE, detail=detail))
            continue
        types = _types(file, metadata, options, schema)
        kinds = {name: _kind_of(types[name]) for name in types}
        forms.setdefault(records.main_kinds(kinds, options.fields), file.path)
        fields = options.typed_fields(kinds.__getitem__)
        tasks += _group_tasks(file, metadata, fields, options)
    if unreadable and len(unreadable) == len(corpus_files):
        file = unreadable[0]
        raise UsageError(f"{file.path} cannot be read as Parquet: {file.detail}")
    records.note_mixed_files(forms, options.fields)
    return [*tasks, *listing.unreadable_tasks(unreadable)]


def _types(
    file: CorpusFile,
    metadata: pq.FileMetaData,
    options: CorpusOptions,
    known: pa.Schema | None,
) -> dict[str, pa.DataType]:
    """The types of the fields of a file, by name.

    Raises:
      UsageError: a needed field is missing or occurs twice.
    """
    schema = metadata.schema.to_arrow_schema()
    records.check_repeated(schema.names, options.fields, file.path)
    types = _field_types(known or schema)
    if not known:
        types |= dict.fromkeys(records.folder_values(file.path), pa.string())
    needed, example = options.required_fields, [_example(pa.struct(known or schema))]
    records.check_record_fields(types, needed, options.fields, file.path, example)
    return types


def _field_types(fields: pa.Schema | pa.StructType) -> dict[str, pa.DataType]:
    """The types of columns by name; nested fields are written as `doc.body`, also if
    `doc` is a list of structs.
    """
    types = {}
    for field in fields:
        types[field.name] = field.type
        inner = field.type.value_type if _is_list(field.type) else field.type
        if pa.types.is_struct(inner):
            for name, kind in _field_types(inner).items():
                kind = pa.list_(kind) if _is_list(field.type) else kind
                types.setdefault(f"{field.name}.{name}", kind)
    return types


def _example(kind: pa.DataType) -> Any:
    """A value with an empty text wherever a type has texts."""
    if isinstance(kind, pa.StructType):
        return {field.name: _example(field.type) for field in kind}
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return [_example(kind.value_type)]
    return "" if _kind_of(kind) == "string" else None


def _is_list(kind: pa.DataType | None) -> bool:
    return (
        kind is not None
        and re.match(r"(large_|fixed_size_)?list", str(kind)) is not None
    )


def _column_of(name: str, types: dict[str, pa.DataType]) -> str:
    """The part of the name of a field that Arrow can select: up to the first list."""
    parts = name.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts)))
    return next((each for each in above if _is_list(types.get(each))), name)


def _kind_of(kind: pa.DataType) -> str:
    """The type of a kept field from the type of its column."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    fitting = (name for name in _KINDS if re.fullmatch(_KINDS[name], str(kind)))
    return next(fitting, "json")


def _group_tasks(
    file: CorpusFile, metadata: pq.FileMetaData, fields: Fields, options: CorpusOptions
) -> Iterator[Task]:
    def size_of(group: int) -> int:
        return int(metadata.row_group(group).total_byte_size)

    groups = range(metadata.num_row_groups)
    for run in listing.groups_of(groups, size_of, options.task_bytes):
        if any(metadata.row_group(group).num_rows for group in run):
            size = sum(map(size_of, run))
            yield listing.range_task(file, run[0], run[-1] + 1, size, fields)


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task.

    If part of a row group cannot be decoded, its rows from there onwards are lost;
    other row groups are read.
    """
    with open_source(task.paths[0]) as opened:
        parquet = pq.ParquetFile(
            opened, page_checksum_verification=True, coerce_int96_timestamp_unit="us"
        )
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
    """Reads the records of a row group, with bytes for rows with a blank article."""
    types = _field_types(parquet.schema_arrow)
    names = [name for name in types if name in task.fields.names]
    read = {name: _column_of(name, types) for name in names}
    path, row = task.paths[0], 0
    try:
        for batch in parquet.iter_batches(
            _BATCH_ROWS, row_groups=[group], columns=[*read.values()]
        ):
            columns = [
                _within(_values(batch, read[name]), name.removeprefix(read[name]))
                for name in names
            ]
            for index, values in enumerate(zip(*columns, strict=True), row):
                place = Place(path, f"row group {group} row {index}")
                record = dict(zip(names, values, strict=True))
                yield _to_document(record, task, options.max_record_bytes, place)
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        if not is_damage(error):
            raise
        lost = parquet.metadata.row_group(group).num_rows - row
        message = str(error).splitlines()[0]
        detail = f"rows {row} to {row + lost - 1} of the row group are lost: {message}"
        place = Place(path, f"row group {group} row {row}")
        yield unread(place, "broken_parquet", detail, records=lost), b""


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """The values of a column of a batch, or of a nested field such as `doc.body`.

    A value that Python cannot represent is replaced by the error, so that only its row
    is lost.
    """
    top = max(
        (top for top in batch.schema.names if f"{name}.".startswith(f"{top}.")), key=len
    )
    inner = name.removeprefix(top).split(".")[1:]
    column = pc.struct_field(batch.column(top), inner) if inner else batch.column(top)  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    # Python has no nanoseconds. Casting to seconds may overflow, which Python reports.
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        kind = pa.timestamp("us", column.type.tz)
        column = pc.floor_temporal(column.cast(pa.timestamp("ns")), unit="microsecond")  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
        column = column.cast(kind, safe=False)  # A mere cast would round -1 up to 1970.
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _within(values: list[Any], path: str) -> list[Any]:
    """The fields in the objects of lists, such as those at `.text` of `body.text`."""
    if not path:
        return values
    return [
        value if isinstance(value, Exception) else field_value({"": value}, path)
        for value in values
    ]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:  # For example, a year after 9999.
        return error


def _to_document(
    record: dict[str, Any], task: Task, most: int, place: Place
) -> tuple[Document | DeadLetter, bytes]:
    """The document of a row, or its dead letter; with bytes if the row is blank."""
    for name, value in record.items():
        if isinstance(value, UnicodeDecodeError):
            return records.undecodable(value, "a value", place), value.object
        if isinstance(value, Exception):
            detail = f"{name!r} holds a value that cannot be read: {value}"
            return unread(place, "wrong_type", detail), b""
    texts = [
        json.dumps(value, default=repr) if isinstance(value, list) else value
        for value in record.values()
        if isinstance(value, str | list)
    ]
    size = sum(len(text.encode(errors="surrogatepass")) for text in texts)
    if size > most:
        return records.too_large(size, most, place), b""
    record |= records.folder_values(place.source_file)
    document = records.to_document(record, task.fields, place)
    if isinstance(document, Document) and document.article.strip():
        return document, b""
    # Rows have no bytes, so JSON stands in. Half a surrogate pair cannot be encoded.
    text = json.dumps(record, ensure_ascii=False, default=repr)
    return document, text.encode(errors="backslashreplace")
