"""Batches of similar length and what their search cost; expected values by hand."""

import pytest

from precis.model.inference.batches import (
    Hypothesis,
    SearchedBatch,
    batches_by_length,
    in_order,
    padded_length,
)
from precis.model.inference.search_cost import Figures, describe, in_one_line


@pytest.mark.parametrize(
    ("lengths", "limit", "expected"),
    [
        ([1], 99, 16),
        ([16, 3], 99, 16),
        ([17], 99, 32),
        ([95], 99, 96),
        ([98], 99, 99),
        ([0], 7, 7),
    ],
)
def test_sources_are_padded_to_a_multiple_of_sixteen_that_the_network_reads(
    lengths, limit, expected
):
    assert padded_length(lengths, limit) == expected


def test_a_batch_is_sixteen_documents_of_four_hundred_tokens_at_four_beams():
    assert [
        len(rows) for rows in batches_by_length([400] * 40, beams=4, limit=512)
    ] == [16, 16, 8]
    assert [
        len(rows) for rows in batches_by_length([400] * 40, beams=8, limit=512)
    ] == [8] * 5
    assert [
        len(rows) for rows in batches_by_length([401] * 40, beams=4, limit=512)
    ] == [15, 15, 10]  # padded to 416
    assert [len(rows) for rows in batches_by_length([2] * 100, beams=4, limit=512)] == [
        64,
        36,
    ]  # 256 hypotheses


def test_batches_hold_every_document_once_longest_first():
    lengths = [5, 900, 0, 5, 9000, 10_000, 1, 300]
    assert batches_by_length(lengths, beams=4, limit=10_000) == [
        [5],
        [4],
        [1, 7, 0, 3, 6, 2],
    ]
    assert batches_by_length([], beams=4, limit=9) == []


def searched(*lengths, started, ended, source_tokens=10, padded_tokens=16):
    found = [
        [
            Hypothesis([7] * length, -1.0, -4.0, 1.0),
            Hypothesis([8] * 50, -2.0, -9.0, None),
        ]
        for length in lengths
    ]
    return SearchedBatch(found, source_tokens, padded_tokens, started, ended)


def test_hypotheses_come_back_in_the_order_of_the_documents():
    batches = [searched(3, 1, started=0, ended=1), searched(2, started=1, ended=2)]
    assert [len(ranked[0].tokens) for ranked in in_order([[2, 0], [1]], batches)] == [
        1,
        2,
        3,
    ]
    with pytest.raises(ValueError, match="zip"):
        in_order([[0, 1]], batches)


def test_seconds_of_processes_add_up_and_those_of_the_clock_are_counted_once():
    figures = Figures()
    figures.add(
        [
            searched(2, started=12.0, ended=15.0),
            searched(3, 4, started=10.0, ended=13.0),
        ]
    )
    figures.add(
        [
            searched(1, started=14.0, ended=14.5),
            searched(5, started=20.0, ended=21.0, source_tokens=0),
        ]
    )
    assert figures.sums == {
        "documents": 5,
        "source_tokens": 30,
        "padded_tokens": 64,
        "summary_tokens": 15,
        "process_seconds": 7.5,
        "wall_seconds": 6.0,  # 10 to 15 and 20 to 21
    }


def test_what_follows_from_the_sums():
    sums = {
        "documents": 30,
        "source_tokens": 750,
        "padded_tokens": 1000,
        "summary_tokens": 600,
        "process_seconds": 9.5,
        "wall_seconds": 6.0,
    }
    found = describe(sums)
    assert found == {
        **sums,
        "padding_share": 0.25,
        "documents_per_second": 5.0,
        "summary_tokens_per_second": 100.0,
    }
    said, rates = in_one_line(found).split("; ")
    assert (
        said
        == "search: 30 documents, 750 source tokens (25.0% padding), 600 summary tokens"
    )
    assert rates == "9.5 s of processes in 6.0 s: 5.0 documents/s, 100.0 tokens/s"


def test_nothing_was_searched():
    found = describe(Figures().sums)
    assert (
        found["padding_share"],
        found["documents_per_second"],
        found["summary_tokens_per_second"],
    ) == (0.0, None, None)
    assert (
        in_one_line(found)
        == "search: 0 documents, 0 source tokens (0.0% padding), 0 summary tokens; 0.0 s of processes in 0.0 s"
    )
