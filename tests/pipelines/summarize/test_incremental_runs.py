"""Tests of runs that take over the rows of earlier ones and infer only what is new."""

import os
import shutil

import pytest
from support.incremental_runs import (
    CountedRuns,
    article,
    check_accounts,
    content_rows,
    line,
    write_corpus,
)
from support.summarize_runs import rows_of

from precis.model.errors import DataError, UsageError

# White space does not change the content, but the offsets of the sentences.
SPACED = article(3).replace(". ", ".  ")
CORPUS = {
    "a.jsonl": [line(number) for number in range(40)],
    "b.jsonl": [
        line(3, id="copy", by="Ann"),
        line(3, id="spaced", article=SPACED),
        line(3, id="spaced copy", article=SPACED),
        {"id": "empty", "article": " "},
        "{broken",
        *[line(number) for number in range(40, 80)],
        line(41),
        line(99, id="d041"),
    ],
    "c.jsonl": [line(number) for number in range(80, 90)],
}
# Three edited documents; b.jsonl has another name, a.jsonl another time, d.jsonl is
# new.
CHANGED = {
    "a.jsonl": [
        line(number, article=article(200 + number)) if number in (7, 8, 30) else doc
        for number, doc in enumerate(CORPUS["a.jsonl"])
    ],
    "renamed.jsonl": CORPUS["b.jsonl"],
    "c.jsonl": CORPUS["c.jsonl"],
    "d.jsonl": [line(300), line(5, id="known"), line(301), line(300, id="twice")],
}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder with the corpus `CORPUS` and its run, `runs/first`."""
    folder = tmp_path_factory.mktemp("incremental")
    corpus = write_corpus(folder / "corpus", CORPUS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1600000000")
        runs = CountedRuns(patch)
        manifest = runs.run(folder / "runs" / "first", corpus)
    assert len(runs.inferred) == 92 and "copy" not in runs.inferred
    assert manifest["counts"]["written"] == 91 and manifest["counts"]["reused"] == 0
    return folder


def lines_of(folder, corpus):
    return {str(folder / "corpus" / name): len(corpus[name]) for name in corpus}


def by_id(folder):
    return {row["document_id"]: row for row in rows_of(folder)}


@pytest.fixture(scope="module")
def changed(first):
    """The manifest of the run over `CHANGED` that reuses the first, `runs/changed`;
    what it inferred, and the same run without the first one, `fresh`.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        runs = CountedRuns(patch)
        corpus = write_corpus(first / "changed" / "corpus", CHANGED)
        os.utime(first / "changed" / "corpus" / "c.jsonl")
        earlier = first / "runs" / "first"
        manifest = runs.run(first / "runs" / "changed", corpus, reuse=earlier)
        inferred = runs.inferred
        runs.run(first / "fresh", corpus)
    return manifest, inferred


def test_a_changed_corpus_infers_its_new_texts_alone(first, changed):
    manifest, inferred = changed
    # Of a content that had two texts, one row is looked at.
    assert inferred == ["d007", "d008", "d030", "d300", "d301", "spaced"]
    again = first / "runs" / "changed"
    assert content_rows(again) == content_rows(first / "fresh")
    rows = by_id(again)
    (earlier_run,) = {row["run_id"] for row in rows_of(first / "runs" / "first")}
    for name, row in rows.items():
        is_new = name in inferred or name in ("twice", "spaced copy")
        assert row["reused_from"] == (None if is_new else earlier_run), name
        assert row["run_id"] == manifest["run_id"]
    assert rows["twice"]["duplicate_of"] == "d300"
    assert rows["known"]["duplicate_of"] == "d005"
    check_accounts(again, lines_of(first / "changed", CHANGED))
    counts = manifest["counts"]
    assert (counts["written"], counts["reused"], counts["duplicates"]) == (5, 88, 6)
    assert (counts["empty"], counts["failed"]) == (1, 1)


def test_another_setting_infers_all_and_is_named(first, runs, tmp_path, capsys):
    corpus = write_corpus(tmp_path / "corpus", {"c.jsonl": CORPUS["c.jsonl"]})
    earlier = first / "runs" / "first"
    runs.run(tmp_path / "out", corpus, reuse=earlier, sentences=2, extractive="lead")
    assert runs.inferred == [row["id"] for row in CORPUS["c.jsonl"]]
    assert {row["reused_from"] for row in rows_of(tmp_path / "out")} == {None}
    said = capsys.readouterr().err
    (message,) = [text for text in said.splitlines() if "reused" in text]
    assert message.startswith(f"precis summarize: nothing of {earlier} is reused: ")
    assert "sentences" in message and "extractive" in message
    assert "max_words" not in message and "task_bytes" not in message


def test_a_language_that_is_given_no_more_is_named(runs, tmp_path, capsys):
    corpus = write_corpus(tmp_path / "corpus", {"c.jsonl": CORPUS["c.jsonl"]})
    runs.run(tmp_path / "a", corpus, language="sv")
    runs.run(tmp_path / "b", corpus, reuse=tmp_path / "a")
    assert runs.inferred == [row["id"] for row in CORPUS["c.jsonl"]]
    assert "is reused: language is 'sv' there, None here" in capsys.readouterr().err


def test_a_run_that_is_damaged_or_unfinished_is_not_reused(first, runs, tmp_path):
    corpus = write_corpus(tmp_path / "corpus", {"c.jsonl": CORPUS["c.jsonl"]})
    earlier = tmp_path / "earlier"
    shutil.copytree(first / "runs" / "first", earlier)
    part, *_ = sorted((earlier / "data").iterdir())
    whole = part.read_bytes()
    out = {"output": tmp_path / "out", "corpus": corpus, "reuse": earlier}
    for damaged in (whole[:100] + b"?" + whole[101:], whole[:-1], None):
        if damaged is None:
            part.unlink()
        else:
            part.write_bytes(damaged)
        message = f"--reuse: {part} is missing or not as its manifest says; rep"
        with pytest.raises(DataError, match=message):
            runs.run(**out)
    part.write_bytes(whole)
    (earlier / "manifest.json").write_bytes(b"{}")
    with pytest.raises(DataError, match="manifest.json: damaged .counts is missing"):
        runs.run(**{**out, "output": tmp_path / "other"})
    (earlier / "_SUCCESS").unlink()
    for folder in (earlier, tmp_path / "nowhere", tmp_path / "corpus"):
        message = f"--reuse {folder}: this is not a finished run or a folder of runs; "
        with pytest.raises(UsageError, match=message):
            runs.run(**{**out, "output": tmp_path / "third", "reuse": folder})
    # The next command may name another one.
    assert [path for path in (tmp_path / "third").rglob("*") if path.is_file()] == []
    assert runs.inferred == []
