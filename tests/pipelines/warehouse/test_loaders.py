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
    ODD_NAME,
    ODD_SCHEMA,
    SCHEMA,
    flags_for,
    make_row,
    read_rows,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

from precis.model.errors import DataError, UsageError
from precis.pipelines.tables.finished_run import RunPart
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.warehouse.dialects import Dialect
from precis.pipelines.warehouse.loaders import loaders
from precis.pipelines.warehouse.options import WAREHOUSES
from precis.pipelines.warehouse.sql_table import group_files

DIALECTS = {name: Dialect(name) for name in WAREHOUSES}


def load(connection, run, **flags):
    """Runs the statements of a run in DuckDB."""
    for text in loaders(run=run, for_="duckdb", **flags).files.values():
        connection.execute(text)


def rows_in(connection, table="summaries"):
    """The rows of a table by document."""
    relation = connection.sql(f"SELECT * FROM {table}")
    rows = [
        dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()
    ]
    found = {row["document_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture
def connection():
    return duckdb.connect()


def test_duckdb_has_every_value_and_the_second_load_changes_nothing(
    tmp_path, connection
):
    run = write_rows(tmp_path / "run [a]*?", range(8))
    # As a pattern, the path of the run is that of this one.
    write_rows(tmp_path / "run axy", [8, 9])
    load(connection, run)
    assert rows_in(connection) == read_rows(run)
    load(connection, run)
    assert rows_in(connection) == read_rows(run)
    # The staging table is gone.
    tables = {name for (name,) in connection.sql("SHOW TABLES").fetchall()}
    views = {"summaries_flat", "summaries_extractive", "summaries_abstractive"}
    assert tables == {"summaries", *views}


def test_a_later_run_replaces_its_rows_and_no_others(tmp_path, connection):
    first = write_rows(tmp_path / "a", range(8))
    second = write_rows(tmp_path / "b", range(6, 10), split="new")
    load(connection, first)
    load(connection, second)
    assert rows_in(connection) == read_rows(first) | read_rows(second)


def test_another_model_adds_rows(tmp_path, connection):
    run_a = write_run(tmp_path / "a", [make_row(1)], schema=SCHEMA)
    others = [make_row(1, model_id="n")]
    run_b = write_run(tmp_path / "b", others, schema=SCHEMA)
    for run in (run_a, run_b, run_a, run_b):
        load(connection, run)
    found = connection.sql("SELECT model_id FROM summaries")
    assert sorted(found.fetchall()) == [("m",), ("n",)]


def test_a_name_with_quotes_is_a_column(tmp_path, connection):
    rows = [make_row(1, **{ODD_NAME: "x"})]
    load(connection, write_run(tmp_path / "a", rows, schema=ODD_SCHEMA))
    (row,) = rows_in(connection).values()
    assert row[ODD_NAME] == "x"


def test_the_key_can_be_all_columns(tmp_path, connection):
    schema = pa.schema([pa.field("document_id", pa.string(), nullable=False)])
    run = write_run(tmp_path / "a", [{"document_id": "x"}], schema=schema)
    for _ in range(2):
        load(connection, run, table_key=["document_id"])
    assert connection.sql("SELECT * FROM summaries").fetchall() == [("x",)]


def test_a_column_that_only_the_table_or_only_the_run_has(tmp_path, connection):
    wide = pa.schema([*SCHEMA, pa.field("topic", pa.string())])
    rows = [make_row(1, topic="t"), make_row(2, topic="t")]
    load(connection, write_run(tmp_path / "a", rows, schema=wide))
    load(connection, write_rows(tmp_path / "b", [2, 3]))
    found = {key[:3]: row["topic"] for key, row in rows_in(connection).items()}
    assert found == {"d01": "t", "d02": "t", "d03": None}
    wider = pa.schema([*wide, pa.field("editor", pa.string())])
    rows = [make_row(4, topic="u", editor="e")]
    run = write_run(tmp_path / "c", rows, schema=wider)
    with pytest.raises(duckdb.Error, match="editor"):
        load(connection, run)
    assert len(rows_in(connection)) == 3


def test_the_columns_of_folders_come_from_the_manifest(tmp_path, connection):
    load(connection, write_partitions(tmp_path / "a"))
    load(connection, write_partitions(tmp_path / "a2"))
    found = connection.sql("SELECT split, CAST(day AS VARCHAR) FROM summaries")
    assert sorted(found.fetchall(), key=lambda row: row[0]) == [
        ("", "2026-03-04"),
        ("a/b's", "2026-03-04"),
        ("test", None),
    ]


def test_the_views_have_a_column_for_each_field_and_a_row_for_each_item(
    tmp_path, connection
):
    run = write_rows(tmp_path / "a", range(8))
    load(connection, run)
    rows = read_rows(run)
    flat = rows_in(connection, "summaries_flat")
    for document, row in rows.items():
        quality = row["abstractive_quality"] or {}
        assert flat[document]["abstractive_quality_words"] == quality.get("words")
        assert flat[document]["abstractive_quality_flags"] == quality.get("flags")
    found = connection.sql(
        "SELECT document_id, extractive_position, extractive_rank, extractive_text "
        "FROM summaries_extractive ORDER BY ALL"
    )
    assert found.fetchall() == [
        (document, place, item["rank"], item["text"])
        for document, row in sorted(rows.items())
        for place, item in enumerate(row["extractive"])
    ]


def test_a_flat_and_partitioned_run_of_the_command_line_is_loaded(
    tmp_path, connection, capsys
):
    run = tmp_path / "run"
    flags = ("--partition_by", "split,created_date", "--flat")
    corpus = ("--corpus", "sample:20", "--output", str(run))
    assert exit_code("summarize", *corpus, *flags) == 0
    capsys.readouterr()
    for _ in range(2):
        assert exit_code("loaders", str(run), "--for", "duckdb") == 0
        connection.execute(capsys.readouterr().out)
    flat = "SELECT count(*), min(extractive_quality_words) > 0 FROM summaries_flat"
    assert connection.sql(flat).fetchall() == [(20, True)]
    written = duckdb.read_parquet(f"{run}/data/**/*.parquet", hive_partitioning=True)
    names = ", ".join(f'"{name}"' for name in written.columns)
    in_table = connection.sql(f"SELECT {names} FROM summaries ORDER BY document_id")
    assert in_table.fetchall() == written.order("document_id").fetchall()


def test_a_run_and_files_may_have_addresses_of_files(tmp_path, connection, capsys):
    run = write_rows(tmp_path / "a", range(4))
    load(connection, f"file://{run}")
    assert rows_in(connection) == read_rows(run)
    flags = ("--for", "duckdb", "--output", f"file://{tmp_path}/sql")
    assert exit_code("loaders", f"file://{run}", *flags) == 0
    assert f"\nnext: cat {tmp_path}/sql/*.sql | " in capsys.readouterr().out


def damaged(folder):
    run = write_rows(folder, range(4))
    part = folder / "data" / f"part-{folder.name}-00001-of-00002.parquet"
    content = bytearray(part.read_bytes())
    content[50] ^= 1
    part.write_bytes(content)
    return run


def unfinished(folder):
    run = write_rows(folder, range(4))
    (folder / "_SUCCESS").unlink()
    return run


def with_column(name, kind=None):
    """Writes a run that has another column, without values."""

    def write(folder):
        schema = pa.schema([*SCHEMA, pa.field(name, kind or pa.string())])
        return write_run(folder, [make_row(1, **{name: None})], schema=schema)

    return write


def of_rows(*numbers):
    """Writes a run of some rows."""
    return lambda folder: write_rows(folder, numbers)


POSTGRESQL = {"for_": "postgresql", "copy_rows": "f"}


@pytest.mark.parametrize(
    ("make", "flags", "error", "message"),
    [
        (str, {}, UsageError, "a does not exist; give the --output of"),
        (unfinished, {}, UsageError, "is not finished: _SUCCESS is not there"),
        (damaged, {}, DataError, "part-a-00001-of-00002.parquet: has another content"),
        (
            lambda folder: write_run(folder, {}),
            {},
            UsageError,
            "has no rows, and so no columns that a table could have",
        ),
        (of_rows(1, 1), {}, DataError, "is the key of more than one row"),
        (
            of_rows(1),
            {"table_key": "id"},
            UsageError,
            "no column 'id'; it has document",
        ),
        (of_rows(1), {"table_key": "share"}, UsageError, "'share' is double; a key is"),
        (of_rows(1), {"table_key": " ,"}, UsageError, "--table_key is empty; name the"),
        (of_rows(1), {"run": ""}, UsageError, "DIR is empty; give the --output of"),
        (
            of_rows(1),
            {"for_": "mysql"},
            UsageError,
            "--for is one of bigquery, .*mysql",
        ),
        (of_rows(1), {"table": "news."}, UsageError, "--table 'news.' is no name"),
        (of_rows(1), {"table": "n\n\\! ls"}, UsageError, "holds a line break or NUL"),
        (with_column("a\nb"), {}, UsageError, r"'a\\nb' holds a line break or NUL"),
        (
            with_column("abstractive_quality_words", pa.int32()),
            {},
            UsageError,
            'have two columns "abstractive_quality_words"; give the field of',
        ),
        (
            of_rows(1),
            {"for_": "postgresql"},
            UsageError,
            "--copy_rows FILE takes the r",
        ),
        (of_rows(1), {"copy_rows": "f"}, UsageError, "--copy_rows FILE takes the rows"),
        (
            of_rows(1),
            {**POSTGRESQL, "location": "gs://b/r"},
            UsageError,
            "--location is not for PostgreSQL",
        ),
        (
            of_rows(1),
            {**POSTGRESQL, "copy_rows": "gs://b/rows"},
            UsageError,
            "--copy_rows 'gs://b/rows': psql reads no such place; name a file",
        ),
        (
            of_rows(1),
            {**POSTGRESQL, "copy_rows": "a\nb"},
            UsageError,
            r"--copy_rows 'a\\nb': psql reads no such place",
        ),
        *(
            (of_rows(1), {"for_": name, "location": place}, UsageError, message)
            for name, place, message in (
                (
                    "bigquery",
                    "",
                    "bigquery does not read .*; give --location gs://BUCK",
                ),
                ("snowflake", "gs://b", "snowflake does not read gs://b; .*@STAGE/"),
                ("databricks", "", "databricks does not read .* as in /Volumes/news/"),
                ("clickhouse", "az://b/r", "clickhouse does not read az://b/r; give"),
            )
        ),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path, make, flags, error, message):
    values = {"run": make(tmp_path / "a"), "for_": "duckdb", **flags}
    with pytest.raises(error, match=message):
        loaders(output=tmp_path / "sql", **values)
    assert not (tmp_path / "sql").exists()


def test_a_warning_is_shown_as_the_flags_say(tmp_path, capsys):
    row = make_row(2, summary="a\0b", quality_flags=[])
    run = write_run(tmp_path / "a", [row], schema=SCHEMA)
    flags = ("--for", "postgresql", "--copy_rows", str(tmp_path / "rows"))
    assert exit_code("loaders", run, *flags, "--progress", "json") == 0
    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (last["command"], last["state"]) == ("loaders", "message")
    assert "warning: 1 characters NUL, which PostgreSQL does not" in last["message"]
    assert exit_code("loaders", run, *flags, "--quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["duckdb", "bigquery", "databricks"])
def test_the_last_line_loads_the_run(tmp_path, capsys, monkeypatch, name):
    run = write_rows(tmp_path / "a", range(4))
    output = tmp_path / "it's; $HOME sql"
    place = () if name == "duckdb" else ("--location", LOCATIONS[name])
    flags = ("--for", name, "--output", str(output), *place)
    assert exit_code("loaders", run, *flags) == 0
    wrote, *following = capsys.readouterr().out.splitlines()
    assert wrote == f"wrote {output}"
    if name == "databricks":
        assert not following
        return
    client = tmp_path / "bin" / "bq"
    client.parent.mkdir()
    client.write_text(f"#!/bin/sh\ncat > {tmp_path}/sent\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=":")
    line = following[0].removeprefix("next: ")
    subprocess.run(line, shell=True, cwd=tmp_path, check=True, timeout=60)
    if name == "bigquery":
        names = ("create", "load", "merge", "view")
        texts = ((output / f"{each}.sql").read_text() for each in names)
        assert (tmp_path / "sent").read_text() == "".join(texts)
        return
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as opened:
        assert opened.sql("SELECT count(*) FROM summaries").fetchall() == [(4,)]


REQUIRED = pa.field("x", pa.int32(), nullable=False)
SENTENCES = pa.list_(
    pa.field("element", pa.struct([REQUIRED, pa.field("y", pa.list_(pa.string()))]))
)


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        (
            SENTENCES,
            "ARRAY<STRUCT<`x` INT64 NOT NULL, `y` ARRAY<STRING>>>|ARRAY|"
            "ARRAY<STRUCT<`x`: INT, `y`: ARRAY<STRING>>>|"
            'STRUCT("x" INTEGER, "y" VARCHAR[])[]|JSONB|'
            "Array(Tuple(`x` Nullable(Int32), `y` Array(Nullable(String))))",
        ),
        (
            pa.struct([REQUIRED]),
            "STRUCT<`x` INT64 NOT NULL>|OBJECT|STRUCT<`x`: INT>|"
            'STRUCT("x" INTEGER)|JSONB|Tuple(`x` Int32)',
        ),
        (
            pa.timestamp("us", "UTC"),
            "TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP|TIMESTAMPTZ|TIMESTAMPTZ|"
            "DateTime64(6, 'UTC')",
        ),
        (
            pa.timestamp("ms"),
            "DATETIME|TIMESTAMP_NTZ|TIMESTAMP_NTZ|TIMESTAMP|TIMESTAMP|"
            "DateTime64(6, 'UTC')",
        ),
        (
            pa.decimal128(9, 2),
            "NUMERIC(9, 2)|NUMBER(9, 2)|DECIMAL(9, 2)|DECIMAL(9, 2)|NUMERIC(9, 2)|"
            "Decimal(9, 2)",
        ),
        (
            pa.decimal128(38, 12),
            "BIGNUMERIC(38, 12)|NUMBER(38, 12)|DECIMAL(38, 12)|DECIMAL(38, 12)|"
            "NUMERIC(38, 12)|Decimal(38, 12)",
        ),
        (pa.float32(), "FLOAT64|FLOAT|FLOAT|REAL|REAL|Float32"),
        (pa.uint32(), "INT64|INTEGER|BIGINT|UINTEGER|BIGINT|UInt32"),
    ],
)
def test_a_column_has_a_type_in_every_dialect(kind, types):
    field = pa.field("c", kind, nullable=False)
    assert [each.column_type(field) for each in DIALECTS.values()] == types.split("|")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "bigquery",
            pa.uint64(),
            "'c' is uint64, for which bigquery has no type; .*:s",
        ),
        ("bigquery", pa.decimal128(38, -2), "'c' is decimal128"),
        ("bigquery", pa.decimal256(76, 2), "'c' is decimal256"),
        ("snowflake", pa.decimal256(40, 2), "'c' is decimal256"),
        ("databricks", pa.time64("us"), r"'c' is time64\[us\], for which databricks"),
        ("duckdb", pa.float16(), "'c' is halffloat"),
        ("clickhouse", pa.struct([("d", pa.time32("ms"))]), r"'c\.d' is time32\[ms\]"),
        ("postgresql", pa.map_(pa.string(), pa.int8()), "'c' is map<string, int8"),
        ("postgresql", pa.list_(pa.duration("s")), "'c' is duration"),
    ],
)
def test_a_type_without_a_counterpart_is_refused(name, kind, message):
    with pytest.raises(UsageError, match=message):
        DIALECTS[name].column_type(pa.field("c", kind))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("duckdb", ['"Az"', '"a""b"', '"a`b\\c"', "'it''s\\n'", "'a\r\nb'"]),
        ("postgresql", ['"Az"', '"a""b"', '"a`b\\c"', "'it''s\\n'", "'a\r\nb'"]),
        ("snowflake", ['"AZ"', '"a""b"', '"a`b\\c"', r"'it\'s\\n'", r"'a\r\nb'"]),
        ("databricks", ["`Az`", '`a"b`', "`a``b\\c`", r"'it\'s\\n'", r"'a\r\nb'"]),
        ("clickhouse", ["`Az`", '`a"b`', r"`a\`b\\c`", r"'it\'s\\n'", r"'a\r\nb'"]),
    ],
)
def test_names_and_texts_are_quoted(name, texts):
    dialect = DIALECTS[name]
    names = [dialect.quoted(word) for word in ("Az", 'a"b', "a`b\\c")]
    assert [*names, *map(dialect.literal, ("it's\\n", "a\r\nb"))] == texts


