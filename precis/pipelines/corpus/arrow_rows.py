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
# A document or a dead letter; and bytes for a dead letter, if its article is blank.
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
    items = {
        name: kind.value_type if _is_list(kind) else kind
        for name, kind in types.items()
    }
    for name in types:
        is_needed = any(
            f"{each}.".startswith(f"{name}.") for each in options.fields.names
        )
        if is_needed and _is_variant(types[name]):
            raise UsageError(
                f"{path}: the field {name!r} has the type VARIANT, which is not read; "
                f"write it as JSON, such as CAST({name} AS JSON) of DuckDB or "
                f"to_json({name}) of Spark"
            )
    texts = {name: "" for name in items if kind_of(items[name]) == "string"}
    needed = options.required_fields
    records.check_record_fields(types, needed, options.fields, path, [texts])
    return types


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a type, or a type within it, is how Arrow shows a VARIANT of Parquet."""
    if _is_list(kind):
        return _is_variant(kind.value_type)
    is_struct = isinstance(kind, pa.StructType)
    types = {field.name: field.type for field in kind} if is_struct else {}
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


def _is_list(kind: Any) -> bool:
    return hasattr(kind, "value_field")


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
            _values(few, column, name, is_id=name == task.fields.document_id)
            for name, column in columns.items()
        ]
        for row, each in enumerate(zip(*values, strict=True), first + start):
            record = dict(zip(columns, each, strict=True))
            yield _to_document(record, task, most, Place(path, f"{position} {row}"))


def _values(batch: pa.RecordBatch, column: str, name: str, *, is_id: bool) -> list[Any]:
    """The values of a field.

    A value that Python cannot represent is replaced by the error, so that only its row
    is lost.

    Args:
      batch: the rows.
      column: the column or struct that holds the field, such as `doc.body`.
      name: the name of the field, such as `doc.body.text` if `doc.body` is a list.
      is_id: whether the field is the id, of which nanoseconds are kept, as text.
    """
    top = max(
        (top for top in batch.schema.names if f"{column}.".startswith(f"{top}.")),
        key=len,
    )
    inner = column.removeprefix(top).split(".")[1:]
    array = pc.struct_field(batch.column(top), inner) if inner else batch.column(top)  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    # Python has no nanoseconds. Casting to seconds may overflow, which Python reports.
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        zone = array.type.tz
        if is_id:
            texts = array.cast(pa.timestamp("ns", zone and "UTC")).cast(pa.string())
            return [text and _id_of_time(text) for text in texts.to_pylist()]
        array = pc.floor_temporal(array.cast(pa.timestamp("ns")), unit="microsecond")  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
        # A mere cast would round -1 up to 1970.
        array = array.cast(pa.timestamp("us", zone), safe=False)
    elif pa.types.is_time64(array.type) or pa.types.is_duration(array.type):
        kind = pa.time64 if pa.types.is_time64(array.type) else pa.duration
        array = array.cast(kind("us"), safe=False)
    try:
        values = array.to_pylist()
    except (ValueError, OverflowError):
        values = [_value(scalar) for scalar in array]
    if path := name.removeprefix(column):
        values = [
            value if isinstance(value, Exception) else field_value({"": value}, path)
            for value in values
        ]
    return values


def _id_of_time(text: str) -> str:
    """2024-05-01 10:00:00.120000000Z  ->  2024-05-01T10:00:00.120000Z"""
    return re.sub(r"(\.0{9}|0{3})(?=Z?$)", "", text.replace(" ", "T"))


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError) as error:  # For example, a year after 9999.
        return error


def _to_document(record: dict[str, Any], task: Task, most: int, place: Place) -> Row:
    """The document of a row or its dead letter, and bytes if the article is blank."""
    for name, value in record.items():
        if isinstance(value, UnicodeDecodeError):
            return records.undecodable(value, "a value", place), value.object
        if isinstance(value, Exception):
            detail = f"{name!r} holds a value that cannot be read: {value}"
            return unread(place, "wrong_type", detail), b""
    size = 0
    for value in record.values():
        if isinstance(value, list | dict):
            value = json.dumps(value, default=repr)
        if isinstance(value, str):
            value = value.encode(errors="surrogatepass")
        size += len(value) if isinstance(value, bytes) else 0
    if size > most:
        return records.too_large(size, most, place), b""
    record |= records.folder_values(place.source_file)
    document = records.to_document(record, task.fields, place)
    if isinstance(document, Document) and document.article.strip():
        return document, b""
    # Rows have no bytes, so JSON stands in. Half a surrogate pair cannot be encoded.
    text = json.dumps(record, ensure_ascii=False, default=repr)
    return document, text.encode(errors="backslashreplace")
