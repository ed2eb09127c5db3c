"""Batches of similar length and the cost of their search; expected values by hand."""

import pytest

from precis.model.inference.batches import (
    Hypothesis,
    SearchedBatch,
    batches_by_length,
    padded_length,
    restore_order,
)
from precis.model.inference.search_cost import SearchCost, describe, format_search_cost


@pytest.mark.parametrize(
    ("longest", "expected"), [(1, 16), (16, 16), (17, 32), (95, 96), (98, 99), (0, 16)]
)
def test_sources_are_padded_to_a_multiple_of_sixteen(longest, expected):
    assert padded_length([longest, 0], 99) == expected


WORK = [
    ([400] * 40, {}, [16, 16, 8]),
    ([400] * 40, {"beams": 8}, [8] * 5),
    ([401] * 40, {}, [15, 15, 10]),  # padded to 416
    ([2] * 100, {}, [64, 36]),  # 256 hypotheses
    ([400] * 40, {"precision": "mixed_bfloat16"}, [32, 8]),
    ([], {}, []),
]


@pytest.mark.parametrize(("lengths", "given", "sizes"), WORK)
def test_batches_are_about_the_same_work(lengths, given, sizes):
    batches = batches_by_length(
        lengths, **{"beams": 4, "max_source_tokens": 512, **given}
    )
    assert list(map(len, batches)) == sizes


def test_batches_hold_every_document_once_longest_first():
    lengths = [5, 900, 0, 5, 9000, 10_000, 1, 300]
    batches = batches_by_length(lengths, beams=4, max_source_tokens=10_000)
    assert batches == [[5], [4], [1, 7, 0, 3, 6, 2]]


SUMS = (
    "documents passages source_tokens padded_tokens summary_tokens process_seconds "
    "wall_seconds"
).split()


def searched(*lengths, started, ended):
    """A batch whose best hypotheses have these lengths."""
    second = Hypothesis([8] * 50, -2.0, -9.0, None)
    best = [Hypothesis([7] * length, -1.0, -4.0, 1.0) for length in lengths]
    ranked = [[first, second] for first in best]
    return SearchedBatch(ranked, 10, 16, started, ended)


def test_hypotheses_come_back_in_the_order_of_the_documents():
    batches = [searched(3, 1, started=0, ended=1), searched(2, started=1, ended=2)]
    restored = restore_order([[2, 0], [1]], batches)
    assert [len(ranked[0].tokens) for ranked in restored] == [1, 2, 3]


def test_process_seconds_add_up_and_wall_seconds_are_counted_once():
    cost = SearchCost()
    times = [(12.0, 15.0), (10.0, 13.0), (14.0, 14.5), (20.0, 21.0)]
    first, second, third, fourth = (
        searched(2, 3, started=started, ended=ended) for started, ended in times
    )
    cost.add([first, second], documents=2)
    cost.add([third, fourth], documents=1)
    # The wall saw 10 to 15 and 20 to 21.
    assert cost.sums == dict(zip(SUMS, (3, 8, 40, 64, 20, 7.5, 6.0), strict=True))


def test_ratios_follow_from_the_sums():
    sums = dict(zip(SUMS, (30, 40, 750, 1000, 600, 9.5, 6.0), strict=True))
    described = describe(sums)
    ratios = ("padding_share", "documents_per_second", "summary_tokens_per_second")
    assert described == sums | dict(zip(ratios, (0.25, 5.0, 100.0), strict=True))
    assert format_search_cost(described) == (
        "search: 30 documents, 40 passages, 750 source tokens (25.0% padding), "
        "600 summary tokens; 9.5 s of process time in 6.0 s: 5.0 documents/s, "
        "100.0 tokens/s"
    )
