"""Tests of the places that a command refuses to write to, before it reads."""

import pytest
from support.command_line import contents, error_lines, exit_code

from precis.pipelines.warehouse.options import POSTGRESQL


@pytest.fixture
def workplace(extractive, tmp_path, monkeypatch):
    """A folder in which the run `run` is a link, with a file and another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").symlink_to(extractive)
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "_SUCCESS").write_text("0")
    (tmp_path / "records" / "dataset.json").write_text("{}")
    return tmp_path


COPIED = ("loaders", "run", "--for", POSTGRESQL, "--table", "news", "--copy_rows")
DUCKDB = ("loaders", "run", "--for", "duckdb", "--output")
WITHIN = "lies in run, whose files stay as they were written; name a place outside it"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "run", "--output", "folder"), "--output folder is a folder; name"),
        (("report", "run", "--output", "file/a.html"), "file is a file; name another"),
        (("report", "run", "--output", "run/data/a.html"), WITHIN),
        ((*DUCKDB, "file"), "file is a file; name another place"),
        ((*DUCKDB, "run/data"), WITHIN),
        ((*COPIED, "folder"), "--copy_rows folder is a folder; name a file"),
        ((*COPIED, "run/rows"), WITHIN),
        (("evaluate", "--input", "run", "--output", "file"), "file is a file; name"),
        (("evaluate", "--input", "run", "--output", "run/data"), WITHIN),
        (
            ("report", "records"),
            "records holds no run: manifest.json is not there; give",
        ),
        (("evaluate", "--input", "records"), "records holds no run: manifest.json is"),
    ],
)
def test_places_that_cannot_be_are_refused(words, message, workplace, capsys):
    before = contents(workplace)
    assert exit_code(*words) == 2
    error = capsys.readouterr().err
    (line,) = error_lines(error, words[0])
    assert message in line and "Errno" not in error
    assert contents(workplace) == before
