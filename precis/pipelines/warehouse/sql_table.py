"""The table of a run as the templates in sql/ read it."""

import posixpath
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.tables.finished_run import FinishedRun, RunPart
from precis.pipelines.warehouse.dialects import Dialect

_RUN_DIGITS = 8
# Databricks and Snowflake take as many names in a statement.
_MOST_FILES = 1000

# A column of the table, or a field of a struct:
#   field                 its name in the run
#   name, text            its name in SQL, as a name and as a text
#   alias                 its name in a view, with that of its struct
#   type                  in SQL
#   comment               its description as a text; "" for none
#   is_nullable, is_list, is_nested, is_binary     of its type
#   fields                of a struct, or of the structs in a list
#   view, position        of a list of structs: the view whose rows are its items, and
#                         the column that says the place of an item
Column = SimpleNamespace


def define_table(
    run: FinishedRun,
    table: str,
    dialect: Dialect,
    *,
    key: Sequence[str],
    location: str,
    copied_rows: str,
) -> SimpleNamespace:
    """The table that takes a run.

    Args:
      run: its first digits are in the name of the staging table.
      table: the name, as in `news.summaries`.
      dialect: of the warehouse.
      key: the names of the columns that tell rows apart.
      location: the folder of the run, as the warehouse sees it.
      copied_rows: the file with the rows, for PostgreSQL.

    Returns:
      name, staging, external, flat_view: the table, the one that takes the rows before
          they are merged, the external one of BigQuery, and the view of all columns, in
          SQL.
      columns, key, values, structs: all columns, those of the key, the others, those
          whose fields are columns of the view; names and key_names in SQL.
      groups: the files of the run by folder, each with place, names and values.
      copied_rows: as above.

    Raises:
      UsageError: a name that the warehouse does not take, or a column whose type it
          does not have.
    """
    # The project of BigQuery may have dots.
    *within, name = table.rsplit(".", 2)
    if not all((*within, name)):
        raise UsageError(f"--table {table!r} is no name; it is like news.summaries")
    columns = {field.name: _column(field, dialect) for field in run.schema}
    for column in columns.values():
        column.view = dialect.quoted(*within, f"{name}_{column.field}")
    staging = f"{name}_staging_{run.run_id[:_RUN_DIGITS]}"
    within_staging = [] if dialect.rules["has_temporary_schema"] else within
    keys = [columns[part] for part in key]
    return SimpleNamespace(
        name=dialect.quoted(*within, name),
        staging=dialect.quoted(*within_staging, staging),
        external=dialect.quoted(*within_staging, f"{staging}_files"),
        flat_view=dialect.quoted(*within, f"{name}_flat"),
        columns=list(columns.values()),
        key=keys,
        values=[column for column in columns.values() if column not in keys],
        structs=[each for each in columns.values() if each.fields and not each.is_list],
        names=[column.name for column in columns.values()],
        key_names=[column.name for column in keys],
        groups=group_files(run.parts, location, dialect),
        copied_rows=copied_rows,
    )


def _column(field: pa.Field, dialect: Dialect, prefix: str = "") -> Column:
    description = (field.metadata or {}).get(b"description", b"").decode()
    is_list = pa.types.is_list(field.type)
    within = field.type.value_type if is_list else field.type
    fields = within if pa.types.is_struct(within) else ()
    alias = f"{prefix}{field.name}"
    return Column(
        field=field.name,
        name=dialect.quoted(field.name),
        text=dialect.literal(field.name),
        alias=dialect.quoted(alias),
        type=dialect.type_of(field.type, alias, may_be_null=field.nullable),
        comment=dialect.literal(description) if description else "",
        is_nullable=field.nullable,
        is_list=is_list,
        is_nested=pa.types.is_nested(field.type),
        is_binary=pa.types.is_binary(field.type),
        fields=[_column(each, dialect, f"{alias}_") for each in fields],
        position=dialect.quoted(f"{alias}_position"),
    )


def group_files(
    parts: Sequence[RunPart], location: str, dialect: Dialect
) -> list[SimpleNamespace]:
    """Files by folder and values of the columns in its name.

    A group has at most as many files as a statement takes. The files are named one by
    one: a pattern would also read the files of a result that is being replaced. The
    columns in the names of folders are values in the statements, because warehouses
    read them in different ways.
    """
    groups: dict[str, list[RunPart]] = {}
    for part in parts:
        # An empty text and a null are in one folder.
        key = repr((posixpath.dirname(part.name), part.partition))
        groups.setdefault(key, []).append(part)
    return [
        SimpleNamespace(
            place=posixpath.join(location, posixpath.dirname(same[0].name), ""),
            names=[
                posixpath.basename(part.name)
                for part in same[start : start + _MOST_FILES]
            ],
            values={
                name: _value(value, dialect)
                for name, value in same[0].partition.items()
            },
        )
        for same in groups.values()
        for start in range(0, len(same), _MOST_FILES)
    ]


def _value(value: Any, dialect: Dialect) -> str:
    """A value of the manifest in SQL; a date is a text there."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else dialect.literal(str(value))
