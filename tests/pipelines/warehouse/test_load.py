"""Tests of `precis load` on the command line and as a function."""

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from support.command_line import exit_code
from support.damaged_results import edit_description
from support.warehouse_runs import (
    SCHEMA,
    iceberg_table,
    load_run,
    rows_of,
    write_run,
)

from precis.model.errors import UsageError


@pytest.mark.parametrize("scheme", ["iceberg+sqlite", "delta", "duckdb", "parquet"])
def test_a_run_is_loaded_once(tmp_path, capsys, scheme):
    name = "/news.daily" if scheme in ("iceberg+sqlite", "duckdb") else ""
    table = f"{scheme}://{tmp_path}/warehouse{name}"
    run = write_run(tmp_path / "a", rows_of("xy"))
    assert exit_code("load", run, "--table", table) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].startswith(
        "run a: wrote 2 rows in place of 0 earlier ones, as version "
    )
    assert first[1] == f"wrote {table}"
    assert exit_code("load", run, "--table", table) == 0
    second = capsys.readouterr().out.splitlines()
    version = first[0].split()[-1]
    expected = f"run a: already in the table, version {version}; nothing was written"
    assert second == [expected]
    empty = write_run(tmp_path / "b", {})
    assert load_run(empty, table).was_noop
    assert exit_code("load", empty, "--table", table) == 0
    assert capsys.readouterr().out == "run b: no rows; nothing was written\n"
    for flags in (("load", "--table", table), ("loaders", "--for", "duckdb")):
        run = write_run(tmp_path / "c", {"groups/part-c-00000.parquet": rows_of("x")})
        manifest = tmp_path / "c/manifest.json"
        edit_description(manifest, lambda c: c.update(groups={"files": c.pop("files")}))
        edit_description(manifest, lambda content: content.update(files=[]))
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


@pytest.mark.parametrize("scheme", ["iceberg+sqlite", "delta", "duckdb", "parquet"])
def test_some_columns_are_loaded_beside_the_key(tmp_path, scheme):
    name = "/news.daily" if scheme in ("iceberg+sqlite", "duckdb") else ""
    table = f"{scheme}://{tmp_path}/warehouse{name}"
    # A run in folders, whose column is not among those that are loaded.
    schema = SCHEMA.remove(SCHEMA.get_field_index("split"))
    parts = {"data/split=test/part-a.parquet": rows_of("xy")}
    folders = {"partition_by": {"split": "string"}}
    run = write_run(tmp_path / "a", parts, schema=schema, **folders)
    flags = {"table_key": "document_id", "columns": "sentences,summary"}
    assert load_run(run, table, **flags).rows == 2
    assert load_run(run, table, **flags).was_noop
    is_flat = scheme == "parquet"
    assert sorted(read(table), key=lambda row: row["document_id"]) == [
        {
            "document_id": name,
            "summary": f"{name} by a",
            "sentences": f'[{{"text":"{name}","rank":1}}]'
            if is_flat
            else [{"text": name, "rank": 1}],
        }
        for name in "xy"
    ]
    if is_flat:
        return
    # Other columns of the same run are another load.
    assert load_run(run, table, table_key=["document_id"], columns="words").rows == 2
    (row, _) = read(table)
    assert (row["words"], row["summary"][1:]) == (3, " by a")


def test_a_file_that_holds_something_else_stays(tmp_path):
    run, other = (write_run(tmp_path / name, rows_of("x", name)) for name in "ab")
    load_run(run, f"parquet://{tmp_path}/rows.parquet")
    (tmp_path / "text").write_text("a note")
    for place in ("rows.parquet", "text"):
        with pytest.raises(UsageError, match="holds something else"):
            load_run(other, f"parquet://{tmp_path}/{place}")
    for scheme in ("parquet", "delta", "duckdb", "iceberg+sqlite"):
        with pytest.raises(UsageError, match="--table .*b/x is in .* must not change"):
            name = "/news.t" if scheme in ("duckdb", "iceberg+sqlite") else ""
            load_run(other, f"{scheme}://{other}/x{name}")
    assert read(f"parquet://{tmp_path}/rows.parquet")[0]["summary"] == "x by a"


@pytest.mark.parametrize(
    ("table", "flags", "message"),
    [
        ("duckdb://file/a.b.c", {}, "is not a table; write .*duckdb://FILE/TABLE, p"),
        (
            "duckdb://s3://b/w.db/t",
            {},
            "are loaded in a file of this machine; name its",
        ),
        ("duckdb://:memory:/t", {}, "are loaded in a file of this machine; name its p"),
        ("postgresql://h/db/t", {}, "is not a table; .*postgresql://USER@HOST/DATAB"),
        ("postgresql://u:se@cret@h/d#t", {}, r"//\*\*\*@h/d#t: .* as PGPASSWORD or in"),
        ("postgresql://h/d?password=se#t", {}, r"password=\*\*\*: remove the cred"),
        ("postgresql://u@127.0.0.1:9/d#t", {}, "PostgreSQL cannot be reached .*refus"),
        ("duckdb://w/t", {"columns": "sumary"}, "--columns: .*sumary'; did you mean s"),
        ("duckdb://w/t", {"columns": "zz"}, "no column 'zz'; its columns are document"),
        ("duckdb://w/t", {"table_key": "zz"}, "--table_key: .* has no column 'zz'; it"),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path, table, flags, message):
    run = write_run(tmp_path / "a", rows_of("x"))
    with pytest.raises(UsageError, match=message) as raised:
        load_run(run, table, **flags)
    assert "cret" not in str(raised.value)
