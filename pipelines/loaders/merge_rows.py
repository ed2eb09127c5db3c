"""The statement that puts the rows of the staging table into the table of a run.

It is one statement, so that readers see all rows of the run or none. ClickHouse has no
such promise: there, rows arrive in blocks.
"""

from precis.pipelines.loaders.table_definition import TableDefinition
from precis.pipelines.options.loaders import CLICKHOUSE, POSTGRESQL

_INDENT = "\n  "


def merge_rows(table: TableDefinition) -> list[str]:
    """The merge, and the end of the staging table."""
    if table.dialect.name == POSTGRESQL:
        merge = _insert_or_update(table)
    elif table.dialect.name == CLICKHOUSE:
        merge = _insert(table)
    else:
        merge = _merge(table)
    return [merge, f"DROP TABLE {table.staging}"]


def _merge(table: TableDefinition) -> str:
    nullable = {field.name for field in table.schema if field.nullable}
    conditions = [
        f"target.{table.quoted(name)} "
        f"{table.dialect.null_safe_equal if name in nullable else '='} "
        f"source.{table.quoted(name)}"
        for name in table.key
    ]
    lines = [
        f"MERGE INTO {table.name} AS target",
        f"USING {table.staging} AS source",
        f"ON {' AND '.join(conditions)}",
    ]
    if table.value_columns:
        values = [f"{name} = source.{name}" for name in table.value_columns]
        lines.append(f"WHEN MATCHED THEN UPDATE SET{_INDENT}{_lines(values)}")
    sources = [f"source.{name}" for name in table.columns]
    lines += [
        f"WHEN NOT MATCHED THEN INSERT ({_INDENT}{_lines(table.columns)}",
        f") VALUES ({_INDENT}{_lines(sources)}",
        ")",
    ]
    return "\n".join(lines)


def _insert(table: TableDefinition) -> str:
    columns = _lines(table.columns)
    return (
        f"INSERT INTO {table.name} ({_INDENT}{columns}\n)\n"
        f"SELECT{_INDENT}{columns}\nFROM {table.staging}"
    )


def _insert_or_update(table: TableDefinition) -> str:
    """A row that would be written as it stands is left alone."""
    key = ", ".join(map(table.quoted, table.key))
    insert = _insert(table).replace(
        f"INSERT INTO {table.name} (", f"INSERT INTO {table.name} AS target (", 1
    )
    if not table.value_columns:
        return f"{insert}\nON CONFLICT ({key}) DO NOTHING"
    values = [f"{name} = excluded.{name}" for name in table.value_columns]
    present = [f"target.{name}" for name in table.value_columns]
    new = [f"excluded.{name}" for name in table.value_columns]
    return (
        f"{insert}\nON CONFLICT ({key}) DO UPDATE SET{_INDENT}{_lines(values)}\n"
        f"WHERE ({_INDENT}{_lines(present)}\n"
        f") IS DISTINCT FROM ({_INDENT}{_lines(new)}\n)"
    )


def _lines(items: list[str]) -> str:
    return f",{_INDENT}".join(items)
