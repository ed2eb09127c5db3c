"""The Arrow schemas of the Parquet tables, strict conversion of rows, and the writer.

    summaries      a row per document, by `precis summarize`
    scores         a row per summary with a reference, by `precis evaluate`

docs/SCHEMA.md describes them, and the dead letters of every job.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files, rouge
from precis.model.errors import DataError
from precis.pipelines.tables.columns import SCORES_COLUMNS, SUMMARY_COLUMNS
from precis.pipelines.tables.flat_columns import flat_schema

SCHEMA_VERSION = 5

SUMMARY_SCHEMA = pa.schema(
    SUMMARY_COLUMNS,
    metadata={"precis.schema": "summary", "precis.schema_version": str(SCHEMA_VERSION)},
)
SCORES_SCHEMA = pa.schema(
    SCORES_COLUMNS,
    metadata={
        "precis.schema": "scores",
        "precis.schema_version": "2",
        "precis.variant": rouge.VARIANT,
    },
)


def summary_schema(kept: Iterable[pa.Field] = ()) -> pa.Schema:
    """The schema of the summaries of a corpus.

    Args:
      kept: the columns that travel along from the source.
    """
    return pa.schema([*SUMMARY_SCHEMA, *kept], metadata=SUMMARY_SCHEMA.metadata)


def without_descriptions(schema: pa.Schema) -> pa.Schema:
    """A schema whose fields have no metadata.

    Parts are written so: the descriptions would be a third of their footers.
    """
    return pa.schema([_bare(field) for field in schema], schema.metadata)


def described(schema: pa.Schema) -> pa.Schema:
    """A schema of parts with the descriptions of the columns of the summaries.

    They are not in the files. A field that has metadata of its own keeps it.
    """
    known = {field.name: field for field in flat_schema(SUMMARY_SCHEMA)}
    known |= {field.name: field for field in SUMMARY_SCHEMA}
    return pa.schema(
        [_described(field, known.get(field.name)) for field in schema], schema.metadata
    )


def _described(field: pa.Field, known: pa.Field | None) -> pa.Field:
    if known is None:
        return field
    kind = field.type
    metadata = field.metadata or known.metadata
    if pa.types.is_struct(kind) and pa.types.is_struct(known.type):
        children = {child.name: child for child in known.type}
        kind = pa.struct(
            [_described(child, children.get(child.name)) for child in kind]
        )
    elif pa.types.is_list(kind) and pa.types.is_list(known.type):
        kind = pa.list_(_described(kind.value_field, known.type.value_field))
    return pa.field(field.name, kind, field.nullable, metadata)


def _bare(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_bare(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_bare(kind.value_field))
    return pa.field(field.name, kind, field.nullable)


def summary_table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SUMMARY_SCHEMA
) -> pa.Table:
    """Summary rows as an Arrow table.

    Args:
      rows: each has all columns of the schema.
      schema: of the table.

    Raises:
      DataError: a key is unknown or missing, a value has the wrong type, or a column
          that is not nullable has a null. The message names the column.
    """
    keys = _keys_of(schema)
    for row, values in enumerate(rows):
        _check_keys(values, keys, row)
    columns = [
        _array([values[field.name] for values in rows], field) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_parquet(
    path: str, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> int:
    """Writes a Parquet file with a row group for each batch, and publishes it when it
    is complete.

    Equal batches give equal bytes. Empty batches are left out.

    Returns:
      The number of rows.

    Raises:
      DataError: a batch has another schema.
    """
    rows = 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file, schema, compression="zstd", use_compliant_nested_type=True
        ) as writer,
    ):
        for batch in batches:
            if not batch.schema.equals(schema):
                raise DataError(
                    f"{path}: a batch with columns {batch.schema.names} "
                    "does not have the schema of the file"
                )
            if batch.num_rows:
                writer.write(batch, row_group_size=batch.num_rows)
                rows += batch.num_rows
    return rows


class _Keys(NamedTuple):
    """The keys of a row or of a struct.

    Attributes:
      names: all of them, in the order of the schema.
      nested: of those that hold structs, or lists of structs, whether it is a list, and
          the keys of the structs.
    """

    names: dict[str, None]
    nested: "dict[str, tuple[bool, _Keys]]"


def _keys_of(fields: Iterable[pa.Field]) -> _Keys:
    keys = _Keys({}, {})
    for field in fields:
        keys.names[field.name] = None
        is_list = pa.types.is_list(field.type)
        inner = field.type.value_type if is_list else field.type
        if pa.types.is_struct(inner):
            keys.nested[field.name] = is_list, _keys_of(inner)
    return keys


def _check_keys(values: Any, keys: _Keys, row: int, within: str = "") -> None:
    """Refuses unknown and missing keys, also within lists.

    Arrow itself drops unknown keys and makes missing ones null.
    """
    if not isinstance(values, Mapping):
        raise DataError(
            f"row {row}: column {within.rstrip('.')!r} holds a "
            f"{type(values).__name__} where a mapping is needed"
        )
    if values.keys() != keys.names.keys():
        _refuse_keys(values, keys, row, within)
    for name, (is_list, inner) in keys.nested.items():
        items = values[name]
        if not is_list:
            items = () if items is None else (items,)
        for item in items if isinstance(items, list | tuple) else ():
            _check_keys(item, inner, row, f"{within}{name}.")


def _refuse_keys(
    values: Mapping[str, Any], keys: _Keys, row: int, within: str
) -> NoReturn:
    """Names the first key that is unknown, or else missing."""
    for name in values:
        if name not in keys.names:
            known = ", ".join(keys.names)
            raise DataError(
                f"row {row}: column {within + name!r} is not in the schema; "
                f"known: {known}"
            )
    name = next(name for name in keys.names if name not in values)
    raise DataError(f"row {row}: column {within + name!r} is missing")


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    try:
        array = pa.array(values, type=field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"column {field.name!r} is no {field.type}: {error}") from error
    for name in _columns_with_forbidden_nulls(array, field, field.name):
        raise DataError(
            f"column {name!r} is null in at least one row, "
            "which the schema does not allow"
        )
    return array


def _columns_with_forbidden_nulls(
    array: pa.Array, field: pa.Field, name: str
) -> Iterator[str]:
    if array.null_count and not field.nullable:
        yield name
    if pa.types.is_list(field.type):
        array = array.flatten()
        if array.null_count:
            yield f"{name}[]"
    if pa.types.is_struct(array.type):
        structs = array.drop_null()
        for child in structs.type:
            yield from _columns_with_forbidden_nulls(
                structs.field(child.name), child, f"{name}.{child.name}"
            )
