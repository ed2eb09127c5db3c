"""The schema of a table as a JSON file, for `bq load` and `bq mk`."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from precis.pipelines.loaders.column_types import column_type
from precis.pipelines.loaders.dialects import DIALECTS
from precis.pipelines.options.loaders import BIGQUERY

# The names of the types that differ from those in SQL.
_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN"}
# A description that BigQuery takes.
_MOST_DESCRIPTION = 1024


def bigquery_schema(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    """The columns as BigQuery describes them.

    Raises:
      UsageError: a type that BigQuery does not have.
    """
    return [_column(field) for field in fields]


def _column(field: pa.Field) -> dict[str, Any]:
    kind = field.type
    mode = "NULLABLE" if field.nullable else "REQUIRED"
    if pa.types.is_list(kind):
        kind, mode = kind.value_type, "REPEATED"
    column: dict[str, Any] = {"name": field.name, "mode": mode}
    if pa.types.is_struct(kind):
        column |= {"type": "RECORD", "fields": bigquery_schema(kind)}
    else:
        column |= _plain(column_type(field.with_type(kind), DIALECTS[BIGQUERY]))
    if field.metadata and b"description" in field.metadata:
        text = field.metadata[b"description"].decode()
        column["description"] = text[:_MOST_DESCRIPTION]
    return column


def _plain(name: str) -> dict[str, Any]:
    """A type of SQL: NUMERIC(9, 2) is a type with precision and scale here."""
    name, _, digits = name.rstrip(")").partition("(")
    if not digits:
        return {"type": _NAMES.get(name, name)}
    precision, scale = digits.split(", ")
    return {"type": name, "precision": precision, "scale": scale}
