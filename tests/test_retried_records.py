"""Tests of `--retry_failures`: the records that a run has lost, and no others."""

import gzip
import json

import pytest
from support.incremental_runs import CountedRuns, check_accounts, line, write_corpus
from support.summarize_runs import rows_of

import precis
from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.summarize.summary_rows import SummaryRow

LOST = ("d003", "d011")


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return CountedRuns(monkeypatch)


@pytest.fixture
def corpus(tmp_path):
    parts = {"a.jsonl": range(8), "b.jsonl": range(8, 16), "c.jsonl": range(16, 20)}
    return write_corpus(
        tmp_path / "corpus",
        {name: [line(number) for number in parts[name]] for name in parts},
    )


@pytest.fixture
def earlier(runs, corpus, tmp_path, monkeypatch):
    """A run that has lost two documents, in two of its three files."""
    measure = SummaryRow.measure

    def fail(row):
        if row.article.document.document_id in LOST:
            raise KeyError("the text")
        return measure(row)

    with monkeypatch.context() as patch:
        patch.setattr(SummaryRow, "measure", fail)
        manifest = runs.run(tmp_path / "earlier", corpus)
    assert (manifest["counts"]["written"], manifest["counts"]["failed"]) == (18, 2)
    return tmp_path / "earlier"


def test_the_lost_records_alone_are_summarized(runs, corpus, earlier, tmp_path):
    whole, again = tmp_path / "whole", tmp_path / "again"
    runs.run(whole, corpus)
    manifest = runs.run(again, corpus, retry_failures=str(earlier))
    assert runs.inferred == list(LOST)
    assert (manifest["counts"]["read"], manifest["counts"]["written"]) == (2, 2)
    folder = tmp_path / "corpus"
    check_accounts(again, {f"{folder}/a.jsonl": 1, f"{folder}/b.jsonl": 1})
    expected = {row["document_id"]: row for row in rows_of(whole)}
    for row in rows_of(again):
        assert row == {**expected.pop(row["document_id"]), "run_id": row["run_id"]}
    # With the rows of the earlier run they are all there, each once.
    assert sorted(expected) == sorted(row["document_id"] for row in rows_of(earlier))
    assert precis.verify(folder=again, corpus=corpus).findings == []


def test_runs_that_have_nothing_to_retry_are_refused(runs, corpus, earlier, tmp_path):
    def retry(run, other_corpus=corpus):
        out = tmp_path / "out"
        runs.run(out, other_corpus, retry_failures=str(run))

    with pytest.raises(UsageError, match="no run, for it has no manifest.json; name"):
        retry(tmp_path / "nowhere")
    runs.run(tmp_path / "whole", corpus)
    with pytest.raises(UsageError, match="whole: that run has lost no record"):
        retry(tmp_path / "whole")
    elsewhere = write_corpus(tmp_path / "elsewhere", {"d.jsonl": [line(1)]})
    with pytest.raises(UsageError, match="none of the files whose records that run"):
        retry(earlier, elsewhere)
    assert not (tmp_path / "out").exists()


def test_damaged_dead_letters_and_manifests_are_refused(
    runs, corpus, earlier, tmp_path
):
    out = tmp_path / "out"
    letters = next((earlier / "dead_letters").iterdir())
    content = letters.read_bytes()
    letters.write_bytes(gzip.compress(b"{}\n"))
    message = f"^--retry_failures: {letters} is missing or damaged; repair that run"
    with pytest.raises(DataError, match=message):
        runs.run(out, corpus, retry_failures=str(earlier))
    letters.write_bytes(content)
    path = earlier / "manifest.json"
    edited = json.loads(path.read_bytes())
    edited["dead_letters"] = edited["dead_letters"][:1]
    files.write_json(str(path), edited)
    message = "^--retry_failures: .*manifest.json: was changed: .*; repair that run by"
    with pytest.raises(DataError, match=message):
        runs.run(out, corpus, retry_failures=str(earlier))
    assert not out.exists()
