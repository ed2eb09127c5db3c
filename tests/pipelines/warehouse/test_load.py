"""Tests of `precis load` on the command line and as a function."""

import pytest
from support.command_line import exit_code
from support.damaged_results import edit_description
from support.warehouse_runs import load_run, rows_of, write_run


@pytest.mark.parametrize("scheme", ["iceberg+sqlite", "delta"])
def test_a_run_is_loaded_once(tmp_path, capsys, scheme):
    name = "/news.daily" if scheme == "iceberg+sqlite" else ""
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
    assert second[0] == expected
    empty = write_run(tmp_path / "b", {})
    assert load_run(empty, table).was_noop
    assert exit_code("load", empty, "--table", table) == 0
    assert capsys.readouterr().out.startswith("run b: no rows; nothing was written\n")
    for flags in (("load", "--table", table), ("loaders", "--for", "duckdb")):
        run = write_run(tmp_path / "c", {"groups/part-c-00000.parquet": rows_of("x")})
        manifest = tmp_path / "c/manifest.json"
        edit_description(manifest, lambda c: c.update(groups={"files": c.pop("files")}))
        edit_description(manifest, lambda content: content.update(files=[]))
        assert exit_code(*flags, run) == 2
        assert "only rows of groups (--rows groups), but a" in capsys.readouterr().err
