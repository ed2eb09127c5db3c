"""Tests of runs that take over the rows of earlier ones and infer only what is new, and
that every record of a corpus is accounted for.
"""

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

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.run import accounts
from precis.pipelines.summarize.run_output import check_rows
from precis.pipelines.summarize.summary_rows import SummaryRow

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


def test_a_changed_corpus_infers_its_new_texts_alone(first, runs):
    corpus = write_corpus(first / "changed" / "corpus", CHANGED)
    os.utime(first / "changed" / "corpus" / "c.jsonl")
    again = first / "runs" / "changed"
    manifest = runs.run(again, corpus, reuse=first / "runs" / "first")
    # Of a content that had two texts, one row is looked at.
    inferred = ["d007", "d008", "d030", "d300", "d301", "spaced"]
    assert runs.inferred == inferred
    runs.run(first / "fresh", corpus)
    assert content_rows(again) == content_rows(first / "fresh")
    rows = {row["document_id"]: row for row in rows_of(again)}
    (earlier_run,) = {row["run_id"] for row in rows_of(first / "runs" / "first")}
    for name, row in rows.items():
        is_new = name in inferred or name in ("twice", "spaced copy")
        assert row["reused_from"] == (None if is_new else earlier_run), name
        assert row["run_id"] == manifest["run_id"]
    assert rows["twice"]["duplicate_of"] == "d300"
    assert rows["known"]["duplicate_of"] == "d005"
    folder = first / "changed" / "corpus"
    check_accounts(again, {f"{folder}/{name}": len(CHANGED[name]) for name in CHANGED})
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
        message = f"--reuse: {part} is missing or not .*; repair that run with"
        with pytest.raises(DataError, match=message):
            runs.run(**out)
    part.write_bytes(whole)
    (earlier / "manifest.json").write_bytes(b"{}")
    with pytest.raises(DataError, match="manifest.json: damaged .counts is missing"):
        runs.run(**{**out, "output": tmp_path / "other"})
    (earlier / "_SUCCESS").unlink()
    for folder in (earlier, tmp_path / "nowhere", tmp_path / "corpus"):
        message = f"--reuse {folder}: this is not a finished .*; name the --output of"
        with pytest.raises(UsageError, match=message):
            runs.run(**{**out, "output": tmp_path / "third", "reuse": folder})
    # The next command may name another one.
    assert [path for path in (tmp_path / "third").rglob("*") if path.is_file()] == []
    assert runs.inferred == []


def test_counts_by_source_are_joined_and_summed():
    first = accounts.count_by_file(read={"b": 3, "a": 1}, written={"b": 3, "a": 0})
    others = {"a": {"empty": 1}}, {"b": {"read": 2, "failed": 2}}
    summed = accounts.sum_file_counts([first, *others])
    of_b = {"read": 5, "written": 3, "failed": 2}
    assert list(summed.items()) == [("a", {"read": 1, "empty": 1}), ("b", of_b)]
    totals = {**of_b, "read": 6, "empty": 1}
    none = dict.fromkeys(accounts.OUTCOMES, 0)
    assert accounts.total_counts(summed) == {**none, **totals}
    accounts.check_file_counts(summed, what="the run")
    # A surplus in one file does not make up for a lack in another.
    wrong = {"a": {"read": 2, "written": 1}, "b": {"read": 1, "written": 2}}
    for sources in (wrong, {"": {"read": 1}}, {"b": {"written": 1}}):
        with pytest.raises(JobError, match=r"the run read \d records of .*a bug of"):
            accounts.check_file_counts(sources, what="the run")


def test_rows_of_the_parts_are_those_of_the_run():
    sources = {
        "a": {"read": 9, "written": 1, "reused": 2, "duplicates": 3, "empty": 3},
        "b": {"read": 1, "failed": 1},
    }
    names = ("data/part-0.parquet", "data/part-1.parquet")

    def check(*published):
        check_rows(sources, [{"file": name, "rows": n} for name, n in published])

    check((names[0], 2), (names[1], 4))
    for first, second, rows in ((names[0], names[1], 3), (names[0], names[0], 4)):
        with pytest.raises(JobError, match="2 output files have . rows, but the run 6"):
            check((first, 2), (second, rows))


