"""Tests of dead letters and of the share of them that a job bears."""

import pytest

from precis.model.errors import DataError
from precis.model.text.document import Document
from precis.pipelines.corpus.task import EmptyArticle, Unreadable
from precis.pipelines.dead_letters import (
    DeadLetter,
    check_failures,
    count_reasons,
    empty_article_letter,
    unreadable_letter,
)


def test_an_unreadable_record_becomes_a_letter_with_all_it_said():
    letter = unreadable_letter(
        Unreadable("a.jsonl", "byte 12", "invalid_json", "unexpected end", b'{"a')
    )
    assert letter == DeadLetter(
        "read",
        "invalid_json",
        "unexpected end",
        None,
        "a.jsonl",
        "byte 12",
        b'{"a',
        1,
        None,
        False,
        None,
    )


def test_the_letter_of_an_empty_article_has_its_place_and_its_bytes():
    document = Document("d1", "test", "", source_file="a", source_position="byte 7")
    letter = empty_article_letter(EmptyArticle(document, b"{}"))
    assert letter == DeadLetter(
        "read", "empty_article", "the article has no text", "d1", "a", "byte 7", b"{}"
    )
    nothing = empty_article_letter(EmptyArticle(Document(), b""))
    assert (nothing.document_id, nothing.raw) == (None, None)


def test_letters_are_counted_by_stage_and_reason():
    letters = [
        DeadLetter("read", "b", "1"),
        DeadLetter("read", "a", "2"),
        DeadLetter("read", "b", "3"),
        DeadLetter("write", "b", "4"),
    ]
    assert count_reasons(letters) == {"read/a": 1, "read/b": 2, "write/b": 1}
    assert count_reasons([]) == {}


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
            {"read": read, "failed": failed},
            {"read/x": failed},
            max_failed_share=share,
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
        "see gs://b/dead_letters, mend the corpus, or ",
    ):
        check_failures(
            {"read": 9, "failed": 9},
            {"read/a": 2, "read/b": 7},
            max_failed_share=0.1,
            dead_letters="gs://b/dead_letters",
        )


def test_a_stream_that_broke_off_fails_the_job_whatever_its_share():
    counts, reasons = {"read": 1000, "failed": 1}, {"read/broken_gzip": 1}
    with pytest.raises(
        DataError,
        match="1 gzip stream.* broke off and an unknown number of records is lost; "
        "see dead, replace the files",
    ):
        check_failures(counts, reasons, max_failed_share=0.5, dead_letters="dead")
    check_failures(counts, reasons, max_failed_share=1.0, dead_letters="dead")


def test_lost_records_count_and_not_their_letters():
    letters = [
        unreadable_letter(Unreadable("a", "row 3", "broken_parquet", "gone", b"", 40)),
        DeadLetter("read", "broken_parquet", "gone"),
    ]
    assert count_reasons(letters) == {"read/broken_parquet": 41}