@pytest.mark.parametrize("make", ["nested", "partitioned", "flat"])
@pytest.mark.parametrize("name", DIALECTS)
def test_every_statement_is_parsed_in_its_dialect(tmp_path, name, make):
    if make == "flat":
        schema = flat_schema(SUMMARY_SCHEMA).remove_metadata()
        row = dict.fromkeys(schema.names, "")
        for field in schema:
            if not pa.types.is_string(field.type):
                row[field.name] = False if pa.types.is_boolean(field.type) else 0
        run = write_run(tmp_path / "a", [row], schema=schema)
    else:
        write = {"nested": lambda path: write_rows(path, range(4))}
        run = write.get(make, write_partitions)(tmp_path / "a")
    table = "prod-1.news.daily" if name == "bigquery" else "prod.news.daily"
    result = loaders(run=run, table=table, **flags_for(name, tmp_path))
    dialect = "postgres" if name == "postgresql" else name
    kinds = []
    for text in result.files.values():
        lines = [line for line in text.splitlines() if not line.startswith("\\copy")]
        for statement in sqlglot.parse("\n".join(lines), dialect=dialect):
            # A statement that sqlglot does not know becomes a Command. It does not know
            # this statement of BigQuery.
            is_known = not list(statement.find_all(sqlglot.exp.Command))
            assert is_known or statement.sql().startswith("DROP EXTERNAL TABLE `")
            kinds.append(type(statement).__name__)
    merge = "Insert" if name in ("clickhouse", "postgresql") else "Merge"
    kinds = [kind for kind in kinds if kind != "Set"]
    assert kinds[0] == "Create" and merge in kinds and "Drop" in kinds
    statements = sqlglot.parse(result.files["create.sql"], dialect=dialect)
    create = next(each for each in statements if isinstance(each, sqlglot.exp.Create))
    columns = [column.name for column in create.find_all(sqlglot.exp.ColumnDef)]
    names = [name for name in columns if name.casefold() in ("document_id", "run_id")]
    assert [name.casefold() for name in names] == ["document_id", "run_id"]


