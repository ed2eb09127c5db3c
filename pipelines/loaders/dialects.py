"""The warehouses: how they write names and texts, and what they call plain types."""

import dataclasses
from collections.abc import Mapping, Sequence

from precis.model.errors import UsageError
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    DUCKDB,
    POSTGRESQL,
    SNOWFLAKE,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dialect:
    """The SQL of a warehouse, as far as names, texts and plain types go.

    Attributes:
      name: as --for has it.
      quote: the character around names.
      escapes_backslash: whether a backslash in a text must be doubled.
      is_upper_case: whether a name without quotes is read in upper case.
      most_name_bytes: the longest name in UTF-8.
      forbidden: characters that the name of a column cannot have.
      decimal: the type of decimal numbers, to be followed by digits and scale.
      most_digits: of a decimal number.
      null_safe_equal: compares two values of which both may be null.
    """

    name: str
    quote: str
    escapes_backslash: bool
    is_upper_case: bool = False
    most_name_bytes: int
    forbidden: str = ""
    decimal: str
    most_digits: int
    null_safe_equal: str = "IS NOT DISTINCT FROM"


DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            name=BIGQUERY,
            quote="`",
            escapes_backslash=True,
            most_name_bytes=300,
            forbidden='!"$()*,./;?@[\\]^`{}~\n\t\r',
            decimal="BIGNUMERIC",
            most_digits=76,
        ),
        Dialect(
            name=SNOWFLAKE,
            quote='"',
            escapes_backslash=True,
            is_upper_case=True,
            most_name_bytes=255,
            decimal="NUMBER",
            most_digits=38,
        ),
        Dialect(
            name=DATABRICKS,
            quote="`",
            escapes_backslash=True,
            most_name_bytes=255,
            forbidden=" ,;{}()\n\t\r=.",
            decimal="DECIMAL",
            most_digits=38,
            null_safe_equal="<=>",
        ),
        Dialect(
            name=DUCKDB,
            quote='"',
            escapes_backslash=False,
            most_name_bytes=1000,
            decimal="DECIMAL",
            most_digits=38,
        ),
        Dialect(
            name=POSTGRESQL,
            quote='"',
            escapes_backslash=False,
            most_name_bytes=63,
            # The command \copy of psql ends with its line.
            forbidden="\n\r",
            decimal="NUMERIC",
            most_digits=1000,
        ),
        Dialect(
            name=CLICKHOUSE,
            quote="`",
            escapes_backslash=True,
            most_name_bytes=200,
            decimal="Decimal",
            most_digits=76,
        ),
    )
}

_COLUMNS = (BIGQUERY, SNOWFLAKE, DATABRICKS, DUCKDB, POSTGRESQL, CLICKHOUSE)
# By the name that Arrow has for the type; an empty text where there is no counterpart.
_PLAIN_TYPES: Mapping[str, Sequence[str]] = {
    "string": ("STRING", "VARCHAR", "STRING", "VARCHAR", "TEXT", "String"),
    "binary": ("BYTES", "BINARY", "BINARY", "BLOB", "BYTEA", "String"),
    "bool": ("BOOL", "BOOLEAN", "BOOLEAN", "BOOLEAN", "BOOLEAN", "Bool"),
    "int8": ("INT64", "INTEGER", "TINYINT", "TINYINT", "SMALLINT", "Int8"),
    "int16": ("INT64", "INTEGER", "SMALLINT", "SMALLINT", "SMALLINT", "Int16"),
    "int32": ("INT64", "INTEGER", "INT", "INTEGER", "INTEGER", "Int32"),
    "int64": ("INT64", "INTEGER", "BIGINT", "BIGINT", "BIGINT", "Int64"),
    "uint8": ("INT64", "INTEGER", "SMALLINT", "UTINYINT", "SMALLINT", "UInt8"),
    "uint16": ("INT64", "INTEGER", "INT", "USMALLINT", "INTEGER", "UInt16"),
    "uint32": ("INT64", "INTEGER", "BIGINT", "UINTEGER", "BIGINT", "UInt32"),
    "uint64": ("", "INTEGER", "DECIMAL(20, 0)", "UBIGINT", "NUMERIC(20, 0)", "UInt64"),
    "float": ("FLOAT64", "FLOAT", "FLOAT", "REAL", "REAL", "Float32"),
    "double": (
        *("FLOAT64", "FLOAT", "DOUBLE", "DOUBLE"),
        *("DOUBLE PRECISION", "Float64"),
    ),
    "date": ("DATE", "DATE", "DATE", "DATE", "DATE", "Date32"),
    "time": ("TIME", "TIME", "", "TIME", "TIME", ""),
    # Without and with a time zone.
    "timestamp": (
        *("DATETIME", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ", "TIMESTAMP", "TIMESTAMP"),
        "DateTime64(6, 'UTC')",
    ),
    "timestamp_utc": (
        *("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPTZ"),
        "DateTime64(6, 'UTC')",
    ),
}


def dialect_named(name: str) -> Dialect:
    """The dialect that --for names.

    Raises:
      UsageError: there is none.
    """
    if name not in DIALECTS:
        raise UsageError(f"--for is one of {', '.join(DIALECTS)}, not {name!r}")
    return DIALECTS[name]


def plain_name(kind: str, dialect: Dialect) -> str:
    """A plain type in SQL; "" if there is none.

    Args:
      kind: the name of the type, as in `int32`, `date` or `timestamp_utc`.
      dialect: of the warehouse.
    """
    names = _PLAIN_TYPES.get(kind)
    return names[_COLUMNS.index(dialect.name)] if names else ""


def quoted(name: str, dialect: Dialect) -> str:
    """A name between quotes.

    Snowflake reads a name without quotes in upper case. Plain names are written so, and
    can be asked for without quotes.
    """
    if dialect.is_upper_case and name.isascii() and name.isidentifier():
        name = name.upper()
    if dialect.name == CLICKHOUSE:
        escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    else:
        escaped = name.replace(dialect.quote, dialect.quote * 2)
    return f"{dialect.quote}{escaped}{dialect.quote}"


def literal(text: str, dialect: Dialect) -> str:
    """A text between single quotes."""
    if dialect.escapes_backslash:
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    return "'" + text.replace("'", "''") + "'"


def check_name(name: str, dialect: Dialect, *, what: str, way_out: str) -> None:
    """Refuses a name that the warehouse does not take.

    Args:
      name: of a table or column.
      dialect: of the warehouse.
      what: what it names, as in "column".
      way_out: what to do.

    Raises:
      UsageError: it is too long or has a character that is not allowed.
    """
    if len(name.encode()) > dialect.most_name_bytes:
        raise UsageError(
            f"{what} {name!r} has {len(name.encode())} bytes, and {dialect.name} takes "
            f"names of at most {dialect.most_name_bytes}; {way_out}"
        )
    bad = next((character for character in name if character in dialect.forbidden), "")
    if bad or "\0" in name:
        raise UsageError(
            f"{what} {name!r} holds the character {bad or chr(0)!r}, which names in "
            f"{dialect.name} cannot have; {way_out}"
        )
