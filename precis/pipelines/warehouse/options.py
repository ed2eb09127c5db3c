"""The options of `precis load` and `precis loaders`, and the addresses for --table.

    iceberg://CATALOG/NAMESPACE.TABLE         a catalogue of pyiceberg's configuration,
                                              in .pyiceberg.yaml or in variables such
                                              as PYICEBERG_CATALOG__CATALOG__URI
    iceberg+sqlite://FOLDER/NAMESPACE.TABLE   a folder with its own catalogue,
                                              FOLDER/catalog.db
    delta://FOLDER                            a Delta table
    duckdb://FILE/SCHEMA.TABLE                in a DuckDB database
    postgresql://USER@HOST/DATABASE#SCHEMA.TABLE
                                              a URI of libpq, and a table after it
    parquet://FILE                            a file without nested columns

A local FOLDER that begins with a slash is absolute: iceberg+sqlite:///data/news.daily
is the table news.daily in /data. A schema may be left out.
"""

import dataclasses
import re
from typing import Any, NamedTuple

from precis.model.config import LOCAL, OUTPUT, Options, comma_list, flag, required
from precis.model.errors import UsageError
from precis.pipelines.run.options import finished_run

ICEBERG = "iceberg"
ICEBERG_SQLITE = "iceberg+sqlite"
DELTA = "delta"
PARQUET = "parquet"
DUCKDB, POSTGRESQL, CLICKHOUSE = "duckdb", "postgresql", "clickhouse"
_ADDRESSES = (
    "iceberg://CATALOG/NAMESPACE.TABLE, iceberg+sqlite://FOLDER/NAMESPACE.TABLE, "
    "delta://FOLDER, duckdb://FILE/TABLE, postgresql://USER@HOST/DATABASE#TABLE or "
    "parquet://FILE"
)


class TableAddress(NamedTuple):
    """The address of a table.

    Attributes:
      scheme: the scheme, such as ICEBERG.
      place: the name of the catalogue, the folder or file, or the URI of the database.
      identifier: namespaces or schema, and table name, joined by dots; empty for Delta
          and Parquet.
    """

    scheme: str
    place: str
    identifier: str


def read_address(text: str) -> TableAddress:
    """Parses an address.

    Raises:
      UsageError: the text is not an address, or not of a place that can be written.
    """
    scheme, _, rest = text.partition("://")
    if scheme in (DELTA, PARQUET) and rest:
        return TableAddress(scheme, rest, "")
    is_postgresql = scheme == POSTGRESQL
    place, _, identifier = rest.rpartition("#" if is_postgresql else "/")
    names = identifier.split(".")
    is_database = is_postgresql or scheme == DUCKDB
    is_known = is_database or scheme in (ICEBERG, ICEBERG_SQLITE)
    is_possible = len(names) <= 2 if is_database else len(names) >= 2
    if not (is_known and place and is_possible and all(names)):
        raise UsageError(f"--table {text!r} is not a table; write {_ADDRESSES}")
    if scheme == DUCKDB and re.match(r"\w*:", place):  # Also `:memory:` and `md:`.
        raise UsageError(
            f"--table {text!r}: DuckDB tables are loaded in a file of this machine; "
            f"name its path, or write a Parquet file: {PARQUET}://FILE"
        )
    place = f"{scheme}://{place}" if is_postgresql else place
    return TableAddress(scheme, place, identifier)


def _table_key(default: str) -> Any:
    """The definition of the flag --table_key."""
    return flag(
        default,
        "columns that identify a row; rows of the run replace rows of the table with "
        "the same key",
        metavar="COLUMN,...",
        takes_list=True,
        is_common=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _KeyedRunOptions(Options):
    """The options of both commands"""

    run: str = finished_run()
    table_key: str = _table_key("document_id,source_file,source_position")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.key:
            raise UsageError(
                "--table_key is empty; name the columns that identify a row, such as "
                "document_id,source_file,source_position"
            )

    @property
    def key(self) -> tuple[str, ...]:
        """The column names in `table_key`, in order."""
        return comma_list(self.table_key)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions(_KeyedRunOptions):
    """Table"""

    table: str = required(
        f"table to load the run into: {_ADDRESSES}; it is created if it does not exist",
        metavar="TABLE",
        is_common=True,
    )
    columns: str = flag(
        "",
        "columns to load, besides those of the key",
        metavar="COLUMN,...",
        default_text="all",
        takes_list=True,
        is_common=True,
    )


LOAD = (LoadOptions,)


WAREHOUSES = ("bigquery", "snowflake", "databricks", DUCKDB, POSTGRESQL, CLICKHOUSE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadersOptions(_KeyedRunOptions):
    """Loaders"""

    table_key: str = _table_key(
        "document_id,source_file,source_position,model_id,decode_id,schema_version"
    )
    for_: str = required(
        "warehouse to write SQL for",
        choices=WAREHOUSES,
        metavar="WAREHOUSE",
        is_common=True,
    )
    table: str = flag(
        "summaries",
        "table to load the run into, with its schema, dataset or catalogue, such as "
        "news.summaries",
        metavar="NAME",
        is_common=True,
    )
    output: str = flag(
        "",
        "folder for create.sql, load.sql, merge.sql and view.sql",
        default_text="print the statements",
        place=OUTPUT,
        is_common=True,
    )
    location: str = flag(
        "",
        "where the warehouse reads the files of the run: gs://, s3://, a stage of "
        "Snowflake such as @news/summaries, or a path",
        metavar="DIR",
        default_text="DIR",
        place=LOCAL,
        is_common=True,
    )
    copy_rows: str = flag(
        "",
        "write the rows of the run to this file, in the text format of COPY, for "
        "PostgreSQL, which cannot read Parquet",
        metavar="FILE",
        default_text="none",
        place=OUTPUT,
        is_common=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        is_copied = self.for_ == POSTGRESQL
        if is_copied != bool(self.copy_rows) or (is_copied and self.location):
            raise UsageError(
                "PostgreSQL needs --copy_rows FILE, as it cannot read Parquet from a "
                "--location; other warehouses do not take --copy_rows"
            )
        if re.search(r"://|[\n\r]", self.copy_rows):
            raise UsageError(
                f"--copy_rows {self.copy_rows!r}: psql cannot read it; name a local "
                "file of the machine that runs psql"
            )


LOADERS = (LoadersOptions,)
