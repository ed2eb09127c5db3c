"""Turns nested columns into plain columns for `--flat`, and back.

    extractive_quality  {words: 9, flags: [too_short]}  -> extractive_quality_words  9
                                                           extractive_quality_flags
                                                           ["too_short"]
    quality_flags       [too_short]                     -> ["too_short"]
    extractive          [{method: lead, rank: 1}]       -> [{"method":"lead","rank":1}]

The fields of a struct become columns. Lists and deeper levels become JSON text.
`unflatten` restores the exact values, so a flat run can be reused and evaluated.
"""

import base64
import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from precis.model.errors import UsageError

# A key in the metadata of a flat schema, and so in the footer of files.
FLAT_KEY = "precis.flat"


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of flat rows; its metadata marks it as flat.

    Raises:
      UsageError: two columns would have the same name.
    """
    fields: list[pa.Field] = []
    origin: dict[str, str] = {}
    for field in schema:
        for flat in _flat_fields(field):
            # Warehouses ignore the case of names.
            name = flat.name.casefold()
            if name in origin:
                raise UsageError(
                    f"--flat makes two columns named {flat.name!r}, from the columns "
                    f"{origin[name]!r} and {field.name!r}; leave --flat out, or rename "
                    "the field of --keep_fields in the corpus"
                )
            origin[name] = field.name
            is_json = pa.types.is_nested(flat.type)
            fields.append(flat.with_type(pa.string()) if is_json else flat)
    return pa.schema(fields, {**(schema.metadata or {}), FLAT_KEY: "true"})


def is_flat(schema: pa.Schema) -> bool:
    """Whether a file with this schema holds flat rows."""
    return (schema.metadata or {}).get(FLAT_KEY.encode()) == b"true"


def flatten(table: pa.Table) -> pa.Table:
    """Converts the rows of a table to its flat schema."""
    columns: list[pa.Array] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        array = column.combine_chunks()
        # `flatten` makes the fields of a null struct null.
        for child in array.flatten() if _is_spread(field) else [array]:
            if pa.types.is_nested(child.type):
                values = child.to_pylist()
                texts = [
                    v if v is None else as_json_text(v, child.type) for v in values
                ]
                child = pa.array(texts, pa.string())
            columns.append(child)
    return pa.Table.from_arrays(columns, schema=flat_schema(table.schema))


def unflatten(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The inverse of `flatten`. Columns that are not in the schema stay as they are,
    because the original types of kept fields are unknown.

    Args:
      table: flat rows; columns may be missing.
      schema: the schema before flattening: strings, finite numbers, lists, and structs
          of these.
    """
    fields, columns = [], []
    others = {*table.column_names}
    for field in schema:
        children = _flat_fields(field)
        is_whole = {child.name for child in children} <= {*table.column_names}
        others -= {child.name for child in children}
        if not is_whole:
            continue
        flat = []
        for child in children:
            array = table.column(child.name).combine_chunks()
            if pa.types.is_nested(child.type):
                texts = array.to_pylist()
                array = pa.array([t and orjson.loads(t) for t in texts], child.type)
            flat.append(array)
        array = flat[0]
        if _is_spread(field):
            mask = flat[_witness(field)].is_null() if field.nullable else None
            array = pa.StructArray.from_arrays(flat, fields=[*field.type], mask=mask)
        fields.append(field)
        columns.append(array)
    for name in table.column_names:
        if name in others:
            fields.append(table.schema.field(name))
            columns.append(table.column(name))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def flat_names(field: pa.Field) -> list[str]:
    """The names of the flat columns that a column becomes."""
    return [flat.name for flat in _flat_fields(field)]


def as_json_text(value: Any, kind: pa.DataType) -> str:
    """Writes a value as JSON text; it must not be null.

    Args:
      value: the value as a Python object.
      kind: its Arrow type.
    """
    return orjson.dumps(_to_json(value, kind), default=_plain_text).decode()


def _flat_fields(field: pa.Field) -> list[pa.Field]:
    """The flat columns of a column, with their original types."""
    if not _is_spread(field):
        return [field]
    return [
        child.with_name(f"{field.name}_{child.name}").with_nullable(
            child.nullable or field.nullable
        )
        for child in field.type
    ]


def _is_spread(field: pa.Field) -> bool:
    """Whether the fields of a column become columns.

    True for structs, unless a null struct would look like a struct of nulls.
    """
    is_struct = pa.types.is_struct(field.type)
    return is_struct and (not field.nullable or _witness(field) >= 0)


def _witness(field: pa.Field) -> int:
    """The first struct field that is null only if the struct is; -1 if none."""
    required = [n for n, child in enumerate(field.type) if not child.nullable]
    return min(required, default=-1)


def _to_json(value: Any, kind: pa.DataType) -> Any:
    """Converts a value for JSON; dates and times become ISO 8601 text."""
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
        # The shortest decimal digits that identify a single-precision number.
        return float(str(np.float32(value))) if types.is_float32(kind) else value
    return value


def _plain_text(value: Any) -> str:
    """Bytes as base64, a decimal with all its digits."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
