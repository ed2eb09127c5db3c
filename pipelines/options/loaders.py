"""The options of `precis loaders`."""

import dataclasses

from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.pipelines.options.results import finished_run

BIGQUERY = "bigquery"
SNOWFLAKE = "snowflake"
DATABRICKS = "databricks"
DUCKDB = "duckdb"
POSTGRESQL = "postgresql"
CLICKHOUSE = "clickhouse"
WAREHOUSES = (BIGQUERY, SNOWFLAKE, DATABRICKS, DUCKDB, POSTGRESQL, CLICKHOUSE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadersOptions:
    """Loaders"""

    run: str = finished_run()
    for_: str = required(
        "the warehouse whose SQL is written",
        choices=WAREHOUSES,
        metavar="WAREHOUSE",
        is_common=True,
    )
    table: str = flag(
        "summaries",
        "the table that takes the run, with its schema, dataset or catalogue: "
        "news.summaries",
        metavar="NAME",
        is_common=True,
    )
    output: str = flag(
        "",
        "folder for create.sql, load.sql, merge.sql and view.sql, and schema.json for "
        "BigQuery",
        metavar="DIR",
        default_text="the statements are printed",
        is_common=True,
    )
    location: str = flag(
        "",
        "where the warehouse sees the files of the run: gs://, s3://, a stage of "
        "Snowflake as in @news/summaries, a path",
        metavar="DIR",
        default_text="DIR",
        is_common=True,
    )
    copy_rows: str = flag(
        "",
        "file that takes the rows of the run in the text format of COPY, for "
        "PostgreSQL, which reads no Parquet",
        metavar="FILE",
        default_text="none",
        is_common=True,
        is_written=True,
    )
    table_key: str = flag(
        "document_id,source_file,source_position,model_id,decode_id,schema_version",
        "columns that tell the rows of the table apart; rows of the table with the key "
        "of a row of the run are replaced",
        metavar="COLUMN,...",
        takes_list=True,
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if not self.run:
            raise UsageError("DIR is empty; give the --output of `precis summarize`")
        if not self.key:
            raise UsageError(
                "--table_key is empty; name the columns that tell rows apart, as in "
                "document_id,source_file,source_position"
            )
        if self.for_ == POSTGRESQL and not self.copy_rows:
            raise UsageError(
                "PostgreSQL reads no Parquet; give --copy_rows FILE, which takes the "
                "rows in a format that it reads"
            )
        if "://" in self.copy_rows:
            raise UsageError(
                f"--copy_rows {self.copy_rows}: psql reads no such place; name a file "
                "on the machine that runs psql"
            )
        if "\n" in self.copy_rows or "\r" in self.copy_rows:
            raise UsageError(
                f"--copy_rows {self.copy_rows!r} holds a line break, where the command "
                "of psql ends; name another file"
            )
        if self.for_ != POSTGRESQL and self.copy_rows:
            raise UsageError(
                f"--copy_rows is for PostgreSQL; {self.for_} reads the files of the "
                "run, so leave it out"
            )

    @property
    def key(self) -> tuple[str, ...]:
        """The names in `table_key`, in order."""
        return tuple(name.strip() for name in self.table_key.split(",") if name.strip())


LOADERS = (LoadersOptions,)
