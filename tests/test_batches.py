"""Batches of similar length and the cost of their search; expected values by hand."""

import numpy as np
import pytest

from precis.model.inference.batches import (
    Hypothesis,
    SearchedBatch,
    batches_by_length,
    check_source_lengths,
    padded_length,
    restore_order,
)
from precis.model.inference.search_cost import SearchCost, describe, format_search_cost


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


def test_a_source_that_is_longer_than_the_network_reads_is_refused():
    sources = [np.zeros(length, "int32") for length in (3, 8, 9)]
    check_source_lengths(sources[:2], limit=8)
    with pytest.raises(
        ValueError,
        match="source 2 has 9 tokens, and the network reads 8; cut sources with",
    ):
        check_source_lengths(sources, limit=8)


def batch_sizes(lengths, *, beams):
    return [len(rows) for rows in batches_by_length(lengths, beams=beams, limit=512)]


def test_a_batch_is_sixteen_documents_of_four_hundred_tokens_at_four_beams():
    assert batch_sizes([400] * 40, beams=4) == [16, 16, 8]
    assert batch_sizes([400] * 40, beams=8) == [8] * 5
    assert batch_sizes([401] * 40, beams=4) == [15, 15, 10]  # padded to 416
    assert batch_sizes([2] * 100, beams=4) == [64, 36]  # 256 hypotheses


def test_a_batch_of_numbers_of_half_the_size_holds_twice_as_many():
    batches = batches_by_length(
        [400] * 40, beams=4, limit=512, precision="mixed_bfloat16"
    )
    assert [len(rows) for rows in batches] == [32, 8]


def test_every_document_is_a_batch_of_its_own():
    assert batches_by_length(
        [5, 400, 7, 400], beams=4, limit=512, batch_invariant=True
    ) == [[1], [3], [2], [0]]


def test_batches_hold_every_document_once_longest_first():
    lengths = [5, 900, 0, 5, 9000, 10_000, 1, 300]
    assert batches_by_length(lengths, beams=4, limit=10_000) == [
        [5],
        [4],
        [1, 7, 0, 3, 6, 2],
    ]
    assert batches_by_length([], beams=4, limit=9) == []


def searched(*lengths, started, ended, source_tokens=10, padded_tokens=16):
    """A batch whose best hypotheses have these lengths."""
    hypotheses = [
        [
            Hypothesis([7] * length, -1.0, -4.0, 1.0),
            Hypothesis([8] * 50, -2.0, -9.0, None),
        ]
        for length in lengths
    ]
    return SearchedBatch(hypotheses, source_tokens, padded_tokens, started, ended)


def test_hypotheses_come_back_in_the_order_of_the_documents():
    batches = [searched(3, 1, started=0, ended=1), searched(2, started=1, ended=2)]
    restored = restore_order([[2, 0], [1]], batches)
    assert [len(ranked[0].tokens) for ranked in restored] == [1, 2, 3]
    with pytest.raises(ValueError, match="zip"):
        restore_order([[0, 1]], batches)


def test_process_seconds_add_up_and_wall_seconds_are_counted_once():
    cost = SearchCost()
    cost.add(
        [
            searched(2, started=12.0, ended=15.0),
            searched(3, 4, started=10.0, ended=13.0),
        ],
        documents=2,
    )
    cost.add(
        [
            searched(1, started=14.0, ended=14.5),
            searched(5, started=20.0, ended=21.0, source_tokens=0),
        ],
        documents=1,
    )
    assert cost.sums == {
        "documents": 3,
        "passages": 5,
        "source_tokens": 30,
        "padded_tokens": 64,
        "summary_tokens": 15,
        "process_seconds": 7.5,
        "wall_seconds": 6.0,  # 10 to 15 and 20 to 21
    }


def test_ratios_follow_from_the_sums():
    sums = {
        "documents": 30,
        "passages": 40,
        "source_tokens": 750,
        "padded_tokens": 1000,
        "summary_tokens": 600,
        "process_seconds": 9.5,
        "wall_seconds": 6.0,
    }
    described = describe(sums)
    assert described == {
        **sums,
        "padding_share": 0.25,
        "documents_per_second": 5.0,
        "summary_tokens_per_second": 100.0,
    }
    tokens, seconds = format_search_cost(described).split("; ")
    assert tokens == (
        "search: 30 documents, 40 passages, 750 source tokens (25.0% padding), "
        "600 summary tokens"
    )
    assert seconds == ("9.5 s of processes in 6.0 s: 5.0 documents/s, 100.0 tokens/s")


def test_a_search_of_nothing_has_no_rates():
    described = describe(SearchCost().sums)
    assert described["padding_share"] == 0.0
    assert described["documents_per_second"] is None
    assert described["summary_tokens_per_second"] is None
    assert format_search_cost(described) == (
        "search: 0 documents, 0 passages, 0 source tokens (0.0% padding), "
        "0 summary tokens; "
        "0.0 s of processes in 0.0 s"
    )
