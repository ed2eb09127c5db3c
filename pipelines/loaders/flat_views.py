"""Views that have no nested columns where SQL has plain ones.

    summaries_flat         a row per document; the fields of a struct are columns, such
                           as extractive_quality_words
    summaries_extractive   a row per item of the list `extractive`: the key,
                           extractive_position from 0, extractive_rank, ...

Each list of structs has such a view. The names are those of `--flat`.
"""

from typing import NamedTuple

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.loaders.column_types import column_type, is_list_of_structs
from precis.pipelines.loaders.dialects import Dialect, check_name, literal, quoted
from precis.pipelines.loaders.table_definition import TableDefinition
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    DUCKDB,
    POSTGRESQL,
    SNOWFLAKE,
)

# The suffix of the view with all columns.
_FLAT = "flat"


class _ListItems(NamedTuple):
    """How a dialect has the items of a list.

    Attributes:
      clause: of FROM, behind the table, with {column} for the list.
      item: an item.
      position: its place in the list, from 0.
    """

    clause: str
    item: str
    position: str


_ITEMS = {
    BIGQUERY: _ListItems(
        "CROSS JOIN UNNEST({column}) AS list_item WITH OFFSET AS list_position",
        "list_item",
        "list_position",
    ),
    SNOWFLAKE: _ListItems(
        ", LATERAL FLATTEN(INPUT => {column}) AS list", "list.VALUE", "list.INDEX"
    ),
    DATABRICKS: _ListItems(
        "LATERAL VIEW POSEXPLODE({column}) list AS list_position, list_item",
        "list.list_item",
        "list.list_position",
    ),
    DUCKDB: _ListItems(
        "CROSS JOIN LATERAL UNNEST({column}) WITH ORDINALITY AS list(item, number)",
        "list.item",
        "list.number - 1",
    ),
    POSTGRESQL: _ListItems(
        "CROSS JOIN LATERAL jsonb_array_elements({column}) WITH ORDINALITY"
        " AS list(item, number)",
        "list.item",
        "list.number - 1",
    ),
    CLICKHOUSE: _ListItems(
        "ARRAY JOIN {column} AS list_item, arrayEnumerate({column}) AS list_number",
        "list_item",
        "list_number - 1",
    ),
}


def flat_views(table: TableDefinition) -> list[str]:
    """The statements that make the views.

    Raises:
      UsageError: two columns or views have the same name, or a name is too long.
    """
    columns: list[tuple[str, str]] = []
    for field in table.schema:
        base = f"source.{table.quoted(field.name)}"
        if not pa.types.is_struct(field.type):
            columns.append((field.name, base))
            continue
        columns += [
            (f"{field.name}_{child.name}", _field(base, child, table.dialect))
            for child in field.type
        ]
    statements = [_view(table, _FLAT, columns, "")]
    for field in table.schema:
        if not is_list_of_structs(field.type):
            continue
        if field.name.casefold() == _FLAT:
            raise UsageError(
                f"the view of the list {field.name!r} would have the name of the view "
                "of the table; give the field of --keep_fields another name in the "
                "corpus"
            )
        statements.append(_items_view(table, field))
    return statements


def _items_view(table: TableDefinition, field: pa.Field) -> str:
    """A row for each item of a list of structs, with the key of its document."""
    items = _ITEMS[table.dialect.name]
    of_list = field.type.value_field
    columns = [(name, f"source.{table.quoted(name)}") for name in table.key]
    columns.append((f"{field.name}_position", items.position))
    columns += [
        (
            f"{field.name}_{child.name}",
            _field(items.item, child, table.dialect),
        )
        for child in of_list.type
    ]
    column = f"source.{table.quoted(field.name)}"
    return _view(table, field.name, columns, items.clause.format(column=column))


def _view(
    table: TableDefinition, suffix: str, columns: list[tuple[str, str]], clause: str
) -> str:
    names = [name.casefold() for name, _ in columns]
    way_out = "give the field of --keep_fields another name in the corpus"
    name = f"{table.names[-1]}_{suffix}"
    check_name(name, table.dialect, what="view", way_out=way_out)
    for name, _ in columns:
        check_name(name, table.dialect, what="column of a view", way_out=way_out)
        if names.count(name.casefold()) > 1:
            raise UsageError(
                f"the view {table.view(suffix)} would have two columns "
                f"{name!r}; {way_out}"
            )
    selected = ",\n  ".join(
        f"{expression} AS {table.quoted(name)}" for name, expression in columns
    )
    source = f"{table.name} AS source"
    if table.dialect.name == CLICKHOUSE:
        # Rows that a later load replaced are left out.
        source += " FINAL"
    separator = "" if clause.startswith(",") or not clause else "\n"
    return (
        f"CREATE OR REPLACE VIEW {table.view(suffix)} AS\nSELECT\n  {selected}\n"
        f"FROM {source}{separator}{clause}"
    )


def _field(struct: str, field: pa.Field, dialect: Dialect) -> str:
    """A field of a struct as an expression.

    Args:
      struct: the expression of the struct.
      field: of it.
      dialect: of the warehouse.
    """
    name = quoted(field.name, dialect)
    text = literal(field.name, dialect)
    if dialect.name == CLICKHOUSE:
        return f"tupleElement({struct}, {text})"
    if dialect.name == SNOWFLAKE:
        return f"CAST(GET({struct}, {text}) AS {column_type(field, dialect)})"
    if dialect.name != POSTGRESQL:
        return f"{struct}.{name}"
    if pa.types.is_nested(field.type):
        return f"NULLIF({struct} -> {text}, 'null'::jsonb)"
    if pa.types.is_binary(field.type):
        return f"decode({struct} ->> {text}, 'base64')"
    return f"CAST({struct} ->> {text} AS {column_type(field, dialect)})"