# Ids of which three are repeated, in two files; one of these texts is repeated, too.
LINES = [line(number) for number in range(12)]
REPEATED = {
    "a.jsonl": [*LINES[:8], line(100, id="d001"), line(101, id="d001")],
    "b.jsonl": [line(100, id="copy"), line(3, id="d003"), *LINES[8:]],
}


def test_repeated_ids_are_kept_or_refused(runs, tmp_path):
    """And the rows do not depend on how the corpus is cut into tasks."""
    corpus = write_corpus(tmp_path / "corpus", REPEATED)
    message = "3 .* the id of an earlier .*; fix the ids, or .* --on_duplicate_id keep"
    with pytest.raises(DataError, match=message) as caught:
        runs.run(tmp_path / "fail", corpus, on_duplicate_id="fail")
    start = (tmp_path / "corpus" / "b.jsonl").read_bytes().index(b'{"id": "d003"')
    place = f"'d003' at {tmp_path}/corpus/b.jsonl:byte {start}"
    assert place in str(caught.value) and str(caught.value).count("'d001' at ") == 2
    assert runs.inferred == []
    runs.run(tmp_path / "keep", corpus, task_bytes=500)
    runs.run(tmp_path / "one", corpus, task_bytes=1 << 20)
    rows = content_rows(tmp_path / "keep")
    assert rows == content_rows(tmp_path / "one")
    first = [(f"d{number:03}", None) for number in range(12)]
    repeated = [("d001", None)] * 2 + [("copy", "d001"), ("d003", "d003")]
    found = [(row["document_id"], row["duplicate_of"]) for row in rows]
    assert found == [*first[:8], *repeated, *first[8:]]


def test_copies_of_a_document_that_failed_fail_too(runs, tmp_path, monkeypatch):
    """And a text of the same content with other white space has a row of its own."""
    spaced = line(3, id="spaced", article=article(3).replace(". ", ".  "))
    copies = [line(3, id="copy"), spaced, line(3, id="last"), {**spaced, "id": "twin"}]
    corpus = write_corpus(tmp_path / "c", {"a.jsonl": LINES, "b.jsonl": copies})
    extract = SummaryRow.extract

    def fail(row):
        if row.article.document.document_id == "d003":
            raise KeyError("the text")
        return extract(row)

    monkeypatch.setattr(SummaryRow, "extract", fail)
    manifest = runs.run(tmp_path / "out", corpus)
    read = {f"{tmp_path}/c/a.jsonl": 12, f"{tmp_path}/c/b.jsonl": 4}
    check_accounts(tmp_path / "out", read)
    assert manifest["failures"] == {"extract/error": 1, "copy/duplicate_of_failed": 2}
    counts = manifest["counts"]
    assert (counts["written"], counts["duplicates"], counts["failed"]) == (11, 2, 3)
    rows = {row["document_id"]: row for row in rows_of(tmp_path / "out")}
    assert rows.keys() == {*(each["id"] for each in LINES), "spaced", "twin"} - {"d003"}
    assert rows["spaced"]["duplicate_of"] == rows["twin"]["duplicate_of"] == "d003"
    paths = (tmp_path / "out" / "dead_letters").iterdir()
    letters = [letter for path in paths for letter in read_dead_letters(str(path))]
    dead_letters = {letter["document_id"]: letter for letter in letters}
    assert dead_letters.keys() == {"d003", "copy", "last"}
    (content,) = {letter["content_sha256"] for letter in letters}
    assert content == rows["spaced"]["content_sha256"]
    for name in ("copy", "last"):
        assert dead_letters[name]["stage"] == "copy" and dead_letters[name]["retryable"]
        assert dead_letters[name]["source_position"].startswith("byte ")
