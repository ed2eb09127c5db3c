"""Describes the table of a run for the templates in sql/, and how warehouses write
names, texts and types.

list<struct<rank: int32, text: string>>
    bigquery     ARRAY<STRUCT<`rank` INT64, `text` STRING>>
    databricks   ARRAY<STRUCT<`rank`: INT, `text`: STRING>>
    duckdb       STRUCT("rank" INTEGER, "text" VARCHAR)[]
    clickhouse   Array(Tuple(`rank` Int32, `text` String))
    snowflake    ARRAY
    postgresql   JSONB
"""

import posixpath
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.tables.finished_run import FinishedRun, OutputFile
from precis.pipelines.warehouse.options import WAREHOUSES

SQL_FOLDER = Path(__file__).parent / "sql"
_RUN_DIGITS = 8
# Databricks and Snowflake allow this many names in a statement.
_MOST_FILES = 1000

# A column of the table, or a field of a struct:
#   field                 its name in the run
#   name, text            its name in SQL, as identifier and as text literal
#   alias                 its name in a view, prefixed with its struct's name
#   type                  its type in SQL
#   comment               its description as text literal; "" if it has none
#   is_nullable, is_list, is_nested, is_binary     properties of its type
#   fields                the fields of a struct, or of the structs in a list
#   view, position        for a list of structs: the view with a row for each item, and
#                         the column with the position of the item
Column = SimpleNamespace


class Dialect:
    """How a warehouse writes names, texts and types in SQL.

    Attributes:
      name: the value of --for.
      rules: the content of dialects.toml for it.
      types: SQL types by the names of Arrow types.
    """

    def __init__(self, name: str) -> None:
        content = tomllib.loads((SQL_FOLDER / "dialects.toml").read_text("utf-8"))
        place = WAREHOUSES.index(name)
        self.name = name
        self.rules: dict[str, Any] = {**content["default"], **content[name]}
        self.types = {kind: names[place] for kind, names in content["types"].items()}

    def quoted(self, *names: str) -> str:
        """Quotes names and joins them with dots.

        Snowflake reads unquoted names in upper case. Plain names are written in upper
        case, so that they need no quotes in queries.

        Raises:
          UsageError: a name would end a line of a command.
        """
        quote, within = self.rules["quote"], self.rules["quote_in_name"]
        quoted = []
        for name in names:
            if {*name} & {*"\n\r\0"}:
                raise UsageError(
                    f"{name!r} contains a line break or NUL, which SQL names cannot "
                    "have; rename the field in the corpus, or leave it out of "
                    "--keep_fields"
                )
            if self.rules["is_upper_case"] and name.isascii() and name.isidentifier():
                name = name.upper()
            if within:
                name = name.replace("\\", "\\\\")
            quoted.append(f"{quote}{name.replace(quote, within or 2 * quote)}{quote}")
        return ".".join(quoted)

    def literal(self, text: str) -> str:
        """Quotes a text with single quotes."""
        if not self.rules["escapes_backslash"]:
            return "'" + text.replace("'", "''") + "'"
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"

    def type_of(self, kind: pa.DataType, column: str, *, may_be_null: bool) -> str:
        """The SQL type for an Arrow type, without NOT NULL.

        Args:
          kind: the Arrow type.
          column: the name of the column, for the error.
          may_be_null: whether it, or a struct around it, may be null.

        Raises:
          UsageError: the warehouse has no such type.
        """
        if pa.types.is_struct(kind):
            # JSON columns are checked too, for fields without an SQL type.
            fields = [
                self.rules["field"].format(
                    name=self.quoted(each.name),
                    type=self.type_of(
                        each.type,
                        f"{column}.{each.name}",
                        may_be_null=may_be_null or each.nullable,
                    ),
                )
                for each in kind
            ]
            return self.rules["struct"].format(", ".join(fields))
        if pa.types.is_list(kind):
            item = kind.value_field
            of_item = self.type_of(item.type, column, may_be_null=item.nullable)
            return self.rules["list"].format(of_item)
        if pa.types.is_decimal(kind):
            name = self._decimal(kind)
        else:
            # Leave out width and unit: `timestamp` or `timestamp_utc`, `time`, `date`.
            plain = re.sub(r"(^date|^time)(32|64)|\[.*", r"\1", str(kind))
            has_zone = getattr(kind, "tz", None) is not None
            name = self.types.get(f"{plain}_utc" if has_zone else plain, "")
        if not name:
            raise UsageError(
                f"column {column!r} is {kind}, which {self.name} does not support; "
                "summarize with another type, such as --keep_fields "
                f"{column.split('.')[0]}:string, or without the column"
            )
        return self.rules["nullable"].format(name) if may_be_null else name

    def _decimal(self, kind: Any) -> str:
        whole = kind.precision - kind.scale
        for name, most_whole, most_scale, most_digits in self.rules["decimals"]:
            fits = whole <= most_whole and 0 <= kind.scale <= most_scale
            if fits and kind.precision <= most_digits:
                return f"{name}({kind.precision}, {kind.scale})"
        return ""


