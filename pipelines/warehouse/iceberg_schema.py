"""The columns of an Iceberg table, and how they follow the columns of the runs.

A new column is added and is null in the rows of earlier runs. A column that a run does
not have stays and is null in its rows. Types may grow wider, as int grows to long; any
other change is refused.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.types import ListType, NestedField, StructType

from precis.model.errors import DataError

_FIELD_ID = b"PARQUET:field_id"
_REFUSALS = (
    ResolveError,
    UnsupportedPyArrowTypeException,
    ValidationError,
    ValueError,
    TypeError,
)


def stored_schema(schema: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """The types in which Iceberg keeps a run's columns, with their descriptions.

    Iceberg has no type for small or unsigned integers and no unit of time but the
    microsecond. Columns of the key have no nulls, whatever the run's schema says.
    """
    fields = [_stored_field(field) for field in schema]
    return pa.schema(
        [field.with_nullable(False) if field.name in key else field for field in fields]
    )


def _stored_field(field: pa.Field) -> pa.Field:
    metadata = field.metadata or {}
    if b"description" in metadata:
        # pyiceberg reads the documentation of a field from this name.
        metadata = {b"doc": metadata[b"description"]}
    return pa.field(field.name, _stored_type(field.type), field.nullable, metadata)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_stored_field(field) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        # Iceberg calls the items of every list so.
        return pa.list_(_stored_field(kind.value_field).with_name("element"))
    if types.is_dictionary(kind):
        return _stored_type(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_date(kind):
        return pa.date32()
    if types.is_integer(kind):
        is_small = kind.bit_width + types.is_unsigned_integer(kind) <= 32
        return pa.int32() if is_small else pa.int64()
    return kind


def evolve_schema(transaction: Transaction, schema: pa.Schema) -> None:
    """Changes the table's schema so that rows of the given schema fit in.

    Raises:
      DataError: a column has a type that the table's column cannot take.
    """
    table = transaction.table_metadata.schema()
    columns = {column.name: column for column in table.columns}
    names = set(_names(schema))
    with transaction.update_schema() as update:
        for field in schema:
            known = columns.get(field.name)
            addable = _optional_where_new(field, known)
            try:
                update.union_by_name(pa.schema([addable]))
            except _REFUSALS as error:
                there = f"{known.field_type} in the table" if known else "not supported"
                raise DataError(
                    f"column {field.name!r} is {_short(field.type)} in the run and "
                    f"{there}: {_first_line(error)}; load the run into another table"
                ) from error
        for name in _names_of_table(table.as_struct()):
            parent = name.rpartition(".")[0]
            is_missing = name not in names and (not parent or parent in names)
            if is_missing and table.find_field(name).required:
                update.make_column_optional(name)


def with_field_ids(schema: pa.Schema, table: Schema) -> pa.Schema:
    """The schema of a data file: the run's columns with the ids of the table's."""
    return pa.schema(
        [_with_id(field, table.find_field(field.name)) for field in schema]
    )


def _with_id(field: pa.Field, column: NestedField) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        assert isinstance(column.field_type, StructType)
        children = {child.name: child for child in column.field_type.fields}
        kind = pa.struct([_with_id(child, children[child.name]) for child in kind])
    elif pa.types.is_list(kind):
        assert isinstance(column.field_type, ListType)
        kind = pa.list_(_with_id(kind.value_field, column.field_type.element_field))
    metadata = {_FIELD_ID: str(column.field_id).encode()}
    return pa.field(field.name, kind, field.nullable, metadata)


def _optional_where_new(field: pa.Field, column: NestedField | None) -> pa.Field:
    """The field, nullable wherever the table has no such column yet."""
    if column is None:
        return field.with_nullable(True)
    kind, known = field.type, column.field_type
    if pa.types.is_struct(kind) and isinstance(known, StructType):
        children = {child.name: child for child in known.fields}
        return field.with_type(
            pa.struct(
                [_optional_where_new(child, children.get(child.name)) for child in kind]
            )
        )
    if pa.types.is_list(kind) and isinstance(known, ListType):
        item = _optional_where_new(kind.value_field, known.element_field)
        return field.with_type(pa.list_(item))
    return field


def _names(fields: Any, within: str = "") -> list[str]:
    """The names of all columns, those of nested ones with dots, as Iceberg has them."""
    names = []
    for field in fields:
        name = within + field.name
        names.append(name)
        kind = field.type
        if pa.types.is_list(kind):
            names += _names([kind.value_field], f"{name}.")
        elif pa.types.is_struct(kind):
            names += _names(kind, f"{name}.")
    return names


def _names_of_table(struct: StructType, within: str = "") -> list[str]:
    names = []
    for field in struct.fields:
        name = within + field.name
        names.append(name)
        kind = field.field_type
        if isinstance(kind, ListType):
            kind, name = kind.element_type, f"{name}.element"
        if isinstance(kind, StructType):
            names += _names_of_table(kind, f"{name}.")
    return names


def _short(kind: pa.DataType) -> str:
    text = str(kind)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
