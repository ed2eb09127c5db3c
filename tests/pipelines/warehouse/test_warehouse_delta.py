"""Tests of loading runs into Delta tables."""

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from support.warehouse_runs import SCHEMA, load_run, rows_of, write_run

from precis.model.errors import DataError, JobError


@pytest.fixture
def address(tmp_path) -> str:
    return f"delta://{tmp_path}/table"


def rows_in(address):
    """The rows by document, read by DuckDB from the files of the present version."""
    table = DeltaTable(address.removeprefix("delta://"))
    read = duckdb.read_parquet(table.file_uris(), union_by_name=True)
    rows = [dict(zip(read.columns, row, strict=True)) for row in read.fetchall()]
    assert len({row["document_id"] for row in rows}) == len(rows)
    return {row["document_id"]: row for row in rows}


def test_runs_are_merged_by_their_key_and_loaded_once(tmp_path, address):
    first = write_run(tmp_path / "a", rows_of("xy"))
    result = load_run(first, address)
    assert (result.rows, result.replaced, result.version) == (2, 0, "0")
    result = load_run(write_run(tmp_path / "b", rows_of("yz", "b")), address)
    assert (result.rows, result.replaced, result.version) == (2, 1, "1")
    again = load_run(first, address)
    assert (again.was_noop, again.version) == (True, "1")
    rows = rows_in(address)
    assert {name: row["summary"] for name, row in rows.items()} == {
        "x": "x by a",
        "y": "y by b",
        "z": "z by b",
    }
    assert rows["x"]["sentences"] == [{"text": "x", "rank": 1}]
    (latest, _) = DeltaTable(address.removeprefix("delta://")).history()
    assert latest["precis.run_id"] == "b"


def test_a_load_is_known_when_the_log_is_gone(tmp_path, address):
    first = write_run(tmp_path / "a", rows_of("xy"))
    load_run(first, address)
    load_run(write_run(tmp_path / "b", rows_of("xz", "b")), address)
    table = DeltaTable(address.removeprefix("delta://"))
    table.create_checkpoint()
    for number in (0, 1):
        (tmp_path / "table" / "_delta_log" / f"{number:020}.json").unlink()
    assert load_run(first, address).was_noop


def test_columns_follow_the_runs(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    schema = SCHEMA.append(pa.field("author", pa.string()))
    run = write_run(tmp_path / "b", rows_of("y", "b", author="Ann"), schema=schema)
    load_run(run, address)
    rows = rows_in(address)
    assert (rows["x"]["author"], rows["y"]["author"]) == (None, "Ann")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.list_(pa.string()), "column 'words' is array in the run and integer there"),
        (pa.duration("s"), ".*Duration.s."),
    ],
)
def test_types_that_do_not_fit_are_refused(tmp_path, address, kind, message):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    place = SCHEMA.get_field_index("words")
    schema = SCHEMA.set(place, pa.field("words", kind))
    run = write_run(tmp_path / "b", rows_of("y", words=None), schema=schema)
    with pytest.raises(DataError, match=f"/table does not take the run: {message}; l"):
        load_run(run, address)
    assert DeltaTable(address.removeprefix("delta://")).version() == 0


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (CommitFailedError("a is there"), JobError, "writer changed .*a is there"),
        (DeltaError("no\nin Rust"), DataError, "not take the run: no; load the r"),
    ],
)
def test_what_delta_refuses_is_reported(
    tmp_path, address, monkeypatch, failure, error, message
):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)

    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(DeltaTable, "merge", fail)
    run = write_run(tmp_path / "b", rows_of("y", "b"))
    with pytest.raises(error, match=message):
        load_run(run, address)


def test_a_partitioned_run_makes_a_partitioned_table(tmp_path, address):
    parts = {
        "split=test/part-0.parquet": rows_of("x"),
        "split=train/part-0.parquet": rows_of("y", split="train"),
    }
    load_run(write_run(tmp_path / "a", parts), address)
    table = DeltaTable(address.removeprefix("delta://"))
    assert table.metadata().partition_columns == ["split"]
