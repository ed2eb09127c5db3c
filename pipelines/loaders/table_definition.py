"""The table of a run: its names and columns in the SQL of a warehouse."""

import dataclasses
import re
from collections.abc import Sequence

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.loaders.column_types import column_type
from precis.pipelines.loaders.dialects import Dialect, check_name, quoted
from precis.pipelines.options.loaders import BIGQUERY, DUCKDB, POSTGRESQL

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
# The project of BigQuery.
_PROJECT = re.compile(r"[a-z][a-z0-9.:-]*[a-z0-9]")
_MOST_NAMES = 3
_RUN_DIGITS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableDefinition:
    """A table that takes a run.

    Attributes:
      dialect: of the warehouse.
      names: of the table, from the catalogue or schema on.
      run_id: of the run; its first digits are in the name of the staging table.
      schema: the columns of the run, those in the names of its folders among them.
      key: the names of the columns that tell rows apart.
    """

    dialect: Dialect
    names: tuple[str, ...]
    run_id: str
    schema: pa.Schema
    key: Sequence[str]

    @property
    def name(self) -> str:
        """The name of the table in SQL."""
        return self._sql_name(self.names)

    @property
    def staging(self) -> str:
        """The name of the table that takes the rows before they are merged.

        DuckDB and PostgreSQL have a schema of their own for temporary tables.
        """
        *within, last = self.names
        if self.dialect.name in (DUCKDB, POSTGRESQL):
            within = []
        name = f"{last}_staging_{self.run_id[:_RUN_DIGITS]}"
        return self._sql_name([*within, name])

    def view(self, suffix: str) -> str:
        """The name of a view in SQL: that of the table with a suffix."""
        *within, last = self.names
        return self._sql_name([*within, f"{last}_{suffix}"])

    @property
    def columns(self) -> list[str]:
        """The names of all columns in SQL."""
        return [self.quoted(field.name) for field in self.schema]

    @property
    def value_columns(self) -> list[str]:
        """The names of the columns beside the key in SQL."""
        return [
            self.quoted(field.name)
            for field in self.schema
            if field.name not in self.key
        ]

    def quoted(self, name: str) -> str:
        """A name in SQL."""
        return quoted(name, self.dialect)

    def type_of(self, name: str) -> str:
        """The type of a column in SQL."""
        return column_type(self.schema.field(name), self.dialect)

    def _sql_name(self, names: Sequence[str]) -> str:
        return ".".join(quoted(name, self.dialect) for name in names)


def define_table(
    table: str, dialect: Dialect, *, run_id: str, schema: pa.Schema, key: Sequence[str]
) -> TableDefinition:
    """The table of a run.

    Args:
      table: its name, as in `news.summaries`.
      dialect: of the warehouse.
      run_id, schema, key: as in `TableDefinition`.

    Raises:
      UsageError: a name that is not an identifier, a column whose name the warehouse
          does not take, or one whose type it does not have.
    """
    names = table_names(table, dialect)
    for field in schema:
        _check_column_names(field, dialect)
        column_type(field, dialect)
    definition = TableDefinition(
        dialect=dialect, names=names, run_id=run_id, schema=schema, key=tuple(key)
    )
    longest = f"{names[-1]}_staging_{run_id[:_RUN_DIGITS]}"
    check_name(longest, dialect, what="table", way_out="give --table a shorter name")
    return definition


def table_names(table: str, dialect: Dialect) -> tuple[str, ...]:
    """The parts of a table's name.

    Raises:
      UsageError: one of them is not an identifier.
    """
    project, names = "", table
    if dialect.name == BIGQUERY and table.count(".") >= 2:
        project, *rest = table.rsplit(".", 2)
        names = ".".join(rest)
    parts = names.split(".")
    bad = next((part for part in parts if not _IDENTIFIER.fullmatch(part)), None)
    if project and not _PROJECT.fullmatch(project):
        raise UsageError(
            f"--table {table!r}: {project!r} is no project of BigQuery; the name of "
            "one begins with a lower-case letter and has lower-case letters, digits "
            "and -, two characters at least, as in my-project.news.summaries"
        )
    if bad is not None:
        raise UsageError(
            f"--table {table!r}: {bad!r} is not an identifier; a name begins with a "
            "letter or _ and has letters, digits and _, with dots between the parts, "
            "as in news.summaries"
        )
    if len(parts) > _MOST_NAMES:
        raise UsageError(
            f"--table {table!r} has {len(parts)} parts; a table is named by at most "
            "three: catalogue, schema, name"
        )
    return (project, *parts) if project else tuple(parts)


def _check_column_names(field: pa.Field, dialect: Dialect) -> None:
    way_out = (
        "give the field another name in the corpus, or leave it out of --keep_fields"
    )
    check_name(field.name, dialect, what="column", way_out=way_out)
    kind = field.type
    while pa.types.is_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for child in kind:
            _check_column_names(child, dialect)