def test_the_loads_name_every_file_and_value(tmp_path):
    run = write_partitions(tmp_path / "a")

    def load(name):
        return loaders(run=run, for_=name, location=LOCATIONS[name]).files["load.sql"]

    uri = "gs://bucket/runs/a/data/split=a%2Fb%27s/day=2026-03-04/part-0.parquet"
    bigquery = load("bigquery")
    assert f"'{uri}'" in bigquery and "CAST('a/b\\'s' AS STRING)" in bigquery
    # An external table has no NOT NULL, at no depth.
    external = bigquery.partition("CREATE OR REPLACE EXTERNAL TABLE ")[2]
    columns, _, rest = external.partition("OPTIONS (")
    assert "`rank` INT64" in columns and "NOT NULL" not in columns
    assert "STRUCT<`method` STRING NOT NULL" in bigquery.removesuffix(external)
    assert "CAST(NULL AS DATE)" in bigquery and "CAST('' AS STRING)" in bigquery
    assert "FROM '@news/runs/a/data/split=test/day=__HIVE_" in load("snowflake")
    # Bytes are not read as texts.
    assert "BINARY_AS_TEXT = FALSE" in load("snowflake")
    assert "FILES = ('part-2.parquet')" in load("databricks")
    assert (
        "s3('https://bucket.s3.amazonaws.com/runs/a/data/split=test/day="
        "__HIVE_DEFAULT_PARTITION__/part-2.parquet', 'Parquet', " in load("clickhouse")
    )


