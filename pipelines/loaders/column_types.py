"""The types of columns in the SQL of a warehouse, nested ones included.

list<struct<rank: int32, text: string>>
    bigquery     ARRAY<STRUCT<`rank` INT64 NOT NULL, `text` STRING NOT NULL>>
    databricks   ARRAY<STRUCT<`rank`: INT, `text`: STRING>>
    duckdb       STRUCT("rank" INTEGER, "text" VARCHAR)[]
    clickhouse   Array(Tuple(`rank` Int32, `text` String))
    snowflake    ARRAY
    postgresql   JSONB
"""

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.loaders.dialects import Dialect, plain_name, quoted
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    POSTGRESQL,
    SNOWFLAKE,
)

# BigQuery has a smaller type for decimal numbers, which most of them fit.
_NUMERIC_SCALE = 9
_NUMERIC_WHOLE_DIGITS = 29
_BIGNUMERIC_SCALE = 38


def column_type(field: pa.Field, dialect: Dialect) -> str:
    """The type of a column, without NOT NULL.

    Raises:
      UsageError: the warehouse has no type for it.
    """
    return _type(field.type, dialect, field.name, may_be_null=field.nullable)


def is_list_of_structs(kind: pa.DataType) -> bool:
    """Whether a view with a row for each item is made of a column."""
    return pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)


def as_nullable(field: pa.Field) -> pa.Field:
    """A column that may be null, and so may all that is in it."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([as_nullable(child) for child in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(as_nullable(kind.value_field))
    return field.with_type(kind).with_nullable(True)


def kind_name(kind: pa.DataType) -> str:
    """The name of a plain type, as `dialects` knows it."""
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp_utc" if kind.tz else "timestamp"
    if types.is_date(kind):
        return "date"
    if types.is_time(kind):
        return "time"
    return str(kind)


def _type(
    kind: pa.DataType, dialect: Dialect, column: str, *, may_be_null: bool
) -> str:
    """A type.

    Args:
      kind: of Arrow.
      dialect: of the warehouse.
      column: where it stands, for the error.
      may_be_null: whether it, or a struct that it is in, may be null.
    """
    types = pa.types
    if types.is_struct(kind):
        return _struct(kind, dialect, column, may_be_null=may_be_null)
    if types.is_list(kind):
        return _list(kind, dialect, column)
    if types.is_decimal(kind):
        name = _decimal(kind, dialect)
    else:
        name = plain_name(kind_name(kind), dialect)
    if not name:
        raise UsageError(
            f"column {column!r} is {kind}, for which {dialect.name} has no type; "
            "summarize with another type, as in "
            f"--keep_fields {column.split('.')[0]}:string, or without the column"
        )
    return f"Nullable({name})" if may_be_null and dialect.name == CLICKHOUSE else name


def _struct(
    kind: pa.StructType, dialect: Dialect, column: str, *, may_be_null: bool
) -> str:
    # Those in JSON are made too, so that a type without a counterpart is found.
    children = [
        (
            child,
            _type(
                child.type,
                dialect,
                f"{column}.{child.name}",
                may_be_null=may_be_null or child.nullable,
            ),
        )
        for child in kind
    ]
    if dialect.name == SNOWFLAKE:
        return "OBJECT"
    if dialect.name == POSTGRESQL:
        return "JSONB"
    colon = ":" if dialect.name == DATABRICKS else ""
    items = ", ".join(
        f"{quoted(child.name, dialect)}{colon} {name}{_not_null(child, dialect)}"
        for child, name in children
    )
    if dialect.name in (BIGQUERY, DATABRICKS):
        return f"STRUCT<{items}>"
    return f"Tuple({items})" if dialect.name == CLICKHOUSE else f"STRUCT({items})"


def _not_null(field: pa.Field, dialect: Dialect) -> str:
    """BigQuery has NOT NULL within structs; a list is never null there."""
    is_needed = not (field.nullable or pa.types.is_list(field.type))
    return " NOT NULL" if is_needed and dialect.name == BIGQUERY else ""


def _list(kind: pa.ListType, dialect: Dialect, column: str) -> str:
    item = _type(
        kind.value_type, dialect, column, may_be_null=kind.value_field.nullable
    )
    if dialect.name == SNOWFLAKE:
        return "ARRAY"
    if dialect.name == POSTGRESQL:
        return "JSONB"
    if dialect.name == CLICKHOUSE:
        return f"Array({item})"
    if dialect.name != BIGQUERY:
        return f"ARRAY<{item}>" if dialect.name == DATABRICKS else f"{item}[]"
    if pa.types.is_list(kind.value_type):
        raise UsageError(
            f"column {column!r} is a list of lists, for which {dialect.name} has no "
            "type; summarize with --flat, which makes JSON text of lists"
        )
    return f"ARRAY<{item}>"


def _decimal(kind: pa.DataType, dialect: Dialect) -> str:
    whole = kind.precision - kind.scale
    name = dialect.decimal
    if dialect.name == BIGQUERY:
        if whole <= _NUMERIC_WHOLE_DIGITS and kind.scale <= _NUMERIC_SCALE:
            name = "NUMERIC"
        elif whole > _BIGNUMERIC_SCALE or kind.scale > _BIGNUMERIC_SCALE:
            return ""
    if kind.precision > dialect.most_digits or kind.scale < 0:
        return ""
    return f"{name}({kind.precision}, {kind.scale})"