def define_table(
    run: FinishedRun,
    table: str,
    dialect: Dialect,
    *,
    key: Sequence[str],
    location: str = "",
    copied_rows: str = "",
    schema: pa.Schema | None = None,
) -> SimpleNamespace:
    """Describes the table that holds a run.

    Args:
      run: the run; its id is part of the staging table's name.
      table: the name of the table, such as `news.summaries`.
      dialect: the SQL of the warehouse.
      key: the names of the columns that identify rows.
      location: the folder of the run, as the warehouse addresses it.
      copied_rows: the path of the file of rows, for PostgreSQL.
      schema: the columns, for a table that gets those that it lacks; None for the
          columns of the run and a table that has them.

    Returns:
      dialect: the argument.
      name, staging, loads, external, flat_view: SQL names of the table, of the table
          that takes rows before the merge, of the list of loaded runs, of BigQuery's
          external table, and of the view of all columns.
      schema: the SQL name of the schema.
      text, schema_text, run_text, loads_text: as text literals the names of the table,
          its schema and the list of loads, and the id of the run.
      columns, key, values, structs: all columns, the key's, the others, and columns
          whose fields are columns of the view; names and key_names in SQL.
      added: the columns that an earlier table may lack.
      groups: the files of the run by folder, each with place, names and values.
      copied_rows: the argument `copied_rows`.

    Raises:
      UsageError: a name or the type of a column is not possible in the warehouse.
    """
    # A BigQuery project may contain dots.
    *within, name = table.rsplit(".", 2)
    if not all((*within, name)):
        raise UsageError(
            f"--table {table!r} is not a name; write it like news.summaries"
        )
    columns = {field.name: _column(field, dialect) for field in schema or run.schema}
    for column in columns.values():
        column.view = dialect.quoted(*within, f"{name}_{column.field}")
    staging = f"{name}_staging_{run.run_id[:_RUN_DIGITS]}"
    within_staging = [] if dialect.rules["has_temporary_schema"] else within
    keys = [columns[each] for each in key]
    values = [column for column in columns.values() if column not in keys]
    return SimpleNamespace(
        dialect=dialect,
        name=dialect.quoted(*within, name),
        staging=dialect.quoted(*within_staging, staging),
        schema=dialect.quoted(*within),
        text=dialect.literal(name),
        schema_text=dialect.literal(within[-1]) if within else "current_schema()",
        run_text=dialect.literal(run.run_id),
        loads=dialect.quoted(*within, f"{name}_loads"),
        loads_text=dialect.literal(f"{name}_loads"),
        external=dialect.quoted(*within_staging, f"{staging}_files"),
        flat_view=dialect.quoted(*within, f"{name}_flat"),
        columns=list(columns.values()),
        key=keys,
        values=values,
        added=values if schema else [],
        structs=[each for each in columns.values() if each.fields and not each.is_list],
        names=[column.name for column in columns.values()],
        key_names=[column.name for column in keys],
        groups=group_files(run.output_files, location, dialect),
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
    output_files: Sequence[OutputFile], location: str, dialect: Dialect
) -> list[SimpleNamespace]:
    """Groups files by folder and by the values of the columns in its name.

    A group has at most as many files as a statement may name. Files are named one by
    one, because a pattern would also match files of a result that is being replaced.
    The columns of folder names are values in the statements, because warehouses read
    them in different ways.
    """
    groups: dict[str, list[OutputFile]] = {}
    for output_file in output_files:
        # Empty text and null share a folder.
        key = repr((posixpath.dirname(output_file.name), output_file.partition))
        groups.setdefault(key, []).append(output_file)
    return [
        SimpleNamespace(
            place=posixpath.join(location, posixpath.dirname(same[0].name), ""),
            names=[
                posixpath.basename(each.name)
                for each in same[start : start + _MOST_FILES]
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
    """Formats a value of the manifest in SQL; dates are texts in the manifest."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else dialect.literal(str(value))