def test_at_most_a_thousand_files_are_named_in_a_statement():
    parts = [RunPart(f"data/p{n}", "", 1, "", {}) for n in range(1001)]
    parts.append(RunPart("data/s=x/p", "", 1, "", {"s": "x"}))
    groups = group_files(parts, "@news", DIALECTS["snowflake"])
    sizes = [(group.place, len(group.names), group.values) for group in groups]
    assert sizes == [
        *(("@news/data/", 1000, {}), ("@news/data/", 1, {})),
        ("@news/data/s=x/", 1, {"s": "'x'"}),
    ]


def test_an_empty_text_and_a_null_of_one_folder_are_two_groups():
    parts = [RunPart(f"data/s=n/{v}", "", 1, "", {"s": v}) for v in ("", None, "")]
    groups = group_files(parts, "r", DIALECTS["duckdb"])
    found = [(group.names, group.values) for group in groups]
    assert found == [(["", ""], {"s": "''"}), (["None"], {"s": "NULL"})]


def test_nulls_of_the_key_are_equal_only_where_a_key_may_be_null(tmp_path):
    run = write_rows(tmp_path / "a", [1])
    flags = {"run": run, "table_key": "document_id,model_id"}
    merge = loaders(for_="duckdb", **flags).files["merge.sql"].splitlines()[2]
    assert merge == (
        'ON target."document_id" = source."document_id" AND '
        'target."model_id" IS NOT DISTINCT FROM source."model_id"'
    )
    location = LOCATIONS["databricks"]
    text = loaders(for_="databricks", location=location, **flags).files["merge.sql"]
    assert "target.`model_id` <=> source.`model_id`" in text


