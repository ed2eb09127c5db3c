"""Tests of results that are repaired by the command that made them."""

import pyarrow.parquet as pq
import pytest
from support.command_line import contents
from support.incremental_runs import article, line, write_corpus

# Each test takes several whole runs.
pytestmark = pytest.mark.slow


def test_a_damaged_result_is_repaired(tmp_path, runs, monkeypatch, capsys):
    """Later, and with the very bytes that it had."""
    out = tmp_path / "out"
    lines = {
        "a.jsonl": [*[line(number) for number in range(40)], line(2, id="copy")],
        "b.jsonl": ["{broken", {"id": "e", "article": ""}, line(3, id="other")],
        "c.jsonl": [line(number, article=article(1)) for number in (90, 91)],
    }
    corpus = write_corpus(tmp_path / "corpus", lines)
    manifest = runs.run(out, corpus)
    whole = contents(out)
    assert len(manifest["files"]) >= 4 and len(runs.inferred) == 40
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    first, second, *_ = [out / file["file"] for file in manifest["files"]]
    rows = [row for path in (first, second) for row in pq.read_table(path).to_pylist()]
    lost = [row["document_id"] for row in rows if row["duplicate_of"] is None]
    first.unlink()
    second.write_bytes(whole[f"data/{second.name}"][:-9] + b"\0" * 9)
    (dead_letters,) = (out / "dead_letters").iterdir()
    dead_letters.write_bytes(dead_letters.read_bytes()[:-1])
    capsys.readouterr()
    assert runs.run(out, corpus) == manifest
    assert contents(out) == whole
    # Copies of three texts stand in parts that are whole.
    assert runs.inferred == sorted({*lost} - {"d001", "d002", "d003"})
    said = capsys.readouterr().err
    for path in (first, second, dead_letters):
        name = path.relative_to(out)
        assert f"precis summarize: {name} is damaged; repairing" in said.splitlines()
    (out / "manifest.json").write_bytes(whole["manifest.json"].replace(b"40", b"41"))
    runs.run(out, corpus)
    assert contents(out).keys() == whole.keys()
    again = {name: content for name, content in contents(out).items() if "/" in name}
    assert again == {name: whole[name] for name in again} and len(again) >= 5
