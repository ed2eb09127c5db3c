"""Lists Parquet and Arrow files as tasks, and turns their rows into documents."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

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
    Task,
    unread,
)
from precis.pipelines.corpus.values import field_value

BATCH_ROWS = 256  # as Python values at once
# The types of kept fields, by Arrow type name.
_KINDS = {
    "string": r"(large_)?string(_view)?|uint64|decimal.*|.*binary.*|duration.*|"
    r"time[36].*|extension<arrow.uuid>",
    "int64": r"u?int\d+",
    "double": r"halffloat|float|double",
    "bool": r"bool|extension<arrow.bool8>",
    "date": r"date.*",
    "timestamp": r"timestamp.*",
    "json_text": r"extension<arrow.json>",
}
_LIST = re.compile(r"(large_|fixed_size_)?list(_view)?<")
# A record, or its dead letter; and bytes if the row is blank.
Row = tuple[Document | DeadLetter, bytes]
# The schema of a file, and the start, stop and size of each of its tasks.
Head = tuple[pa.Schema, Iterable[tuple[int, int, int]]]


def list_tasks(
    corpus_files: Sequence[CorpusFile],
    options: CorpusOptions,
    scheme: str,
    read_head: Callable[[IO[bytes], CorpusFile, CorpusOptions], Head],
    known: pa.Schema | None = None,
) -> list[Task]:
    """Makes tasks of files; files with an unreadable schema get tasks too.

    Args:
      corpus_files: the files.
      options: how to read them.
      scheme: the scheme of the files.
      read_head: returns the schema and the tasks of a file that it gets open.
      known: as for `_checked_types`.

    Raises:
      UsageError: no file has the format, or a file lacks a field that is needed.
    """
    tasks: list[Task] = []
    unreadable = []
    forms: dict[tuple[str, ...], str] = {}
    for file in corpus_files:
        try:
            with open_source(file.path) as opened:
                schema, ranges = read_head(opened, file, options)
        except (pa.ArrowInvalid, OSError) as error:
            if not is_damage(error):
                raise
            other = describe_format(file.path, scheme, options)
            detail = f"its schema cannot be read: {str(error).splitlines()[0]}"
            detail = f"it is {other}" if other else f"{detail}; name complete files"
            unreadable.append(file._replace(problem=UNREADABLE, detail=detail))
            continue
        types = _checked_types(file.path, schema, options, known)
        kinds = {name: kind_of(types[name]) for name in types}
        forms.setdefault(records.main_kinds(kinds, options.fields), file.path)
        fields = options.typed_fields(kinds.__getitem__)
        tasks += [listing.range_task(file, *each, fields) for each in ranges]
    if unreadable and len(unreadable) == len(corpus_files):
        path, detail = unreadable[0].path, unreadable[0].detail
        raise UsageError(f"{path} cannot be read as {scheme.title()}: {detail}")
    records.note_mixed_files(forms, options.fields)
    return [*tasks, *listing.unreadable_tasks(unreadable)]


def _checked_types(
    path: str, schema: pa.Schema, options: CorpusOptions, known: pa.Schema | None
) -> dict[str, pa.DataType]:
    """The types of the fields of a file, by name.

    Args:
      path: the path of the file, whose folders name further fields.
      schema: the schema of the file.
      options: which fields to read.
      known: the fields of all files, if some need not have all.

    Raises:
      UsageError: a needed field is missing, occurs twice, or has a type that is not
          read.
    """
    records.check_repeated(schema.names, options.fields, path)
    types = field_types(known or schema)
    if not known:
        types |= dict.fromkeys(records.folder_values(path), pa.string())
    needed, example = options.required_fields, [_example(pa.struct(known or schema))]
    records.check_record_fields(types, needed, options.fields, path, example)
    for name in types:
        if name in options.fields.names and _is_variant(types[name]):
            raise UsageError(
                f"{path}: the field {name!r} has the type VARIANT, which is not read; "
                f"write it as JSON, such as CAST({name} AS JSON) of DuckDB or "
                f"to_json({name}) of Spark"
            )
    return types


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a type, or a type within it, is how Arrow shows a VARIANT of Parquet."""
    if not isinstance(kind, pa.StructType):
        return _LIST.match(str(kind)) is not None and _is_variant(kind.value_type)
    types = {field.name: field.type for field in kind}
    is_named = {"metadata", "value"} <= {*types} <= {"metadata", "value", "typed_value"}
    if is_named and pa.types.is_binary(types["metadata"]):
        return True
    return any(map(_is_variant, types.values()))


