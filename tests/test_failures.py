"""Tests of dead letters and of the share of them that a job bears."""

import re
from pathlib import Path

import pytest

from precis.model.errors import DataError
from precis.pipelines.corpus.dead_letters import (
    DeadLetter,
    DeadLetterWriter,
    check_failures,
    read_letters,
)
from precis.pipelines.corpus.failures import FailureOptions

# The keys of a letter are the columns that the page names, in its third table.
_, LETTERS = Path("docs/SCHEMA.md").read_text().split("## Dead letters")
COLUMNS = set(re.findall(r"^\| `(\w+)`", LETTERS.partition("## ")[0], re.MULTILINE))


def letter_file(path="", **settings):
    return DeadLetterWriter(str(path), **{"task": 7, "run_id": "r1", **settings})


def test_letters_are_written_as_they_come_and_counted(tmp_path):
    path = tmp_path / "dead_letters" / "7.jsonl.gz"
    written = [
        DeadLetter("read", "b", "1", source_file="a", raw=b"\xff"),
        DeadLetter("read", "broken_parquet", "2", source_file="b", records=40),
        DeadLetter("read", "empty_article", "3", "d1", "a", "byte 9"),
        DeadLetter("search", "b", "4", error_class="OSError", retryable=True),
    ]
    with letter_file(path) as letters:
        for letter in written:
            letters.write(letter)
        assert not path.exists()
    assert letters.rows == 4
    assert letters.reasons == {"read/b": 1, "read/broken_parquet": 40, "search/b": 1}
    assert letters.failed == {"a": 1, "b": 40, "": 1} and letters.empty == {"a": 1}
    run = {"task": 7, "run_id": "r1"}
    rows = list(read_letters(str(path)))
    assert rows == [{**letter._asdict(), **run} for letter in written]
    assert set(rows[0]) == COLUMNS
    with letter_file(tmp_path / "again") as letters:
        for letter in written:
            letters.write(letter)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_without_letters_or_after_an_error_there_is_no_file(tmp_path):
    with letter_file(tmp_path / "none"):
        pass
    with pytest.raises(KeyError), letter_file(tmp_path / "none") as letters:
        letters.write(DeadLetter("read", "b", "1"))
        raise KeyError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("read", "failed", "share", "is_borne"),
    [
        (10, 5, 0.5, True),
        (10, 6, 0.5, False),
        (10, 0, 0.0, True),
        (10, 1, 0.0, False),
        (10, 10, 1.0, True),
        (0, 0, 0.0, True),
    ],
)
def test_a_job_bears_a_share_of_failures(read, failed, share, is_borne):
    def check():
        check_failures(
            {"read": read + 3, "failed": failed, "empty": 0, "other_split": 3},
            {"read/x": failed},
            allowed=FailureOptions(max_failed_share=share),
            dead_letters="out/dead_letters",
        )

    if is_borne:
        check()
        return
    with pytest.raises(
        DataError,
        match=f"{failed} of {read} records failed .*more than --max_failed_share "
        f"{share:g} allows",
    ):
        check()


def test_the_message_names_the_reasons_the_place_and_the_way_out():
    with pytest.raises(
        DataError,
        match="^9 of 9 records failed \\(read/b 7, read/a 2\\), .*; "
        "see gs://b/dead_letters, mend the corpus and name another --output, or ",
    ):
        check_failures(
            {"read": 9, "failed": 9, "empty": 0},
            {"read/a": 2, "read/b": 7},
            allowed=FailureOptions(max_failed_share=0.1),
            dead_letters="gs://b/dead_letters",
        )


def test_a_stream_that_broke_off_fails_the_job_whatever_its_share():
    counts = {"read": 1000, "failed": 1, "empty": 0}
    reasons = {"read/broken_gzip": 1}
    half = FailureOptions(max_failed_share=0.5)
    with pytest.raises(
        DataError,
        match="1 gzip file.* are damaged and an unknown number of records is lost; "
        "see dead, replace the files",
    ):
        check_failures(counts, reasons, allowed=half, dead_letters="dead")
    every = FailureOptions(max_failed_share=1.0)
    check_failures(counts, reasons, allowed=every, dead_letters="dead")


def test_a_corpus_of_empty_articles_fails():
    counts = {"read": 10, "failed": 0, "empty": 6}
    with pytest.raises(
        DataError,
        match="6 of 10 articles have no text, more than --max_empty_share 0.5 allows; "
        "check --article_field",
    ):
        check_failures(counts, {}, allowed=FailureOptions(), dead_letters="dead")
    borne = FailureOptions(max_empty_share=0.6)
    check_failures(counts, {}, allowed=borne, dead_letters="dead")
