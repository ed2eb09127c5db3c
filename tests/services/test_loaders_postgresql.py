"""PostgreSQL loads runs with the statements of `precis loaders`, by psql."""

import decimal
import tempfile
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from postgresql_server import PostgresqlServer
from support.command_line import exit_code
from support.loader_runs import (
    KEPT,
    ODD_NAME,
    ODD_SCHEMA,
    SCHEMA,
    make_row,
    read_rows,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

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
        opened.execute("DROP SCHEMA IF EXISTS news CASCADE; CREATE SCHEMA news")
        opened.execute("DROP TABLE IF EXISTS summaries CASCADE")


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


def rows_in(connection, table="summaries"):
    """The rows by document."""
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    found = {row["document_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def versions(connection):
    """The transaction that wrote each row."""
    cursor = connection.execute("SELECT document_id, xmin::text FROM summaries")
    return dict(cursor.fetchall())


def test_every_value_is_there_and_the_second_load_writes_nothing(
    server, connection, tmp_path, capsys
):
    run = write_rows(tmp_path / "a", range(8))
    load(server, capsys, run, tmp_path / "sql")
    assert rows_in(connection) == read_rows(run)
    written = versions(connection)
    load(server, capsys, run, tmp_path / "sql")
    assert rows_in(connection) == read_rows(run)
    assert versions(connection) == written


def test_a_later_run_writes_its_rows_and_no_others(
    server, connection, tmp_path, capsys
):
    first = write_rows(tmp_path / "a", range(8))
    second = write_rows(tmp_path / "b", range(6, 10), split="new")
    load(server, capsys, first, tmp_path / "sql")
    written = versions(connection)
    load(server, capsys, second, tmp_path / "sql")
    replaced = read_rows(second)
    assert rows_in(connection) == read_rows(first) | replaced
    now = versions(connection)
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


def test_the_views_and_the_columns_of_folders(server, connection, tmp_path, capsys):
    connection.execute("CREATE SCHEMA IF NOT EXISTS news")
    run = write_partitions(tmp_path / "a")
    for _ in range(2):
        load(server, capsys, run, tmp_path / "sql", "--table", "news.daily")
    found = connection.execute(
        "SELECT split, day::text FROM news.daily_flat ORDER BY 1"
    )
    days = [("", "2026-03-04"), ("a/b's", "2026-03-04"), ("test", None)]
    assert found.fetchall() == days
    rows = [make_row(number) for number in range(3)]
    flat = rows_in(connection, "news.daily_flat")
    names = [field.name for field in KEPT if field.name != "day"]
    for row in rows:
        in_view = flat[row["document_id"]]
        assert {name: in_view[name] for name in names} == {
            name: row[name] for name in names
        }
        quality = row["abstractive_quality"] or {}
        assert in_view["abstractive_quality_words"] == quality.get("words")
        assert in_view["abstractive_quality_flags"] == quality.get("flags")
        assert in_view["abstractive_quality_compression"] is None
    cursor = connection.execute(
        "SELECT document_id, extractive_position, extractive_score, extractive_text "
        "FROM news.daily_extractive ORDER BY 1, 2"
    )
    assert cursor.fetchall() == [
        (row["document_id"], place, item["score"], item["text"])
        for row in sorted(rows, key=lambda row: row["document_id"])
        for place, item in enumerate(row["extractive"])
    ]


def test_a_name_with_quotes_is_a_column(server, connection, tmp_path, capsys):
    rows = [make_row(1, **{ODD_NAME: "x"})]
    run = write_run(tmp_path / "a", rows, schema=ODD_SCHEMA)
    load(server, capsys, run, tmp_path / "sql")
    (row,) = rows_in(connection).values()
    assert row[ODD_NAME] == "x"


def test_texts_are_utf8_wherever_psql_runs(
    server, connection, tmp_path, capsys, monkeypatch
):
    schema = pa.schema([*SCHEMA, pa.field("größe", pa.string())])
    rows = [make_row(5, **{"größe": "groß"})]
    run = write_run(tmp_path / "a", rows, schema=schema)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    load(server, capsys, run, tmp_path / "sql")
    (row,) = rows_in(connection).values()
    assert (row["summary"], row["größe"]) == (rows[0]["summary"], "groß")
    assert not row["summary"].isascii()


def test_a_nul_becomes_a_replacement_character(server, connection, tmp_path, capsys):
    rows = [make_row(1, summary="a\0b", quality_flags=["c\0d \\u0000"])]
    run = write_run(tmp_path / "a", rows, schema=SCHEMA)
    load(server, capsys, run, tmp_path / "sql")
    (row,) = rows_in(connection).values()
    assert row["summary"] == "a\ufffdb"
    assert row["quality_flags"] == ["c\ufffdd \\u0000"]
    assert row["price"] == decimal.Decimal("-12.50")
    flags = ("--for", "postgresql", "--copy_rows", str(tmp_path / "rows"))
    assert exit_code("loaders", run, *flags) == 0
    assert "warning: 2 characters NUL, which PostgreSQL" in capsys.readouterr().err