def field_types(fields: pa.Schema | pa.StructType) -> dict[str, pa.DataType]:
    """The types of columns by name; nested fields are written as `doc.body`, also if
    `doc` is a list of structs.
    """
    types = {}
    for field in fields:
        types[field.name] = field.type
        inner = field.type.value_type if _is_list(field.type) else field.type
        if pa.types.is_struct(inner):
            for name, kind in field_types(inner).items():
                kind = pa.list_(kind) if _is_list(field.type) else kind
                types.setdefault(f"{field.name}.{name}", kind)
    return types


def _example(kind: pa.DataType) -> Any:
    """A value with an empty text wherever a type has texts."""
    if isinstance(kind, pa.StructType):
        return {field.name: _example(field.type) for field in kind}
    if _is_list(kind):
        return [_example(kind.value_type)]
    return "" if kind_of(kind) == "string" else None


def _is_list(kind: pa.DataType | None) -> bool:
    return kind is not None and _LIST.match(str(kind)) is not None


def columns_of(schema: pa.Schema, fields: Fields) -> dict[str, str]:
    """The fields to read that a file has, with the column or struct of each."""
    types = field_types(schema)
    names = (name for name in types if name in fields.names)
    return {name: _column_of(name, types) for name in names}


def _column_of(name: str, types: dict[str, pa.DataType]) -> str:
    """The part of the name of a field that Arrow can select: up to the first list."""
    parts = name.split(".")
    above = (".".join(parts[:count]) for count in range(1, len(parts)))
    return next((each for each in above if _is_list(types.get(each))), name)


def kind_of(kind: pa.DataType) -> str:
    """The type of a kept field from the type of its column."""
    if isinstance(kind, pa.DictionaryType | pa.RunEndEncodedType):
        kind = kind.value_type
    fitting = (name for name in _KINDS if re.fullmatch(_KINDS[name], str(kind)))
    found = next(fitting, "json")
    is_other = found == "json" and isinstance(kind, pa.BaseExtensionType)
    return kind_of(kind.storage_type) if is_other else found


def read_batch(
    batch: pa.RecordBatch,
    columns: dict[str, str],
    task: Task,
    options: CorpusOptions,
    position: str,
    first: int = 0,
) -> Iterator[Row]:
    """Reads the rows of a batch.

    Args:
      batch: the rows.
      columns: the result of `columns_of`.
      task: the task, with the path of the file and the names of the fields.
      options: how to read the corpus.
      position: the position of a row without its number.
      first: the number of the first row.
    """
    path, most = task.paths[0], options.max_record_bytes
    for start in range(0, batch.num_rows, BATCH_ROWS):
        few = batch.slice(start, BATCH_ROWS)
        values = [
            _within(_values(few, column), name.removeprefix(column))
            for name, column in columns.items()
        ]
        if task.fields.document_id in columns:
            place = [*columns].index(task.fields.document_id)
            values[place] = _exact_times(few, task.fields.document_id) or values[place]
        for row, each in enumerate(zip(*values, strict=True), first + start):
            record = dict(zip(columns, each, strict=True))
            yield _to_document(record, task, most, Place(path, f"{position} {row}"))


def _exact_times(batch: pa.RecordBatch, name: str) -> list[str | None]:
    """The times of a column of nanoseconds, which Python cannot hold, as ids; empty for
    other columns.
    """
    kind: Any = name in batch.schema.names and batch.schema.field(name).type
    if not kind or not pa.types.is_timestamp(kind) or kind.unit != "ns":
        return []
    zone = kind.tz
    column = batch.column(name).cast(pa.timestamp("ns", zone and "UTC"))
    texts = pc.strftime(column, format="%Y-%m-%dT%H:%M:%S").to_pylist()  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    return [
        text and re.sub(r"\.0{9}$|0{3}$", "", text) + "Z" * bool(zone) for text in texts
    ]


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
    elif pa.types.is_time64(column.type) or pa.types.is_duration(column.type):
        kind = pa.time64 if pa.types.is_time64(column.type) else pa.duration
        column = column.cast(kind("us"), safe=False)
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


def _to_document(record: dict[str, Any], task: Task, most: int, place: Place) -> Row:
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
