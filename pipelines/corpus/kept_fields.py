"""The columns of the result that hold the fields of `--keep_fields`."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import Fields, Task

_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
    "json_text": pa.string(),
}


def kept_columns(
    tasks: Sequence[Task], *, taken: Collection[str]
) -> tuple[pa.Field, ...]:
    """The columns of the kept fields, in the order in which the user named them.

    `Document.metadata` holds their values by the same names.

    Args:
      tasks: of the corpus; they know the types, which `list_tasks` found out.
      taken: the names of the other columns.

    Raises:
      UsageError: a field has the name of another column, or another type in another
        corpus of the run.
    """
    readable = [task for task in tasks if task.fields.kept] or tasks[:1]
    columns = _columns_of(readable[0], taken)
    for task in readable:
        if task.fields != readable[0].fields and _columns_of(task, taken) != columns:
            raise UsageError(
                f"--keep_fields: a field has one type in {readable[0].paths[0]} and "
                f"another in {task.paths[0]}; name a type, as in FIELD:string"
            )
    return columns


def _columns_of(task: Task, taken: Collection[str]) -> tuple[pa.Field, ...]:
    kept = task.fields.kept
    lower_case = {name.casefold() for name in taken}
    source_types: dict[str, pa.DataType] = {}
    if not all(field.kind for field in kept):
        with files.open_read(task.paths[0]) as opened:
            source_types = kept_types(pq.read_schema(opened), task.fields)
    columns = []
    for name, kind in kept:
        if name.casefold() in lower_case:
            raise UsageError(
                f"--keep_fields {name}: the result has a column of this name already; "
                "give the field another name in the corpus, or leave it out"
            )
        columns.append(
            pa.field(
                name,
                _TYPES[kind] if kind else source_types[name],
                metadata={"description": f"field {name} of the source"},
            )
        )
    return tuple(columns)


def kept_types(schema: pa.Schema, fields: Fields) -> dict[str, pa.DataType]:
    """The types of the kept fields that no type was named for.

    Raises:
      UsageError: a type that has no plain form.
    """
    kinds = field_types(schema)
    types = {}
    for name, kind in fields.kept:
        if not kind:
            types[name] = plain_type(kinds[name])
            if types[name] is None:
                raise UsageError(
                    f"--keep_fields {name}: a column of type {kinds[name]} cannot be "
                    f"kept as it is; write {name}:json to keep it as JSON"
                )
    return types


def field_types(fields: pa.Schema | pa.StructType) -> dict[str, pa.DataType]:
    """The types of columns by name, those of fields within them as `doc.body`."""
    types = {}
    for field in fields:
        types[field.name] = field.type
        if pa.types.is_struct(field.type):
            for name, kind in field_types(field.type).items():
                types.setdefault(f"{field.name}.{name}", kind)
    return types


def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as every reader of Parquet knows it, or None if there is none.

    dictionary<string>, large_string     string
    timestamp[ns, tz=UTC], time64[ns]    timestamp[us, tz=UTC], time64[us]
    large_list<item: date64>             list<element: date32>
    map<string, int64>                   None
    """
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_time64(kind):
        return pa.time64("us")
    if types.is_struct(kind):
        fields = [(field.name, plain_type(field.type)) for field in kind]
        is_plain = bool(fields) and all(inner is not None for _, inner in fields)
        return pa.struct(fields) if is_plain else None
    is_list = types.is_list(kind) or types.is_large_list(kind)
    if is_list or types.is_fixed_size_list(kind):
        item = plain_type(kind.value_type)
        return pa.list_(pa.field("element", item)) if item else None
    is_number = types.is_primitive(kind) and not (
        types.is_float16(kind) or types.is_duration(kind) or types.is_interval(kind)
    )
    is_text = types.is_string(kind) or types.is_binary(kind)
    return kind if is_number or is_text or types.is_decimal(kind) else None
