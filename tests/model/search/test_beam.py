"""Beam search against its definition in plain Python and against enumeration, over
random tables and random combinations of its options.

Short searches run eagerly, in half the time of building a graph for each;
`test_beam_graph.py` shows that a graph finds the same.
"""

import dataclasses
from collections import Counter

import pytest
from support.table_network import (
    check,
    plain_search_of,
    random_options,
    random_tables,
    search,
    whole_tables,
)

from precis.model.search.config import SearchConfig

DOCUMENTS = 12


def compare(case, counts, *, whole=False, more_ends=()):
    """One configuration over DOCUMENTS tables; adds to `counts`."""
    config, special, size = random_options(case, whole=whole)
    special = dataclasses.replace(special, more_end_ids=more_ends)
    make_tables = whole_tables if whole else random_tables
    tables = make_tables(DOCUMENTS, config.max_summary_tokens, size, seed=case)
    results = search(tables, config, special)
    for document in range(DOCUMENTS):
        expected, steps, ties = plain_search_of(tables, document, config, special)
        check(results, expected, document, special, tolerance=1e-6 if whole else 1e-4)
        counts["fewer"] += len(expected) < config.beam_width
        counts["early"] += steps < config.max_summary_tokens
        counts["ties"] += ties
        scores = {hypothesis.score for hypothesis in expected}
        counts["equal scores"] += len(scores) < len(expected)
        for hypothesis in expected:
            counts["finished" if hypothesis.finished else "unfinished"] += 1
            counts["another end"] += hypothesis.tokens[-1] in more_ends
        kinds = [hypothesis.finished for hypothesis in expected]
        counts["an unfinished one first"] += kinds != sorted(kinds, reverse=True)


FAST = range(24)


@pytest.mark.parametrize(
    "cases", [FAST, pytest.param(range(24, 120), marks=pytest.mark.slow)]
)
def test_it_finds_what_the_definition_finds(cases):
    counts = Counter()
    for case in cases:
        compare(case, counts)
    for kind in ("finished", "unfinished", "fewer", "early"):
        assert counts[kind] >= 10, counts


def test_several_tokens_may_end_a_summary():
    counts = Counter()
    for case in FAST[:8]:
        compare(case, counts, more_ends=(0, 2))
    assert counts["another end"] >= 10 and counts["unfinished"] >= 10, counts


@pytest.mark.parametrize(
    "cases",
    [range(1000, 1016), pytest.param(range(1016, 1090), marks=pytest.mark.slow)],
)
def test_among_equals_the_smaller_token_and_the_better_hypothesis_win(cases):
    counts = Counter()
    for case in cases:
        compare(case, counts, whole=True)
    assert counts["ties"] >= 20 and counts["equal scores"] >= 20, counts


def test_the_random_configurations_hold_every_option():
    configs = [random_options(case) for case in FAST]
    for field in dataclasses.fields(SearchConfig):
        if field.name not in ("n_best", "supported", "common_pieces"):
            values = {getattr(config, field.name) for config, *_ in configs}
            assert len(values) >= 2, field.name
    assert len({special.prefix for _, special, *_ in configs}) >= 3
    assert len({special.last_id for _, special, *_ in configs}) >= 3
    assert any(special.pad_id == special.end_id for _, special, *_ in configs)
    assert any(special.start_id == special.end_id for _, special, *_ in configs)
