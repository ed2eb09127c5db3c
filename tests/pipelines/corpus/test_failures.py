"""Tests of dead letters and of the share of them that a job bears."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from precis.model.errors import DataError
from precis.pipelines.corpus.dead_letters import (
    DeadLetter,
    DeadLetterWriter,
    check_failures,
    read_dead_letters,
)
from precis.pipelines.corpus.options import FailureOptions

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
    with letter_file(path) as dead_letters:
        for letter in written:
            dead_letters.write(letter)
        assert not path.exists()
    assert dead_letters.rows == 4
    reasons = {"read/b": 1, "read/broken_parquet": 40, "search/b": 1}
    assert dead_letters.reasons == reasons
    assert dead_letters.failed == {"a": 1, "b": 40, "": 1}
    assert dead_letters.empty == {"a": 1}
    run = {"task": 7, "run_id": "r1"}
    rows = list(read_dead_letters(str(path)))
    assert rows == [{**letter._asdict(), **run} for letter in written]
    assert set(rows[0]) == COLUMNS
    with letter_file(tmp_path / "again") as dead_letters:
        for letter in written:
            dead_letters.write(letter)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_without_letters_or_after_an_error_there_is_no_file(tmp_path):
    with letter_file(tmp_path / "none"):
        pass
    with pytest.raises(KeyError), letter_file(tmp_path / "none") as dead_letters:
        dead_letters.write(DeadLetter("read", "b", "1"))
        raise KeyError
    assert not list(tmp_path.iterdir())


NAMED = (
    r"^9 of 9 records failed \(read/b 7, read/a 2\), more than --max_failed_share 0.1 "
    "allows; see .*/letters, fix the records and name another --output, or raise "
    "the share and run the same command; first: a: detail; a: detail$"
)
BROKEN = (
    "^1 gzip file.* are damaged, so an unknown number of records is lost; see .*/"
    "letters, replace the files, .* to leave those records out; first: a: detail$"
)
EMPTY = (
    "^6 of 10 articles have no text, more than --max_empty_share 0.5 allows; check "
    "--article_field, or raise the share and run the same command; first: c, "
    "byte 0: the article has no text$"
)


def test_a_job_bears_a_share_of_failures(tmp_path):
    """Documents of another split do not count."""
    for read, empty, reasons, share, message in (
        (10, 0, {"read/x": 5}, 0.5, ""),
        (10, 0, {"read/x": 6}, 0.5, "^6 of 10 records failed"),
        (10, 0, {}, 0.0, ""),
        (10, 0, {"read/x": 1}, 0.0, "^1 of 10 records failed"),
        (10, 0, {"read/x": 10}, 1.0, ""),
        (0, 0, {}, 0.0, ""),
        (9, 0, {"read/a": 2, "read/b": 7}, 0.1, NAMED),
        (1000, 0, {"read/broken_gzip": 1}, 0.5, BROKEN),
        (1000, 0, {"read/broken_gzip": 1}, 1.0, ""),
        (10, 5, {}, 0.5, ""),
        (10, 6, {}, 0.5, EMPTY),
    ):
        counts = {"read": read + 3, "empty": empty, "other_split": 3}
        letters = letters_of(reasons, "a", "file")
        check(tmp_path, counts, {"read": read + 3}, letters, share, message)


UNREAD = (
    "^1 file.* hold no record that can be read, .* those records out; first: b, byte "
    "0: detail$"
)


def test_a_file_of_which_no_record_can_be_read_fails_a_job(tmp_path):
    """A record may be all that a file has, and is one of the corpus."""
    for read, left_out, position, lost, share, message in (
        (2, 0, "byte 0", {"read/x": 2}, 0.5, UNREAD),
        (2, 0, "byte 0", {"read/x": 1, "read/y": 1}, 0.5, UNREAD),
        (2, 0, "byte 0", {"read/x": 2}, 1.0, ""),
        (3, 0, "byte 0", {"read/x": 2}, 0.5, ""),
        (3, 1, "byte 0", {"read/x": 2}, 0.5, UNREAD),
        (2, 0, "byte 0", {"read/x": 1, "search/x": 1}, 0.5, ""),
        (3, 0, "byte 0", {"read/x": 1, "read/empty_article": 2}, 0.5, ""),
        (1, 0, "byte 0", {"read/x": 1}, 0.5, ""),
        (2, 0, "file", {"read/x": 2}, 0.5, ""),
    ):
        counts = {"read": 500 + read, "empty": 0}
        of_file = {"read": read, "not_selected": left_out}
        letters = letters_of(lost, "b", position)
        check(tmp_path, counts, of_file, letters, share, message)


def letters_of(reasons, name, position):
    return [
        DeadLetter(*reason.split("/"), "detail", None, name, position, records=records)
        for reason, records in reasons.items()
    ]


def check(tmp_path, counts, of_file, letters, share, message):
    """An article without a text is not lost, and its file may have no counts here."""
    failed = {"failed": sum(letter.records for letter in letters)}
    sources = {letter.source_file: {**of_file, **failed} for letter in letters}
    folder = tmp_path / "letters"
    empty = "the article has no text"
    letters.append(DeadLetter("read", "empty_article", empty, None, "c", "byte 0"))
    with letter_file(folder / "7.jsonl.gz") as dead_letters:
        for letter in letters:
            dead_letters.write(letter)
    allowed = FailureOptions(max_failed_share=share)
    flags = {"allowed": allowed, "dead_letters": str(folder)}
    with pytest.raises(DataError, match=message) if message else nullcontext():
        check_failures({**counts, **failed}, dead_letters.reasons, sources, **flags)
