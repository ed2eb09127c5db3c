"""Tests of what `precis loaders` prints: its last line, and its warnings."""

import shlex
import subprocess

import duckdb
import pytest
from support.command_line import exit_code
from support.loader_runs import write_rows

from precis.pipelines.loaders.clients import client_command
from precis.pipelines.loaders.loaders import loaders


def test_the_last_line_loads_the_run(tmp_path, capsys):
    run = write_rows(tmp_path / "a", range(4))
    flags = ("--for", "duckdb", "--output", str(tmp_path / "sql"))
    assert exit_code("loaders", run, *flags) == 0
    wrote, following = capsys.readouterr().out.splitlines()
    assert wrote == f"wrote {tmp_path}/sql"
    names = ["create.sql", "load.sql", "merge.sql", "view.sql"]
    assert sorted(path.name for path in (tmp_path / "sql").iterdir()) == names
    words = shlex.split(following.removeprefix("next: "))
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        found = connection.sql("SELECT count(*) FROM summaries").fetchall()
    assert found == [(4,)]


def test_bigquery_reads_files_of_any_name(tmp_path, capsys, monkeypatch):
    run = write_rows(tmp_path / "a", range(4))
    output = tmp_path / "it's; $HOME sql"
    flags = ("--for", "bigquery", "--location", "gs://b/a", "--output", str(output))
    assert exit_code("loaders", run, *flags) == 0
    following = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    client = tmp_path / "bin" / "bq"
    client.parent.mkdir()
    client.write_text(f"#!/bin/sh\ncat > {shlex.quote(str(tmp_path / 'sent'))}\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=":")
    subprocess.run(shlex.split(following), check=True, timeout=60)
    names = ("create", "load", "merge", "view")
    sent = "".join((output / f"{name}.sql").read_text() for name in names)
    assert (tmp_path / "sent").read_text() == sent


@pytest.mark.parametrize("flags", [{}, {"--output": "s3://b/sql"}])
def test_no_command_is_named_where_none_would_load(flags):
    warehouse = "postgresql" if flags else "databricks"
    folder = flags.get("--output", "sql")
    assert client_command(warehouse, folder, ["create.sql"]) == []


def test_databricks_has_no_next_line(tmp_path, capsys):
    run = write_rows(tmp_path / "a", range(4))
    flags = ("--for", "databricks", "--location", "/Volumes/a", "--output")
    assert exit_code("loaders", run, *flags, str(tmp_path / "sql")) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path}/sql\n"


def test_a_path_that_a_clickhouse_server_may_not_read_is_named(tmp_path, capsys):
    run = write_rows(tmp_path / "a", [1])
    loaders(run=run, for_="clickhouse")
    line = capsys.readouterr().err
    assert line.startswith("precis loaders: warning: a ClickHouse server reads files")
    assert "below its user_files_path" in line and "with clickhouse-local" in line
    loaders(run=run, for_="clickhouse", location="/var/lib/clickhouse/user_files/a")
    loaders(run=run, for_="duckdb")
    assert not capsys.readouterr().err
