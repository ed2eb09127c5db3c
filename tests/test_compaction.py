"""A search in segments: room is made piece by piece, and documents that are done are
dropped.
"""

import dataclasses

import numpy as np
import pytest
from support.table_network import (
    TableNetwork,
    check,
    compiled_search,
    ending_tables,
    plain_search_of,
    random_tables,
    search,
)

from precis.model.search import compaction
from precis.model.search.config import SearchConfig, SpecialTokens

SPECIAL = SpecialTokens(start_id=0, end_id=1, pad_id=0, suppressed=(0,))
EVERYTHING = SearchConfig(
    beam_width=4,
    beam_groups=2,
    diversity_penalty=0.4,
    max_summary_tokens=7,
    min_summary_tokens=2,
    no_repeat_ngram=2,
    repetition_penalty=1.2,
    coverage_penalty=0.3,
    length_penalty_form="average",
    early_stopping="bound",
    unfinished="compete",
)


@pytest.mark.parametrize(
    ("segment", "length", "rooms"),
    [
        (2, 7, [(0, 2), (2, 2), (4, 2), (6, 2)]),
        (2, 4, [(0, 2), (2, 2)]),
        (2, 1, [(0, 1)]),
        (3, 3, [(0, 3)]),
    ],
)
def test_room_is_made_segment_by_segment(monkeypatch, segment, length, rooms):
    monkeypatch.setattr(compaction, "SEGMENT", segment)
    config = dataclasses.replace(
        EVERYTHING,
        max_summary_tokens=length,
        min_summary_tokens=0,
        early_stopping="never",
        beam_groups=1,
    )
    tables = random_tables(12, length, 6, seed=length)
    network = TableNetwork()
    results = search(tables, config, SPECIAL, covers=True, network=network)
    assert network.rooms == rooms
    for document in range(12):
        check(
            results,
            plain_search_of(tables, document, config, SPECIAL, covers=True).hypotheses,
            document,
            SPECIAL,
        )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("early", ["never", "first_k", "bound"])
def test_documents_that_are_done_are_dropped_between_segments(
    monkeypatch, early, groups
):
    """The results stay at the places of their documents, compiled and eagerly, with
    documents that end late among those that end early.
    """
    monkeypatch.setattr(compaction, "SEGMENT", 2)
    config = SearchConfig(
        beam_width=2,
        beam_groups=groups,
        diversity_penalty=0.5,
        max_summary_tokens=8,
        coverage_penalty=0.1,
        early_stopping=early,
    )
    tables = tuple(
        part[np.random.default_rng(0).permutation(24)]
        for part in ending_tables(24, 8, 6, seed=9)
    )
    expected = [
        plain_search_of(tables, document, config, SPECIAL, covers=True)
        for document in range(24)
    ]
    network = TableNetwork()
    eager = search(tables, config, SPECIAL, covers=True, network=network)
    compiled = compiled_search(tables, config, SPECIAL, covers=True)
    for document in range(24):
        check(eager, expected[document].hypotheses, document, SPECIAL)
        check(compiled, expected[document].hypotheses, document, SPECIAL)
    steps = [results.steps for results in expected]
    assert network.documents == [
        sum(step > index // 2 * 2 for step in steps) for index in range(max(steps))
    ]
    assert len(set(network.documents)) >= 3, network.documents


def test_one_document_stays_when_all_are_done_between_segments(monkeypatch):
    monkeypatch.setattr(compaction, "SEGMENT", 2)
    config = SearchConfig(
        beam_width=2, max_summary_tokens=6, no_repeat_ngram=0, early_stopping="first_k"
    )
    tables = np.zeros((3, 6, 4, 4), "float32"), np.zeros((3, 7, 4), "float32")
    tables[0][..., 1] = (
        9.0  # the end, alone and after one token: all are done after two steps
    )
    network = TableNetwork()
    eager, compiled = (
        search(tables, config, SPECIAL, network=network),
        compiled_search(tables, config, SPECIAL),
    )
    assert network.calls == [0, 1]
    for document in range(3):
        check(
            eager,
            plain_search_of(tables, document, config, SPECIAL).hypotheses,
            document,
            SPECIAL,
        )
        check(
            compiled,
            plain_search_of(tables, document, config, SPECIAL).hypotheses,
            document,
            SPECIAL,
        )
