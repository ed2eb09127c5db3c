"""Tests of the flags, names and columns that `precis loaders` refuses."""

import pyarrow as pa
import pytest
from support.loader_runs import SCHEMA, flags_for, make_row, write_rows
from support.warehouse_runs import write_run

from precis.model.errors import UsageError
from precis.pipelines.loaders.dialects import DIALECTS, dialect_named
from precis.pipelines.loaders.loaders import loaders
from precis.pipelines.loaders.table_definition import table_names

REQUIRED = pa.field("x", pa.int32(), nullable=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that could be loaded."""
    return write_rows(tmp_path_factory.mktemp("runs") / "a", [1])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"for_": "mysql"}, "--for is one of bigquery, .*, not 'mysql'"),
        ({"run": ""}, "DIR is empty; give the --output of `precis summarize`"),
        ({"table_key": " ,"}, "--table_key is empty; name the columns"),
        ({"for_": "postgresql"}, "PostgreSQL reads no Parquet; give --copy_rows"),
        (
            {"for_": "postgresql", "copy_rows": "gs://b/rows"},
            "--copy_rows gs://b/rows: psql reads no such place; name a file",
        ),
        (
            {"for_": "postgresql", "copy_rows": "a\nb"},
            r"--copy_rows 'a\\nb' holds a line break, where the command of psql ends",
        ),
        ({"copy_rows": "f"}, "--copy_rows is for PostgreSQL; duckdb reads the files"),
        ({"table": "news; drop"}, "'news; drop' is not an identifier; a name begins"),
        ({"table": "1news"}, "'1news' is not an identifier"),
        ({"table": "news."}, "'' is not an identifier"),
        ({"table": "a.b.c.d"}, "has 4 parts; a table is named by at most three"),
        (
            {"for_": "postgresql", "copy_rows": "f", "table": "t" * 55},
            "table 't+_staging_a' has 65 bytes, and postgresql takes names of at most",
        ),
        ({"for_": "bigquery"}, "BigQuery reads no .*; copy the run to Cloud Storage"),
        ({"for_": "snowflake"}, "Snowflake reads the files of a stage, not .*@STAGE"),
        ({"for_": "databricks"}, "Databricks does not see .*; copy the run to"),
        (
            {"for_": "clickhouse", "location": "az://b/r"},
            "--location az://b/r: statements for ClickHouse read paths",
        ),
        (
            {"for_": "clickhouse", "location": "/runs/{a}"},
            "holds one of .*, which ClickHouse takes for a pattern",
        ),
        (
            {"for_": "postgresql", "copy_rows": "f", "location": "gs://b/r"},
            "--location is not for PostgreSQL",
        ),
    ],
)
def test_flags_that_cannot_be_are_refused(run, flags, message):
    with pytest.raises(UsageError, match=message):
        loaders(**{"run": run, "for_": "duckdb", **flags})


def test_an_unknown_dialect_has_no_sql():
    with pytest.raises(UsageError, match="--for is one of bigquery, .*, not 'mysql'"):
        dialect_named("mysql")


@pytest.mark.parametrize("project", ["Prod`", "p", "my_project"])
def test_a_project_of_bigquery_is_checked(project):
    message = f"'{project}' is no project of BigQuery; the name of one begins with a l"
    with pytest.raises(UsageError, match=message):
        table_names(f"{project}.news.daily", DIALECTS["bigquery"])


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("bigquery", "a`b", "column 'a`b' holds the character '`', which names in big"),
        ("databricks", "a b", "column 'a b' holds the character ' '"),
        ("duckdb", "a\0b", r"column 'a\\x00b' holds the character '\\x00'"),
        (
            "postgresql",
            "a\nb",
            r"column 'a\\nb' holds the character '\\n', which names in postgresql",
        ),
        (
            "postgresql",
            "é" * 32,
            "column '.*' has 64 bytes, and postgresql takes names",
        ),
    ],
)
def test_a_column_that_a_warehouse_cannot_name_is_refused(
    tmp_path, name, column, message
):
    schema = pa.schema([*SCHEMA, pa.field(column, pa.string())])
    run = write_run(tmp_path / "a", [make_row(1, **{column: ""})], schema=schema)
    with pytest.raises(UsageError, match=message):
        loaders(run=run, **flags_for(name, tmp_path))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "abstractive_quality_words",
            pa.int32(),
            "would have two columns 'abstractive_quality_words'; give the field",
        ),
        ("flat", pa.list_(pa.struct([REQUIRED])), "list 'flat' would have the name of"),
        ("l" * 55, pa.list_(pa.struct([REQUIRED])), "view 'summaries_l+' has 65 bytes"),
        (
            "s" * 32,
            pa.struct([("t" * 32, pa.int8())]),
            "column of a view 's+_t+' has 65 bytes",
        ),
    ],
)
def test_views_that_cannot_be_are_refused(tmp_path, name, kind, message):
    schema = pa.schema([*SCHEMA, pa.field(name, kind)])
    run = write_run(tmp_path / "a", [make_row(1, **{name: None})], schema=schema)
    flags = flags_for("postgresql", tmp_path)
    with pytest.raises(UsageError, match=message):
        loaders(run=run, **flags)
