"""The statements that read the files of a run into its staging table.

Files are named one by one, as the manifest has them: a pattern would also read the
files of a result that is being replaced. The columns in the names of folders are
written as values, because warehouses read them in different ways.
"""

import dataclasses
import glob
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.pipelines.loaders.column_types import as_nullable
from precis.pipelines.loaders.create_table import column_lines
from precis.pipelines.loaders.dialects import literal
from precis.pipelines.loaders.locations import as_clickhouse_table
from precis.pipelines.loaders.table_definition import TableDefinition
from precis.pipelines.options.loaders import (
    BIGQUERY,
    CLICKHOUSE,
    DATABRICKS,
    DUCKDB,
    POSTGRESQL,
    SNOWFLAKE,
)
from precis.pipelines.warehouse.finished_run import RunPart

# Databricks and Snowflake take as many names in a statement.
_MOST_FILES = 1000


class FileGroup(NamedTuple):
    """Files of a folder with the same values of the columns in its name.

    Attributes:
      folder: within the run.
      names: of the files in it.
      values: of the columns.
    """

    folder: str
    names: Sequence[str]
    values: Mapping[str, Any]


def load_files(
    table: TableDefinition,
    parts: Sequence[RunPart],
    *,
    location: str,
    copied_rows: str = "",
) -> list[str]:
    """Makes the staging table and fills it.

    Args:
      table: of the run.
      parts: the files of the run.
      location: the folder of the run, as the warehouse sees it.
      copied_rows: the file of `copied_rows`, for PostgreSQL.
    """
    groups = group_files(parts)
    statements = [_staging(table)]
    if table.dialect.name == POSTGRESQL:
        columns = ", ".join(table.columns)
        path = literal(copied_rows, table.dialect)
        copy = f"\\copy {table.staging} ({columns}) FROM {path}"
        return [*statements, f"{copy} WITH (ENCODING 'UTF8')"]
    if table.dialect.name == BIGQUERY:
        return [*statements, *_bigquery(table, groups, location)]
    insert = {
        CLICKHOUSE: _clickhouse,
        DATABRICKS: _databricks,
        DUCKDB: _duckdb,
        SNOWFLAKE: _snowflake,
    }[table.dialect.name]
    return [*statements, *(insert(table, group, location) for group in groups)]


def group_files(parts: Sequence[RunPart]) -> list[FileGroup]:
    """Files by folder and values, at most as many as a statement takes."""
    names: dict[str, list[str]] = {}
    groups: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for part in parts:
        folder, name = posixpath.split(part.name)
        # An empty text and a null are in one folder.
        key = repr((folder, part.partition))
        groups[key] = (folder, part.partition)
        names.setdefault(key, []).append(name)
    return [
        FileGroup(folder, names[key][start : start + _MOST_FILES], values)
        for key, (folder, values) in groups.items()
        for start in range(0, len(names[key]), _MOST_FILES)
    ]


def _staging(table: TableDefinition) -> str:
    name = table.dialect.name
    is_temporary = name in (DUCKDB, POSTGRESQL, SNOWFLAKE)
    verb = "CREATE" if name == POSTGRESQL else "CREATE OR REPLACE"
    end = ""
    if name == CLICKHOUSE:
        end = "\nENGINE = MergeTree\nORDER BY tuple()"
    columns = ",\n  ".join(column_lines(table))
    kind = "TEMPORARY TABLE" if is_temporary else "TABLE"
    return f"{verb} {kind} {table.staging} (\n  {columns}\n){end}"


def _selected(
    table: TableDefinition, group: FileGroup, *, from_row: bool = False
) -> Iterator[str]:
    """The columns of a group: from the files, or the values of its folder.

    Args:
      table: with the columns.
      group: of files.
      from_row: whether a file is read as one column, `$1`, of which others are parts.
    """
    for field in table.schema:
        if field.name in group.values:
            value = _value(group.values[field.name], table)
            yield f"CAST({value} AS {table.type_of(field.name)})"
        elif from_row:
            name = field.name.replace('"', '""')
            yield f'$1:"{name}"::{table.type_of(field.name)}'
        else:
            yield table.quoted(field.name)


