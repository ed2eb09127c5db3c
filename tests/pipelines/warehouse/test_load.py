"""Tests of `precis load` on the command line and as a function."""

import pytest
from support.command_line import exit_code
from support.warehouse_runs import iceberg_table, rows_of, write_run


@pytest.mark.parametrize("scheme", ["iceberg+sqlite", "delta"])
def test_a_run_is_loaded_once(tmp_path, capsys, scheme):
    name = "/news.daily" if scheme == "iceberg+sqlite" else ""
    table = f"{scheme}://{tmp_path}/warehouse{name}"
    run = write_run(tmp_path / "a", rows_of("xy"))
    assert exit_code("load", run, "--table", table) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].startswith("run a: rows 2, in place of 0 earlier ones, as version ")
    assert first[1] == f"wrote {table}"
    assert exit_code("load", run, "--table", table) == 0
    second = capsys.readouterr().out.splitlines()
    version = first[0].split()[-1]
    expected = f"run a: in the table already, version {version}; nothing was written"
    assert second[0] == expected
    assert exit_code("load", write_run(tmp_path / "b", {}), "--table", table) == 0
    assert capsys.readouterr().out.startswith("run b: no rows; nothing was written\n")


def test_summarize_loads_what_it_wrote(tmp_path, capsys):
    table = f"iceberg+sqlite://{tmp_path}/warehouse/news.daily"
    flags = ("--corpus", "sample:20", "--output", str(tmp_path / "run"))
    assert exit_code("summarize", *flags) == 0
    assert "holds the run" not in capsys.readouterr().out
    # The table is no part of what a run depends on, so the finished run is loaded.
    for _ in range(2):
        assert exit_code("summarize", *flags, "--table", table) == 0
        assert f"\ntable {table} holds the run\n" in capsys.readouterr().out
    assert len(iceberg_table(table).snapshots()) == 1
    assert iceberg_table(table).scan().count() == 20


def test_summarize_refuses_a_table_before_it_begins(tmp_path, capsys):
    flags = ("--corpus", "sample:20", "--output", str(tmp_path / "run"))
    assert exit_code("summarize", *flags, "--table", "news.daily") == 2
    assert exit_code("summarize", *flags, "--table", "iceberg://none/news.daily") == 2
    assert "the catalogue 'none' cannot be opened" in capsys.readouterr().err
    assert not any((tmp_path / "run").rglob("*.parquet"))