def test_the_rows_for_postgresql(tmp_path):
    schema = pa.schema(
        [
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("share", pa.float64()),
            pa.field("thumbnail", pa.binary()),
            pa.field("is_live", pa.bool_()),
            pa.field("tags", pa.list_(pa.string())),
        ]
    )
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
    assert path.read_text(encoding="utf-8").split("\n") == [
        "x\ta\\tb\\nc\\rd\\\\e \\\\N\t-inf\t\\\\x0041\tTrue\t"
        '["\ufffd","\\\\\\\\u0000"]',
        "y\tnul \ufffd here\tnan\t\\N\tFalse\t[]",
        "z\t\\N\t0.1\t\\\\x\t\\N\t\\N",
        "",
    ]
    assert result.replaced_nuls == 2
    copy = result.files["load.sql"].splitlines()[-1]
    assert copy.startswith('\\copy "summaries_staging_a" ("document_id", "text", ')
    assert copy.endswith(f"FROM '{path}' WITH (ENCODING 'UTF8')")


def test_a_project_of_bigquery_may_have_a_dash_and_dots(tmp_path):
    flags = {"for_": "bigquery", "location": LOCATIONS["bigquery"]}
    run = write_rows(tmp_path / "a", [1])
    text = loaders(run=run, table="example.com:a-1.news.daily", **flags)
    start = "\nCREATE TABLE IF NOT EXISTS `example.com:a-1`.`news`.`daily` ("
    assert text.files["create.sql"].startswith(start[1:])