def _value(value: Any, table: TableDefinition) -> str:
    """A value of the manifest in SQL; a date is a text there."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else literal(str(value), table.dialect)


def _duckdb(table: TableDefinition, group: FileGroup, location: str) -> str:
    paths = [
        literal(glob.escape(_place(location, group, name)), table.dialect)
        for name in group.names
    ]
    return (
        f"{_insert(table)}SELECT {', '.join(_selected(table, group))}\n"
        f"FROM read_parquet([\n  {_lines(paths)}\n], hive_partitioning = false)"
    )


def _clickhouse(table: TableDefinition, group: FileGroup, location: str) -> str:
    structure = ", ".join(
        f"{table.quoted(field.name)} {table.type_of(field.name)}"
        for field in table.schema
        if field.name not in group.values
    )
    source = as_clickhouse_table(
        _place(location, group, ""), group.names, structure, table.dialect
    )
    selected = ", ".join(_selected(table, group))
    return f"{_insert(table)}SELECT {selected}\nFROM {source}"


def _databricks(table: TableDefinition, group: FileGroup, location: str) -> str:
    columns = ", ".join(
        f"{expression} AS {table.quoted(field.name)}"
        if field.name in group.values
        else expression
        for field, expression in zip(table.schema, _selected(table, group), strict=True)
    )
    return (
        f"COPY INTO {table.staging}\nFROM (SELECT {columns}\n"
        f"FROM {literal(_place(location, group, ''), table.dialect)})\n"
        f"FILEFORMAT = PARQUET\nFILES = ({_names(table, group)})\n"
        "COPY_OPTIONS ('force' = 'true')"
    )


def _snowflake(table: TableDefinition, group: FileGroup, location: str) -> str:
    selected = ", ".join(_selected(table, group, from_row=True))
    place = literal(f"{_place(location, group, '')}/", table.dialect)
    return (
        f"COPY INTO {table.staging} ({', '.join(table.columns)})\n"
        f"FROM (SELECT {selected}\nFROM {place})\n"
        f"FILES = ({_names(table, group)})\n"
        "FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE "
        "BINARY_AS_TEXT = FALSE USE_VECTORIZED_SCANNER = TRUE)\nFORCE = TRUE"
    )


def _bigquery(
    table: TableDefinition, groups: Sequence[FileGroup], location: str
) -> Iterator[str]:
    """Files without columns in their folders are loaded, which costs nothing.

    Others are read as an external table, beside the values of their folder.
    """
    for group in groups:
        uris = [
            literal(_place(location, group, name), table.dialect)
            for name in group.names
        ]
        files = f"uris = [\n  {_lines(uris)}\n]"
        options = f"format = 'PARQUET', enable_list_inference = TRUE, {files}"
        if not group.values:
            columns = ", ".join(column_lines(table))
            yield f"LOAD DATA INTO {table.staging} ({columns})\nFROM FILES ({options})"
            continue
        external = f"{table.staging[:-1]}_files`"
        # An external table has no NOT NULL.
        in_files = [
            as_nullable(field)
            for field in table.schema
            if field.name not in group.values
        ]
        lines = column_lines(dataclasses.replace(table, schema=pa.schema(in_files)))
        columns = ", ".join(lines)
        yield (
            f"CREATE OR REPLACE EXTERNAL TABLE {external} ({columns})\n"
            f"OPTIONS ({options})"
        )
        selected = ", ".join(_selected(table, group))
        yield f"{_insert(table)}SELECT {selected}\nFROM {external}"
        yield f"DROP EXTERNAL TABLE {external}"


def _insert(table: TableDefinition) -> str:
    return f"INSERT INTO {table.staging} ({', '.join(table.columns)})\n"


def _names(table: TableDefinition, group: FileGroup) -> str:
    return ", ".join(literal(name, table.dialect) for name in group.names)


def _place(location: str, group: FileGroup, name: str) -> str:
    return "/".join(filter(None, [location.rstrip("/"), group.folder, name]))


def _lines(items: Sequence[str]) -> str:
    return ",\n  ".join(items)
