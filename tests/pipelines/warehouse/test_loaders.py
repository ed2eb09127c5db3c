"""Tests of `precis loaders`: DuckDB loads runs, the SQL for the other warehouses."""

import json
import subprocess

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from support.command_line import exit_code
from support.loader_runs import (
    LOCATIONS,
    SCHEMA,
    check_loads,
    flags_for,
    make_row,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

from precis.model.errors import DataError, UsageError
from precis.pipelines.tables.finished_run import OutputFile
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.warehouse.loaders import loaders
from precis.pipelines.warehouse.options import WAREHOUSES
from precis.pipelines.warehouse.sql_table import Dialect, group_files

DIALECTS = {name: Dialect(name) for name in WAREHOUSES}


@pytest.fixture
def connection():
    return duckdb.connect()


def load(connection, run, table="summaries", **flags):
    """Runs the statements of a run in DuckDB."""
    for text in loaders(run=run, for_="duckdb", table=table, **flags).files.values():
        connection.execute(text)


def rows_in(connection, table="summaries"):
    return connection.sql(f"FROM {table}").to_arrow_table().to_pylist()


def test_duckdb_has_every_value_and_the_second_load_changes_nothing(
    tmp_path, connection
):
    folder = tmp_path / "runs [a]*?"
    # As a pattern, the path of a run is that of this one.
    write_rows(tmp_path / "runs axy" / "a", [8, 9])
    check_loads(
        folder,
        lambda run, table="summaries": load(connection, run, table),
        lambda table: rows_in(connection, table),
    )
    # The staging tables are gone.
    names = {name for (name,) in connection.sql("SHOW TABLES").fetchall()}
    views = {f"summaries_{name}" for name in ("flat", "extractive", "abstractive")}
    assert {name for name in names if name.startswith("summ")} == {"summaries", *views}


def test_other_models_add_rows_and_the_key_can_be_all_columns(tmp_path, connection):
    runs = [
        write_run(tmp_path / name, [make_row(1, model_id=name)], schema=SCHEMA)
        for name in "mn"
    ]
    schema = pa.schema([pa.field("document_id", pa.string(), nullable=False)])
    run = write_run(tmp_path / "a", [{"document_id": "x"}], schema=schema)
    for _ in range(2):
        for each in runs:
            load(connection, each)
        load(connection, run, "ids", table_key=["document_id"])
    assert sorted(row["model_id"] for row in rows_in(connection)) == ["m", "n"]
    assert rows_in(connection, "ids") == [{"document_id": "x"}]


def test_a_column_that_only_the_table_or_only_the_run_has(tmp_path, connection):
    wide = pa.schema([*SCHEMA, pa.field("topic", pa.string())])
    rows = [make_row(1, topic="t"), make_row(2, topic="t")]
    load(connection, write_run(tmp_path / "a", rows, schema=wide))
    load(connection, write_rows(tmp_path / "b", [2, 3]))
    found = {row["document_id"][:3]: row["topic"] for row in rows_in(connection)}
    assert found == {"d01": "t", "d02": "t", "d03": None}
    wider = pa.schema([*wide, pa.field("editor", pa.string())])
    rows = [make_row(4, topic="u", editor="e")]
    run = write_run(tmp_path / "c", rows, schema=wider)
    with pytest.raises(duckdb.Error, match="editor"):
        load(connection, run)
    assert len(rows_in(connection)) == 3


def test_a_flat_and_partitioned_run_of_the_command_line_is_loaded(
    tmp_path, connection, capsys
):
    run = str(tmp_path / "run")
    layout = ("--partition_by", "split", "--flat")
    assert exit_code("summarize", "--corpus=sample:20", "--output", run, *layout) == 0
    capsys.readouterr()
    for _ in range(2):
        assert exit_code("loaders", run, "--for", "duckdb") == 0
        connection.execute(capsys.readouterr().out)
    flat = "SELECT count(*), min(extractive_quality_words) > 0 FROM summaries_flat"
    assert connection.sql(flat).fetchall() == [(20, True)]
    written = duckdb.read_parquet(f"{run}/data/**/*.parquet", hive_partitioning=True)
    names = ", ".join(f'"{name}"' for name in written.columns)
    in_table = connection.sql(f"SELECT {names} FROM summaries ORDER BY document_id")
    assert in_table.fetchall() == written.order("document_id").fetchall()


COPY = {"for_": "postgresql", "copy_rows": "f"}


def test_flags_that_do_not_fit_are_refused(tmp_path):
    for flags, message in (
        ({"table_key": "id"}, "no column 'id'; its columns are"),
        ({"table_key": " ,"}, "--table_key is empty; name the"),
        ({"run": ""}, "DIR is empty: finished run, the --o"),
        ({"run": "/none"}, "/none does not exist; give the --output of `precis"),
        ({"for_": "mysql"}, "`for_=` must be one of bigquery, .*mysql"),
        ({"table": "news."}, "--table 'news.' is not a name"),
        ({"table": "n\n\\! ls"}, "contains a line break or NUL"),
        ({"for_": "postgresql"}, "PostgreSQL needs --copy_rows FILE"),
        ({"copy_rows": "f"}, "PostgreSQL needs --copy_rows FILE"),
        ({**COPY, "location": "gs://b/r"}, "from a --location"),
        ({**COPY, "copy_rows": "gs://b"}, "psql cannot read it"),
        ({**COPY, "copy_rows": "a\nb"}, "psql cannot read it"),
        ({"for_": "bigquery"}, "cannot read .*; give --location gs://B"),
        ({"for_": "databricks"}, "cannot read .* as in /Volumes/news/"),
        (
            {"for_": "snowflake", "location": "gs://b"},
            "snowflake cannot read gs://b; .*@STAGE/",
        ),
    ):
        values = {"run": write_rows(tmp_path / "a", [1]), "for_": "duckdb", **flags}
        with pytest.raises(UsageError, match=message):
            loaders(output=tmp_path / "sql", **values)
        assert not (tmp_path / "sql").exists()


def test_runs_without_rows_or_with_repeated_keys_are_refused(tmp_path):
    runs = write_run(tmp_path / "a", {}), write_rows(tmp_path / "b", [1, 1])
    with pytest.raises(UsageError, match="has no rows, so .* are unknown; name "):
        loaders(run=runs[0], for_="duckdb", output=tmp_path / "sql")
    with pytest.raises(DataError, match="rows repeat a key, such as"):
        loaders(run=runs[1], for_="duckdb", output=tmp_path / "sql")
    assert not (tmp_path / "sql").exists()


def test_a_warning_is_shown_as_the_flags_say(tmp_path, capsys):
    row = make_row(2, summary="a\0b", quality_flags=[])
    run = write_run(tmp_path / "a", [row], schema=SCHEMA)
    flags = ("--for", "postgresql", "--copy_rows", str(tmp_path / "rows"))
    assert exit_code("loaders", run, *flags, "--progress", "json") == 0
    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (last["command"], last["state"]) == ("loaders", "message")
    assert "warning: 1 NUL characters became U+FFFD, because" in last["message"]
    assert exit_code("loaders", run, *flags, "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_the_last_line_loads_the_run(tmp_path, capsys):
    run = write_rows(tmp_path / "a", range(4))
    flags = ("--output", str(tmp_path / "it's; $HOME sql"))
    assert exit_code("loaders", run, "--for", "duckdb", *flags) == 0
    wrote, following = capsys.readouterr().out.splitlines()
    assert wrote == f"wrote {flags[1]}"
    line = following.removeprefix("next: ")
    subprocess.run(line, shell=True, cwd=tmp_path, check=True, timeout=60)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as opened:
        assert opened.sql("SELECT count(*) FROM summaries").fetchall() == [(4,)]
    place = ("--location", LOCATIONS["databricks"])
    assert exit_code("loaders", run, "--for", "databricks", *flags, *place) == 0
    assert capsys.readouterr().out == f"{wrote}\n"


REQUIRED = pa.field("x", pa.int32(), nullable=False)
SENTENCES = pa.list_(
    pa.field("element", pa.struct([REQUIRED, pa.field("y", pa.list_(pa.string()))]))
)
# A type of Arrow, and the types of the warehouses.
TYPES = {
    SENTENCES: "ARRAY<STRUCT<`x` INT64, `y` ARRAY<STRING>>>|ARRAY|"
    "ARRAY<STRUCT<`x`: INT, `y`: ARRAY<STRING>>>|"
    'STRUCT("x" INTEGER, "y" VARCHAR[])[]|JSONB|'
    "Array(Tuple(`x` Nullable(Int32), `y` Array(Nullable(String))))",
    pa.timestamp("us", "UTC"): "TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP|TIMESTAMPTZ|"
    "TIMESTAMPTZ|DateTime64(6, 'UTC')",
    pa.decimal128(38, 12): "BIGNUMERIC(38, 12)|NUMBER(38, 12)|DECIMAL(38, 12)|"
    "DECIMAL(38, 12)|NUMERIC(38, 12)|Decimal(38, 12)",
    pa.uint32(): "INT64|INTEGER|BIGINT|UINTEGER|BIGINT|UInt32",
}


def test_columns_have_types_in_every_dialect_or_are_refused():
    for kind, types in TYPES.items():
        found = [
            each.type_of(kind, "c", may_be_null=False) for each in DIALECTS.values()
        ]
        assert found == types.split("|")
    moment = pa.struct([("d", pa.time32("ms"))])
    for name, kind, message in (
        ("bigquery", pa.uint64(), "'c' is uint64, which bigquery does not .*c:st"),
        ("bigquery", pa.decimal256(76, 2), "'c' is decimal256"),
        ("clickhouse", moment, r"'c\.d' is time32\[ms\]"),
        ("postgresql", pa.list_(pa.duration("s")), "'c' is duration"),
    ):
        with pytest.raises(UsageError, match=message):
            DIALECTS[name].type_of(kind, "c", may_be_null=True)


PLAIN = ['"Az"', '"a""b"', '"a`b\\c"', "'it''s\\n'", "'a\r\nb'"]
ESCAPED = [r"'it\'s\\n'", r"'a\r\nb'"]
QUOTED = {
    "duckdb": PLAIN,
    "postgresql": PLAIN,
    "snowflake": ['"AZ"', '"a""b"', '"a`b\\c"', *ESCAPED],
    "databricks": ["`Az`", '`a"b`', "`a``b\\c`", *ESCAPED],
    "clickhouse": ["`Az`", '`a"b`', r"`a\`b\\c`", *ESCAPED],
}


def test_names_and_texts_are_quoted():
    for dialect, texts in ((DIALECTS[name], texts) for name, texts in QUOTED.items()):
        names = [dialect.quoted(word) for word in ("Az", 'a"b', "a`b\\c")]
        assert [*names, *map(dialect.literal, ("it's\\n", "a\r\nb"))] == texts


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs with nested columns, in partitions, and with plain columns."""
    folder = tmp_path_factory.mktemp("runs")
    schema = flat_schema(SUMMARY_SCHEMA).remove_metadata()
    row = {field.name: zero_of(field.type) for field in schema}
    write_rows(folder / "nested", range(4))
    write_partitions(folder / "partitioned")
    write_run(folder / "flat", [row], schema=schema)
    return folder


def zero_of(kind):
    return "" if pa.types.is_string(kind) else pa.scalar(0).cast(kind).as_py()


@pytest.mark.parametrize("make", ["nested", "partitioned", "flat"])
@pytest.mark.parametrize("name", DIALECTS)
def test_every_statement_is_parsed_in_its_dialect(tmp_path, runs, name, make):
    table = "prod-1.news.daily" if name == "bigquery" else "prod.news.daily"
    result = loaders(run=runs / make, table=table, **flags_for(name, tmp_path))
    dialect = "postgres" if name == "postgresql" else name
    kinds = []
    for text in result.files.values():
        lines = [line for line in text.splitlines() if not line.startswith("\\copy")]
        for statement in sqlglot.parse("\n".join(lines), dialect=dialect):
            # A statement that sqlglot does not know becomes a Command. It does not know
            # these statements of BigQuery and PostgreSQL.
            is_known = not list(statement.find_all(sqlglot.exp.Command))
            others = ("DROP EXTERNAL TABLE `", "DO $precis$")
            assert is_known or statement.sql().startswith(others)
            kinds.append(type(statement).__name__)
    merge = "Insert" if name in ("clickhouse", "postgresql") else "Merge"
    kinds = [kind for kind in kinds if kind != "Set"]
    assert kinds[0] == "Create" and merge in kinds and "Drop" in kinds


def test_the_rows_for_postgresql(tmp_path):
    columns = {"text": pa.string(), "share": pa.float64(), "thumbnail": pa.binary()}
    columns |= {"is_live": pa.bool_(), "tags": pa.list_(pa.string())}
    key = pa.field("document_id", pa.string(), nullable=False)
    schema = pa.schema([key, *columns.items()])
    rows = [
        ("x", "a\tb\nc\rd\\e \\N", float("-inf"), b"\x00A", True, ["\0", "\\u0000"]),
        ("y", "nul \0 here", float("nan"), None, False, []),
        ("z", None, 0.1, b"", None, None),
    ]
    values = [dict(zip(schema.names, row, strict=True)) for row in rows]
    run = write_run(tmp_path / "a", values, schema=schema)
    path = tmp_path / "rows.copy"
    flags = {"for_": "postgresql", "copy_rows": path, "table_key": "document_id"}
    result = loaders(run=run, **flags)
    tags = '["\ufffd","\\\\\\\\u0000"]'
    assert path.read_text(encoding="utf-8").split("\n") == [
        f"x\ta\\tb\\nc\\rd\\\\e \\\\N\t-inf\t\\\\x0041\tTrue\t{tags}",
        "y\tnul \ufffd here\tnan\t\\N\tFalse\t[]",
        "z\t\\N\t0.1\t\\\\x\t\\N\t\\N",
        "",
    ]
    assert result.replaced_nuls == 2
    copy = result.files["load.sql"].splitlines()[-1]
    assert copy.startswith('\\copy "summaries_staging_a" ("document_id", "text", ')
    assert copy.endswith(f"FROM '{path}' WITH (ENCODING 'UTF8')")


def test_the_loads_name_every_file_and_value(tmp_path):
    run = write_partitions(tmp_path / "a")

    def load(name):
        return loaders(run=run, for_=name, location=LOCATIONS[name]).files["load.sql"]

    uri = "gs://bucket/runs/a/data/split=a%2Fb%27s/day=2026-03-04/part-0.parquet"
    bigquery = load("bigquery")
    assert f"'{uri}'" in bigquery and "CAST('a/b\\'s' AS STRING)" in bigquery
    # An external table has no NOT NULL.
    external = bigquery.partition("CREATE OR REPLACE EXTERNAL TABLE ")[2]
    columns = external.partition("OPTIONS (")[0]
    assert "`rank` INT64" in columns and "NOT NULL" not in columns
    assert "`summary` STRING NOT NULL" in bigquery.removesuffix(external)
    assert "CAST(NULL AS DATE)" in bigquery and "CAST('' AS STRING)" in bigquery
    assert "FROM '@news/runs/a/data/split=test/day=__HIVE_" in load("snowflake")
    # Bytes are not read as texts.
    assert "BINARY_AS_TEXT = FALSE" in load("snowflake")
    assert "FILES = ('part-2.parquet')" in load("databricks")
    assert (
        "s3('https://bucket.s3.amazonaws.com/runs/a/data/split=test/day="
        "__HIVE_DEFAULT_PARTITION__/part-2.parquet', 'Parquet', " in load("clickhouse")
    )


def test_files_are_grouped_by_folder_and_values_at_most_a_thousand_at_once():
    parts = [OutputFile(f"data/p{n}", "", 1, "", {}) for n in range(1001)]
    parts += [OutputFile(f"data/s=n/{v}", "", 1, "", {"s": v}) for v in ("", None, "")]
    groups = group_files(parts, "@news", DIALECTS["snowflake"])
    sizes = [(group.place, len(group.names), group.values) for group in groups]
    # An empty text and a null of one folder are two groups.
    assert sizes == [
        *(("@news/data/", 1000, {}), ("@news/data/", 1, {})),
        *(("@news/data/s=n/", 2, {"s": "''"}), ("@news/data/s=n/", 1, {"s": "NULL"})),
    ]
