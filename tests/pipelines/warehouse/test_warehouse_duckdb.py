"""Tests of loading runs into DuckDB; tests/services has those of PostgreSQL."""

import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest
from support.loader_runs import check_columns_stay, check_loads, write_rows
from support.warehouse_runs import SCHEMA, load_run, rows_of, write_run

from precis.model.errors import DataError, JobError

# Loads a run, and dies before the end of the transaction.
DIE = """
import os, sys
from precis.pipelines.warehouse import database
database.render = lambda table, macro, real=database.render: (
    os._exit(9) if macro == "view" else real(table, macro)
)
from precis.pipelines.warehouse.load import load
load(run=sys.argv[1], table=sys.argv[2])
"""


@pytest.fixture
def file(tmp_path) -> str:
    return f"{tmp_path}/warehouse.duckdb"


def query(file, statement):
    with duckdb.connect(file) as connection:
        relation = connection.sql(statement)
        return [] if relation is None else relation.to_arrow_table().to_pylist()


def summaries(file, table="summaries"):
    rows = query(file, f"SELECT document_id, summary FROM {table} ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def test_every_value_is_there_and_the_second_load_changes_nothing(tmp_path, file):
    check_loads(
        tmp_path,
        lambda run, table="summaries": load_run(run, f"duckdb://{file}/{table}"),
        lambda table: query(file, f"SELECT * FROM {table}"),
    )
    # A load of some columns leaves the view of all.
    some = write_rows(tmp_path / "some", [1, 2])
    load_run(some, f"duckdb://{file}/summaries", columns="summary")
    assert "abstractive_quality_words" in query(file, "FROM summaries_flat")[0]
    query(file, "ALTER TABLE summaries DROP COLUMN day")
    load_run(some, f"duckdb://{file}/summaries", columns="day")
    names = {*query(file, "FROM summaries_flat")[0]}
    assert {"abstractive_quality_words", "day"} <= names


def test_columns_that_a_run_does_not_have_stay(tmp_path, file):
    note = "ALTER TABLE stays ADD COLUMN note VARCHAR; UPDATE stays SET note = 'read'"
    check_columns_stay(
        tmp_path,
        lambda run, table: load_run(run, f"duckdb://{file}/{table}"),
        lambda table: query(file, f"SELECT * FROM {table}"),
        lambda: query(file, note),
    )


def test_runs_are_merged_once_into_a_schema(tmp_path, file):
    address = f"duckdb://{file}/news.daily"
    runs = [write_run(tmp_path / "a", rows_of("xy"))]
    schema = SCHEMA.append(pa.field("author", pa.string()))
    rows = rows_of("yz", "b", author="Ann")
    runs.append(write_run(tmp_path / "b", rows, schema=schema))
    loads = [load_run(run, address) for run in (*runs, *runs)]
    assert [each[1:5] for each in loads] == [
        *(("1", 2, 0, False), ("2", 2, 1, False)),
        *(("1", 2, 0, True), ("2", 2, 0, True)),
    ]
    expected = [("x", "x by a", None), ("y", "y by b", "Ann"), ("z", "z by b", "Ann")]
    for table in ("news.daily", "news.daily_flat"):
        rows = query(file, f"SELECT document_id, summary, author FROM {table}")
        assert sorted(tuple(row.values()) for row in rows) == expected
    # The case of names makes no other table.
    assert load_run(runs[0], f"duckdb://{file}/News.Daily").was_noop
    load_run(runs[0], f"duckdb://{file}/NEWS.other")
    assert len(query(file, "FROM News.daily_loads")) == 2
    # The list of loads counts for a table that is there, with rows.
    query(file, "DELETE FROM news.daily")
    assert load_run(runs[0], address).version == "3"
    query(file, "DROP TABLE news.daily")
    assert load_run(runs[1], address).version == "1"
    assert not load_run(runs[0], address).was_noop


def test_a_key_with_several_rows_is_refused(tmp_path, file):
    run = write_run(tmp_path / "a", rows_of("xy"))
    load_run(run, f"duckdb://{file}/t")
    query(file, "INSERT INTO t SELECT * REPLACE ('1' AS source_position) FROM t")
    other, flags = write_run(tmp_path / "b", rows_of("x")), {"table_key": "document_id"}
    with pytest.raises(DataError, match='"t" has several rows with one key .*give the'):
        load_run(other, f"duckdb://{file}/t", **flags)


def test_a_load_that_dies_or_fails_leaves_nothing(tmp_path, file):
    address = f"duckdb://{file}/summaries"
    run_a = write_run(tmp_path / "a", rows_of("xy", "a"))
    run_b = write_run(tmp_path / "b", rows_of("yz", "b"))
    for _ in range(2):
        command = [sys.executable, "-c", DIE, run_b, address]
        assert subprocess.run(command, timeout=60).returncode == 9
        if not query(file, "SHOW TABLES"):
            load_run(run_a, address)
    before = [("x", "x by a"), ("y", "y by a")]
    assert summaries(file) == before
    query(file, "ALTER TABLE summaries ADD COLUMN note VARCHAR DEFAULT 'n'")
    query(file, "ALTER TABLE summaries ALTER COLUMN note SET NOT NULL")
    query(file, "ALTER TABLE summaries ALTER COLUMN note DROP DEFAULT")
    with pytest.raises(DataError, match="NOT NULL constraint.*; change the table, or"):
        load_run(run_b, address)
    assert summaries(file) == before
    query(file, "ALTER TABLE summaries DROP COLUMN note")
    assert load_run(run_b, address).version == "2"


def test_another_type_is_refused_by_column(tmp_path, file):
    address = f"duckdb://{file}/summaries"
    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    wide = pa.field("words", pa.int64())
    schema = SCHEMA.set(SCHEMA.get_field_index("words"), wide)
    run = write_run(tmp_path / "b", rows_of("y", "b"), schema=schema)
    with pytest.raises(DataError, match="'words' is BIGINT in .*, but INTEGER") as told:
        load_run(run, address)
    assert summaries(file) == [("x", "x by a")]
    # What the message says does it.
    with duckdb.connect(file) as connection:
        connection.execute(str(told.value).rpartition("or run ")[2])
    assert load_run(run, address).rows == 1


def test_another_writer_is_reported(tmp_path, file):
    address = f"duckdb://{file}/summaries"
    runs = [write_run(tmp_path / name, rows_of(name, name)) for name in "ab"]
    load_run(runs[0], address)
    with duckdb.connect(file) as connection:  # Within this process there is no lock.
        connection.execute("BEGIN; ALTER TABLE summaries ADD COLUMN note VARCHAR")
        with pytest.raises(JobError, match="broke off the load.*run the same command"):
            load_run(runs[1], address)
        connection.execute("ROLLBACK")
        command = [sys.executable, "-m", "precis.pipelines.command_line.cli", "load"]
        command = [*command, runs[1], "--table", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Conflicting lock" in done.stderr and "run the same comm" in done.stderr
    assert summaries(file) == [("a", "a by a")]
    (tmp_path / "text").write_text("a note, not a database " * 99)
    with pytest.raises(JobError, match="not a valid DuckDB .*, or name another file"):
        load_run(runs[1], f"duckdb://{tmp_path}/text/summaries")
