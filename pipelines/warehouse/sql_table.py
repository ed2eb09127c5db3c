"""The table of a run as the templates in sql/ read it."""

import posixpath
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.tables.finished_run import FinishedRun, RunPart
from precis.pipelines.warehouse.dialects import Dialect

_RUN_DIGITS = 8
# Databricks and Snowflake take as many names in a statement.
_MOST_FILES = 1000
# The suffix of the view with all columns.
_FLAT = "flat"

# A column of the table or of a view, or a field of a struct:
#   field                 its name in the run
#   name, text            its name in SQL, as a name and as a text
#   type                  in SQL
#   comment               its description as a text; "" for none
#   is_nullable, is_list, is_nested, is_binary     of its type
#   alias                 its name in a view, in SQL
#   struct                in a view, the column that it is within
#   is_item, is_position  in a view, whether it is a field of an item of a list, or the
#                         place of the item
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
      name, staging, external: the table, the one that takes the rows before they are
          merged, and the external one of BigQuery, in SQL.
      columns, key, values: all columns, those of the key, the others; names and
          key_names in SQL.
      views: each with name, columns and list, the list whose items are rows.
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
    staging = f"{name}_staging_{run.run_id[:_RUN_DIGITS]}"
    within_staging = [] if dialect.rules["has_temporary_schema"] else within
    keys = [columns[part] for part in key]
    return SimpleNamespace(
        name=dialect.quoted(*within, name),
        staging=dialect.quoted(*within_staging, staging),
        external=dialect.quoted(*within_staging, f"{staging}_files"),
        columns=list(columns.values()),
        key=keys,
        values=[column for column in columns.values() if column not in keys],
        names=[column.name for column in columns.values()],
        key_names=[column.name for column in keys],
        views=[
            SimpleNamespace(
                name=dialect.quoted(*within, f"{name}_{suffix}"),
                columns=list(aliases),
                list=dialect.quoted(suffix) if suffix != _FLAT else "",
            )
            for suffix, aliases in _views(run.schema, key, dialect)
        ],
        groups=group_files(run.parts, location, dialect),
        copied_rows=copied_rows,
    )


def _column(field: pa.Field, dialect: Dialect, **place: Any) -> Column:
    description = (field.metadata or {}).get(b"description")
    values = {
        "field": field.name,
        "name": dialect.quoted(field.name),
        "text": dialect.literal(field.name),
        "type": dialect.column_type(field),
        "comment": dialect.literal(description.decode()) if description else "",
        "is_nullable": field.nullable,
        "is_list": pa.types.is_list(field.type),
        "is_nested": pa.types.is_nested(field.type),
        "is_binary": pa.types.is_binary(field.type),
        "struct": "",
        "is_item": False,
        "is_position": False,
    }
    return Column(**{**values, **place})


def _views(
    schema: pa.Schema, key: Sequence[str], dialect: Dialect
) -> Iterator[tuple[str, list[Column]]]:
    """The views without nested columns where SQL has plain ones: suffix and columns.

    flat         a row per document; the fields of a struct are columns, with the names
                 of `--flat`, such as extractive_quality_words
    extractive   a row per item of the list `extractive`: the key, extractive_position
                 from 0, extractive_rank, ...

    Raises:
      UsageError: two columns have the same name.
    """

    def column(name: str, field: pa.Field, **place: Any) -> Column:
        return _column(field, dialect, alias=dialect.quoted(name), **place)

    flat = []
    for field in schema:
        if not pa.types.is_struct(field.type):
            flat.append(column(field.name, field))
            continue
        struct = dialect.quoted(field.name)
        for child in field.type:
            flat.append(column(f"{field.name}_{child.name}", child, struct=struct))
    names = [each.alias.casefold() for each in flat]
    for each in flat:
        if names.count(each.alias.casefold()) > 1:
            raise UsageError(
                f"the view of all columns would have two columns {each.alias}; give "
                "the field of --keep_fields another name in the corpus"
            )
    yield _FLAT, flat
    for field in schema:
        if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            position = pa.field(f"{field.name}_position", pa.int64())
            yield (
                field.name,
                [
                    *(column(name, schema.field(name)) for name in key),
                    column(position.name, position, is_position=True),
                    *(
                        column(f"{field.name}_{item.name}", item, is_item=True)
                        for item in field.type.value_type
                    ),
                ],
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
