"""The counts of more source files than a manifest lists, beside it."""

import json
from pathlib import Path

import pytest
from support.command_line import precis
from support.damaged_results import findings

from precis.pipelines.run import accounts
from precis.pipelines.run.accounts import read_sources

TEXT = "The council met on Monday. It voted for a new bridge over the river. "


def summarize(corpus: Path, output: Path) -> None:
    flags = {"extractive": "lead", "min_source_words": 0}
    assert precis("summarize", corpus=f"text:{corpus}/*", output=output, **flags) == 0


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "b.txt", "é.txt"):
        (folder / name).write_text(TEXT + name)
    (folder / "again.txt").write_text(TEXT + "a.txt")
    return folder


def test_they_lie_in_a_file_that_is_verified_and_repaired(
    corpus, tmp_path, monkeypatch
):
    summarize(corpus, tmp_path / "listed")
    listed = json.loads((tmp_path / "listed" / "manifest.json").read_bytes())
    assert len(listed["sources"]) == 4 and "source_files" not in listed
    monkeypatch.setattr(accounts, "MOST_LISTED", 3)
    run = tmp_path / "run"
    summarize(corpus, run)
    manifest = json.loads((run / "manifest.json").read_bytes())
    (described,) = manifest["source_files"]
    assert manifest["sources"] == {} and described["rows"] == 4
    assert read_sources(str(run), manifest) == listed["sources"]
    assert manifest["counts"] == listed["counts"]
    assert findings(run) == findings(run, corpus=f"text:{corpus}/*") == []

    path = run / described["file"]
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    (finding,) = findings(run)
    assert finding.startswith(f"{described['file']}: has {len(content) - 1} bytes")
    summarize(corpus, run)
    assert path.read_bytes() == content and findings(run) == []
