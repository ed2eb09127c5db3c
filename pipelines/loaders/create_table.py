"""The statements that make the table of a run, with the descriptions of its columns."""

from precis.pipelines.loaders.dialects import literal
from precis.pipelines.loaders.table_definition import TableDefinition
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    DUCKDB,
    POSTGRESQL,
)


def create_table(table: TableDefinition) -> list[str]:
    """The table, if it is not there.

    PostgreSQL gets a unique index on the key, in which nulls are equal. ClickHouse gets
    the key as the order of the table, and keeps the last row of each key.
    """
    name = table.dialect.name
    columns = column_lines(table, has_comments=True)
    key = ", ".join(map(table.quoted, table.key))
    end = ""
    if name == POSTGRESQL:
        columns.append(f"UNIQUE NULLS NOT DISTINCT ({key})")
    elif name == CLICKHOUSE:
        end = (
            f"\nENGINE = ReplacingMergeTree\nORDER BY ({key})"
            "\nSETTINGS allow_nullable_key = 1"
        )
    elif name == DATABRICKS:
        end = "\nUSING DELTA"
    body = ",\n  ".join(columns)
    statements = [f"CREATE TABLE IF NOT EXISTS {table.name} (\n  {body}\n){end}"]
    if name in (DUCKDB, POSTGRESQL):
        statements += [
            f"COMMENT ON COLUMN {table.name}.{table.quoted(column)} IS "
            + literal(text, table.dialect)
            for column, text in _descriptions(table).items()
        ]
    return statements


def column_lines(table: TableDefinition, *, has_comments: bool = False) -> list[str]:
    """The columns as a statement defines them.

    Args:
      table: with the columns.
      has_comments: whether the descriptions are there, where the dialect has them
          within the statement.
    """
    dialect = table.dialect
    descriptions = _descriptions(table) if has_comments else {}
    lines = []
    for field in table.schema:
        kind = table.type_of(field.name)
        line = f"{table.quoted(field.name)} {kind}"
        # BigQuery has no null arrays, and ClickHouse says Nullable of the others.
        is_array = dialect.name == BIGQUERY and kind.startswith("ARRAY<")
        says_null = dialect.name != CLICKHOUSE and not is_array
        if says_null and not field.nullable:
            line += " NOT NULL"
        text = literal(descriptions.get(field.name, ""), dialect)
        if field.name in descriptions and dialect.name == BIGQUERY:
            line += f" OPTIONS (description = {text})"
        elif field.name in descriptions and dialect.name not in (DUCKDB, POSTGRESQL):
            line += f" COMMENT {text}"
        lines.append(line)
    return lines


def _descriptions(table: TableDefinition) -> dict[str, str]:
    """The descriptions of the columns that have some."""
    return {
        field.name: field.metadata[b"description"].decode()
        for field in table.schema
        if field.metadata and b"description" in field.metadata
    }
