"""PostgreSQL loads runs with the statements of `precis loaders`: by psql, and by
`precis load`.
"""

import tempfile
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from postgresql_server import PostgresqlServer
from support.command_line import exit_code
from support.loader_runs import (
    SCHEMA,
    check_columns_stay,
    check_loads,
    make_row,
    read_rows,
    write_rows,
)
from support.warehouse_runs import load_run, write_run

from precis.model.errors import DataError, JobError

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server():
    # The path of a socket may have about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="precis-pg-") as folder:
        running = PostgresqlServer(Path(folder))
        running.start()
        yield running
        running.stop()


@pytest.fixture
def connection(server):
    with psycopg.connect(server.address, autocommit=True) as opened:
        opened.execute("SET TIME ZONE 'UTC'")
        yield opened
        for table in ("summaries", "folders", "odd", "stays", "flat"):
            # The list of loads stays; it counts no longer.
            opened.execute(f"DROP TABLE IF EXISTS {table} CASCADE")


def load(server, capsys, run, folder, *flags):
    """Runs what the last line of the command says."""
    rows = str(folder / "it's rows.copy")
    words = ("--for", "postgresql", "--output", str(folder), "--copy_rows", rows)
    assert exit_code("loaders", str(run), *words, *flags) == 0
    done = server.run_line(
        capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    )
    assert done.returncode == 0, done.stderr
    return done


def load_directly(server, capsys, run, folder, *flags):
    """Runs `precis load`."""
    _, table, *others = flags or ("--table", "summaries")
    address = f"{server.uri}#{table}"
    assert exit_code("load", str(run), "--table", address, *others) == 0
    return capsys.readouterr()


both_ways = pytest.mark.parametrize("load", [load, load_directly])


def rows_in(connection, table="summaries"):
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column.name for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def versions(connection):
    """The transaction that wrote each row."""
    cursor = connection.execute("SELECT document_id, xmin::text FROM summaries")
    return dict(cursor.fetchall())


@both_ways
def test_postgresql_has_every_value_and_the_second_load_changes_nothing(
    server, connection, tmp_path, capsys, load
):
    def load_into(run, table="summaries"):
        load(server, capsys, run, tmp_path / "sql", "--table", table)

    check_loads(tmp_path, load_into, lambda table: rows_in(connection, table))


@both_ways
def test_columns_that_a_run_does_not_have_stay(
    server, connection, tmp_path, capsys, load
):
    def load_into(run, table):
        load(server, capsys, run, tmp_path / "sql", "--table", table)

    def add_note():
        connection.execute("ALTER TABLE stays ADD COLUMN note TEXT")
        connection.execute("UPDATE stays SET note = 'read'")

    check_columns_stay(
        tmp_path, load_into, lambda table: rows_in(connection, table), add_note
    )
    # A view in which a struct had other fields, as of another version, is made anew.
    connection.execute("DROP VIEW stays_flat")
    connection.execute("CREATE VIEW stays_flat AS SELECT 1 AS words")
    connection.execute("DROP TABLE IF EXISTS stays_loads")
    load_into(tmp_path / "b", "stays")
    assert len(rows_in(connection, "stays_flat")) == 3
    fields = [field for field in SCHEMA if not pa.types.is_nested(field.type)]
    plain = write_run(tmp_path / "c", [make_row(1)], schema=pa.schema(fields))
    load_into(plain, "flat")
    assert len(rows_in(connection, "flat_flat")) == 1


def test_a_load_writes_the_rows_that_differ_and_no_others(
    server, connection, tmp_path, capsys
):
    first = write_rows(tmp_path / "a", range(8))
    second = write_rows(tmp_path / "b", range(6, 10), split="new")
    load(server, capsys, first, tmp_path / "sql")
    written = versions(connection)
    load(server, capsys, first, tmp_path / "sql")
    assert versions(connection) == written
    load(server, capsys, second, tmp_path / "sql")
    now, replaced = versions(connection), read_rows(second)
    assert {name for name in written if now[name] != written[name]} == {
        name for name in written if name in replaced
    }


def test_a_load_that_fails_leaves_the_table_as_it_was(
    server, connection, tmp_path, capsys
):
    run = write_rows(tmp_path / "a", range(4))
    load(server, capsys, run, tmp_path / "sql")
    written = versions(connection)
    merge = tmp_path / "sql" / "merge.sql"
    merge.write_text(f"{merge.read_text()}SELECT 1 / 0;\n")
    (tmp_path / "sql" / "it's rows.copy").write_text(
        (tmp_path / "sql" / "it's rows.copy").read_text().replace("\ttest\t", "\tx\t")
    )
    line = f"cat {tmp_path}/sql/*.sql | psql -1 --set=ON_ERROR_STOP=1 --file=-"
    done = server.run_line(line)
    assert done.returncode == 3 and "division by zero" in done.stderr
    assert versions(connection) == written


def test_texts_are_utf8_wherever_psql_runs(
    server, connection, tmp_path, capsys, monkeypatch
):
    schema = pa.schema([*SCHEMA, pa.field("größe", pa.string())])
    rows = [make_row(5, **{"größe": "groß"})]
    run = write_run(tmp_path / "a", rows, schema=schema)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    load(server, capsys, run, tmp_path / "sql")
    (row,) = rows_in(connection)
    assert (row["summary"], row["größe"]) == (rows[0]["summary"], "groß")
    assert not row["summary"].isascii()


def test_a_direct_load_says_what_it_replaced_and_what_does_not_fit(
    server, connection, tmp_path, capsys
):
    run = write_run(tmp_path / "a", [make_row(2, summary="a\0b")], schema=SCHEMA)
    told = load_directly(server, capsys, run, tmp_path)
    assert "warning: 1 NUL characters became U+FFFD" in told.err
    assert rows_in(connection)[0]["summary"] == "a\ufffdb"
    assert "already in the table" in load_directly(server, capsys, run, tmp_path).out
    wide = pa.schema([field for field in SCHEMA if field.name != "price"])
    wide = wide.append(pa.field("price", pa.decimal128(9, 4)))
    other = write_run(tmp_path / "b", [make_row(3, price=None)], schema=wide)
    address = f"{server.uri}#summaries"
    with pytest.raises(
        DataError, match=r"numeric\(9, ?4\) in .*numeric\(9, ?2\) there"
    ):
        load_run(other, address)
    key = {"table_key": "document_id"}
    with pytest.raises(DataError, match="ON CONFLICT specification; change the table"):
        load_run(write_rows(tmp_path / "c", [4]), address, **key)
    connection.execute("SET lock_timeout = 0; BEGIN; LOCK TABLE summaries")
    with pytest.raises(JobError, match="broke off the load.*lock timeout"):
        options = "&options=-c%20lock_timeout%3D100"
        load_run(write_rows(tmp_path / "d", [4]), f"{server.uri}{options}#summaries")
    connection.execute("COMMIT")
    assert len(rows_in(connection)) == 1
