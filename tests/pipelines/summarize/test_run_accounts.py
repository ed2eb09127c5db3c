"""Tests that every record of a corpus is accounted for by the files of its run, of
every format, and that ids and texts which are repeated are told apart.
"""

import pytest
from support.incremental_runs import (
    article,
    check_accounts,
    content_rows,
    line,
    write_corpus,
)
from support.summarize_runs import rows_of

from precis.model.errors import DataError, JobError
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.run.accounts import (
    OUTCOMES,
    check_file_counts,
    count_by_file,
    sum_file_counts,
    total_counts,
)
from precis.pipelines.summarize.run_output import check_rows
from precis.pipelines.summarize.summary_rows import SummaryRow


def test_counts_by_source_are_joined_and_summed():
    first = count_by_file(read={"b": 3, "a": 1}, written={"b": 3, "a": 0})
    summed = sum_file_counts(
        [first, {"a": {"empty": 1}}, {"b": {"read": 2, "failed": 2}}]
    )
    of_b = {"read": 5, "written": 3, "failed": 2}
    assert list(summed.items()) == [("a", {"read": 1, "empty": 1}), ("b", of_b)]
    totals = {**of_b, "read": 6, "empty": 1}
    assert total_counts(summed) == {**dict.fromkeys(OUTCOMES, 0), **totals}
    check_file_counts(summed, what="the run")
    # A surplus in one file does not make up for a lack in another.
    wrong = {"a": {"read": 2, "written": 1}, "b": {"read": 1, "written": 2}}
    for sources in (wrong, {"": {"read": 1}}, {"b": {"written": 1}}):
        with pytest.raises(JobError, match=r"the run read \d records of .*a bug of"):
            check_file_counts(sources, what="the run")


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
    message = (
        r"3 documents have the id of an earlier document, such as '.*; fix the ids, "
        r"or name another --output and add --on_duplicate_id"
    )
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
