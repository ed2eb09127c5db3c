"""Tests of `precis load` on the command line and as a function."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.command_line import exit_code
from support.damaged_results import edit_description
from support.warehouse_runs import SCHEMA, iceberg_table, load_run, rows_of, write_run

from precis.model.errors import UsageError

SCHEMES = ["iceberg+sqlite", "delta", "duckdb", "parquet"]


def address_in(folder, scheme):
    name = "/news.daily" if scheme in ("iceberg+sqlite", "duckdb") else ""
    return f"{scheme}://{folder}/warehouse{name}"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_is_loaded_once(tmp_path, capsys, scheme):
    table = address_in(tmp_path, scheme)
    run = write_run(tmp_path / "a", rows_of("xy"))
    assert exit_code("load", run, "--table", table) == 0
    first, wrote = capsys.readouterr().out.splitlines()
    assert first.startswith("run a: wrote 2 rows in place of 0 earlier ones, as ")
    assert wrote == f"wrote {table}"
    assert exit_code("load", run, "--table", table) == 0
    expected = f"already in the table, version {first.split()[-1]}; nothing was written"
    assert capsys.readouterr().out == f"run a: {expected}\n"
    empty = write_run(tmp_path / "b", {})
    assert load_run(empty, table).was_noop
    assert exit_code("load", empty, "--table", table) == 0
    assert capsys.readouterr().out == "run b: no rows; nothing was written\n"
    run = write_run(tmp_path / "c", {"groups/part-c-00000.parquet": rows_of("x")})
    edit_description(
        tmp_path / "c" / "manifest.json",
        lambda each: each.update(groups={"files": each["files"]}, files=[]),
    )
    for flags in (("load", "--table", table), ("loaders", "--for", "duckdb")):
        assert exit_code(*flags, run) == 2
        assert "only rows of groups (--rows groups), but a" in capsys.readouterr().err


def read(address):
    """The rows of a table, its columns in order."""
    scheme, _, place = address.partition("://")
    if scheme == "duckdb":
        file, _, name = place.rpartition("/")
        with duckdb.connect(file) as connection:
            return connection.sql(f"SELECT * FROM {name}").to_arrow_table().to_pylist()
    if scheme == "iceberg+sqlite":
        return iceberg_table(address).scan().to_arrow().to_pylist()
    if scheme == "delta":
        return DeltaTable(place).to_pyarrow_table().to_pylist()
    return pq.read_table(place).to_pylist()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_some_columns_are_loaded_beside_the_key(tmp_path, scheme):
    table = address_in(tmp_path, scheme)
    # A run in folders, whose column is not among those that are loaded.
    schema = SCHEMA.remove(SCHEMA.get_field_index("split"))
    parts = {"data/split=test/part-a.parquet": rows_of("xy")}
    folders = {"partition_by": {"split": "string"}}
    run = write_run(tmp_path / "a", parts, schema=schema, **folders)
    flags = {"table_key": "document_id", "columns": "sentences,summary"}
    assert load_run(run, table, **flags).rows == 2
    assert load_run(run, table, **flags).was_noop
    rows = sorted(read(table), key=lambda row: row["document_id"])
    if scheme == "parquet":  # A flat file has JSON.
        assert rows[0]["sentences"] == '[{"text":"x","rank":1}]'
        rows = [{**row, "sentences": json.loads(row["sentences"])} for row in rows]
    names = ("document_id", "summary", "sentences")
    assert rows == [{name: row[name] for name in names} for row in rows_of("xy")]
    if scheme != "parquet":  # Other columns of the same run are another load.
        flags = {"table_key": ["document_id"], "columns": "words"}
        assert load_run(run, table, **flags).rows == 2
        (row, _) = read(table)
        assert (row["words"], row["summary"][1:]) == (3, " by a")


def test_a_file_that_holds_something_else_stays(tmp_path):
    run, other = (write_run(tmp_path / name, rows_of("x", name)) for name in "ab")
    load_run(run, f"parquet://{tmp_path}/rows.parquet")
    (tmp_path / "text").write_text("a note")
    for place in ("rows.parquet", "text"):
        with pytest.raises(UsageError, match="holds something else"):
            load_run(other, f"parquet://{tmp_path}/{place}")
    for scheme in SCHEMES:
        with pytest.raises(UsageError, match="b/warehouse.* is in .* must not change"):
            load_run(other, address_in(other, scheme))
    assert read(f"parquet://{tmp_path}/rows.parquet")[0]["summary"] == "x by a"


def test_what_cannot_be_loaded_is_refused(tmp_path):
    for table, message in (
        ("duckdb://file/a.b.c", "is not a table; write .*duckdb://FILE/TABLE, p"),
        ("duckdb://s3://b/w.db/t", "are loaded in a file of this machine; name its"),
        ("duckdb://:memory:/t", "are loaded in a file of this machine; name its p"),
        ("postgresql://h/db/t", "is not a table; .*postgresql://USER@HOST/DATAB"),
        ("postgresql://u:se@cret@h/d#t", r"//\*\*\*@h/d#t: .* as PGPASSWORD or in"),
        ("postgresql://h/d?password=se#t", r"password=\*\*\*: remove the cred"),
        ("postgresql://u@127.0.0.1:9/d#t", "PostgreSQL cannot be reached .*refus"),
        ("--columns sumary", "--columns: .*sumary'; did you mean s"),
        ("--columns zz", "no column 'zz'; its columns are document"),
        ("--table_key zz", "--table_key: .* has no column 'zz'; it"),
    ):
        run, flags = write_run(tmp_path / "a", rows_of("x")), {}
        if table.startswith("--"):
            name, value = table.removeprefix("--").split()
            table, flags = "duckdb://w/t", {name: value}
        with pytest.raises(UsageError, match=message) as raised:
            load_run(run, table, **flags)
        assert "cret" not in str(raised.value)
