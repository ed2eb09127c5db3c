"""Tests of `precis loaders`: DuckDB loads runs, and what is refused."""

import json
import shlex

import duckdb
import pyarrow as pa
import pytest
from support.command_line import exit_code
from support.loader_runs import (
    KEY,
    ODD_NAME,
    ODD_SCHEMA,
    SCHEMA,
    make_row,
    read_rows,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.loaders.loaders import loaders


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
    assert f"'{tmp_path}/sql/create.sql'" in shlex.split(capsys.readouterr().out)[-1]


def test_the_function_takes_paths_and_lists(tmp_path):
    write_rows(tmp_path / "a", range(4))
    result = precis.loaders(run=tmp_path / "a", for_="duckdb", table_key=list(KEY))
    assert result.rows == 4 and list(result.files)[0] == "create.sql"


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


@pytest.mark.parametrize(
    ("make", "flags", "error", "message"),
    [
        (str, {}, UsageError, "a holds no run: manifest.json is not there"),
        (unfinished, {}, UsageError, "is not finished: _SUCCESS is not there"),
        (damaged, {}, DataError, "part-a-00001-of-00002.parquet is not the file that"),
        (
            lambda folder: write_run(folder, {}),
            {},
            UsageError,
            "has no rows, and so no columns that a table could have",
        ),
        (
            lambda folder: write_rows(folder, [1, 1]),
            {},
            DataError,
            "is the key of more than one row",
        ),
        (
            lambda folder: write_rows(folder, [1]),
            {"table_key": "id"},
            UsageError,
            "--table_key: .* has no column 'id'; it has document_id, ",
        ),
        (
            lambda folder: write_rows(folder, [1]),
            {"table_key": "share"},
            UsageError,
            "--table_key: column 'share' is double; a key is made of strings",
        ),
    ],
)
def test_a_run_that_cannot_be_loaded_is_refused(tmp_path, make, flags, error, message):
    run = make(tmp_path / "a")
    with pytest.raises(error, match=message):
        loaders(run=run, for_="duckdb", output=tmp_path / "sql", **flags)
    assert not (tmp_path / "sql").exists()


def test_a_warning_is_shown_as_the_flags_say(tmp_path, capsys):
    run = write_run(
        tmp_path / "a", [make_row(2, summary="a\0b", quality_flags=[])], schema=SCHEMA
    )
    flags = ("--for", "postgresql", "--copy_rows", str(tmp_path / "rows"))
    assert exit_code("loaders", run, *flags, "--progress", "json") == 0
    last = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (last["command"], last["state"]) == ("loaders", "message")
    assert "warning: 1 values held the character NUL" in last["message"]
    assert exit_code("loaders", run, *flags, "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_errors_are_one_line(tmp_path, capsys):
    run = write_rows(tmp_path / "a", [1])
    assert exit_code("loaders", run, "--for", "mysql") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("precis loaders: --for is one of bigquery, snowflake, ")
    assert exit_code("loaders", run) == 2
    assert "--for is needed: the warehouse whose" in capsys.readouterr().err
    assert exit_code("loaders", run, "--four", "duckdb") == 2
    assert "no flag --four; did you mean --for?" in capsys.readouterr().err
    config = tmp_path / "flags.yaml"
    config.write_text(f"run: {run}\nfor: duckdb\ntable: news.daily\n")
    assert exit_code("loaders", "--config", str(config)) == 0
    assert 'MERGE INTO "news"."daily" AS target' in capsys.readouterr().out
