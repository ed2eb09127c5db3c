"""Nested columns as plain ones, for `--flat`, and back again.

    extractive_quality  {words: 9, flags: [too_short]}  -> extractive_quality_words  9
                                                           extractive_quality_flags
                                                           ["too_short"]
    quality_flags       [too_short]                     -> ["too_short"]
    extractive          [{method: lead, rank: 1}]       -> [{"method":"lead","rank":1}]

The fields of a struct become columns. A list, and whatever is nested deeper, becomes
JSON text. `unflatten` gives back the very values, so a flat run can be reused and
evaluated.
"""

import base64
import datetime
import decimal
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from precis.model.errors import UsageError

# In the metadata of a flat schema, and so in the footer of the files.
FLAT_KEY = "precis.flat"


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of flat rows; its metadata says that it is flat.

    Raises:
      UsageError: two columns get the same name.
    """
    fields: list[pa.Field] = []
    origin: dict[str, str] = {}
    for field in schema:
        for flat in _flat_fields(field):
            # Warehouses do not tell upper case from lower case.
            name = flat.name.casefold()
            if name in origin:
                raise UsageError(
                    f"--flat gives two columns the name {flat.name!r}, by the columns "
                    f"{origin[name]!r} and {field.name!r}; leave --flat out, or give "
                    "the field of --keep_fields another name in the corpus"
                )
            origin[name] = field.name
            fields.append(flat)
    return pa.schema(fields, {**(schema.metadata or {}), FLAT_KEY: "true"})


def is_flat(schema: pa.Schema) -> bool:
    """Whether a file with this schema holds flat rows."""
    return (schema.metadata or {}).get(FLAT_KEY.encode()) == b"true"


def flatten(table: pa.Table) -> pa.Table:
    """The rows of a table in its flat schema."""
    schema = flat_schema(table.schema)
    columns: list[pa.Array] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        array = column.combine_chunks()
        if not _is_spread(field):
            columns.append(_as_text(array))
            continue
        # `flatten` makes the fields of a null struct null.
        columns += [_as_text(child) for child in array.flatten()]
    return pa.Table.from_arrays(columns, schema=schema)


def unflatten(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The inverse of `flatten`.

    Args:
      table: flat rows. Further columns are left out.
      schema: of the rows before they were flat.
    """
    columns = []
    for field in schema:
        flat = [table.column(name).combine_chunks() for name in flat_names(field)]
        if not _is_spread(field):
            columns.append(_from_text(flat[0], field.type))
            continue
        children = [
            _from_text(array, child.type)
            for array, child in zip(flat, field.type, strict=True)
        ]
        mask = None
        if field.nullable:
            mask = children[_witness(field)].is_null()
        columns.append(
            pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)
        )
    return pa.Table.from_arrays(columns, schema=schema)


def flat_names(field: pa.Field) -> list[str]:
    """The names of the flat columns of a column."""
    return [flat.name for flat in _flat_fields(field)]


def json_names(schema: pa.Schema) -> list[str]:
    """The names of the flat columns that hold JSON text.

    Args:
      schema: of the rows before they were flat.
    """
    return [
        name
        for field in schema
        for name, child in zip(
            flat_names(field),
            field.type if _is_spread(field) else [field],
            strict=True,
        )
        if pa.types.is_nested(child.type)
    ]


def as_json_text(value: Any, kind: pa.DataType) -> str:
    """A value that is not null as JSON text.

    Args:
      value: as Python has it.
      kind: its type in Arrow.
    """
    return orjson.dumps(_to_json(value, kind)).decode()


def _flat_fields(field: pa.Field) -> Iterator[pa.Field]:
    if not _is_spread(field):
        yield _text_field(field)
        return
    for child in field.type:
        flat = _text_field(child).with_name(f"{field.name}_{child.name}")
        yield flat.with_nullable(child.nullable or field.nullable)


def _text_field(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_nested(field.type) else field


def _is_spread(field: pa.Field) -> bool:
    """Whether the fields of a column become columns.

    Those of a struct do, unless a null struct would look like a struct of nulls.
    """
    if not pa.types.is_struct(field.type):
        return False
    return not field.nullable or _witness(field) >= 0


def _witness(field: pa.Field) -> int:
    """The first field of a struct that is null only where the struct is; -1 if none."""
    return next(
        (number for number, child in enumerate(field.type) if not child.nullable), -1
    )


def _as_text(array: pa.Array) -> pa.Array:
    """An array as JSON text if it is nested, else as it is."""
    kind = array.type
    if not pa.types.is_nested(kind):
        return array
    texts = [
        None if value is None else as_json_text(value, kind)
        for value in array.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _from_text(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_nested(kind):
        return array
    values = [
        None if text is None else _from_json(orjson.loads(text), kind)
        for text in array.to_pylist()
    ]
    return pa.array(values, kind)


def _to_json(value: Any, kind: pa.DataType) -> Any:
    """A value as JSON has it."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind):
        return {child.name: _to_json(value[child.name], child.type) for child in kind}
    if types.is_list(kind):
        return [_to_json(item, kind.value_type) for item in value]
    if types.is_floating(kind):
        if not math.isfinite(value):
            return str(value)  # JSON has no such numbers.
        # The shortest digits of a single-precision number give it back.
        return float(str(np.float32(value))) if types.is_float32(kind) else value
    if types.is_binary(kind):
        return base64.b64encode(value).decode()
    if types.is_decimal(kind):
        return str(value)
    if types.is_temporal(kind):
        return value.isoformat()
    return value


def _from_json(value: Any, kind: pa.DataType) -> Any:
    """The inverse of `_to_json`."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind):
        return {child.name: _from_json(value[child.name], child.type) for child in kind}
    if types.is_list(kind):
        return [_from_json(item, kind.value_type) for item in value]
    if types.is_floating(kind):
        return float(value)
    if types.is_binary(kind):
        return base64.b64decode(value)
    if types.is_decimal(kind):
        return decimal.Decimal(value)
    if types.is_date(kind):
        return datetime.date.fromisoformat(value)
    if types.is_time(kind):
        return datetime.time.fromisoformat(value)
    if types.is_timestamp(kind):
        return datetime.datetime.fromisoformat(value)
    return value
