"""Beam search against its definition in plain Python and against enumeration, over
random tables and random combinations of its options.

Short searches run eagerly, in half the time of building a graph for each;
`test_beam_graph.py` shows that a graph finds the same.
"""

import dataclasses
from collections import Counter

import pytest
from support import plain_search
from support.table_network import (
    check,
    plain_logits,
    plain_search_of,
    random_options,
    random_tables,
    search,
    whole_tables,
)

from precis.model.search.config import SearchConfig, SpecialTokens

DOCUMENTS = 12


def compare(case, counts, *, whole=False):
    """One configuration over DOCUMENTS tables; adds to `counts`."""
    config, special, size = random_options(case, whole=whole)
    tables = (whole_tables if whole else random_tables)(
        DOCUMENTS, config.max_summary_tokens, size, seed=case
    )
    results = search(tables, config, special)
    for document in range(DOCUMENTS):
        expected, steps, ties = plain_search_of(tables, document, config, special)
        check(results, expected, document, special, tolerance=1e-6 if whole else 1e-4)
        counts["fewer"] += len(expected) < config.beam_width
        counts["early"] += steps < config.max_summary_tokens
        counts["ties"] += ties
        counts["equal scores"] += len(
            {hypothesis.score for hypothesis in expected}
        ) < len(expected)
        for hypothesis in expected:
            counts["finished" if hypothesis.finished else "unfinished"] += 1
        kinds = [hypothesis.finished for hypothesis in expected]
        counts["an unfinished one first"] += kinds != sorted(kinds, reverse=True)


FAST, MANY = range(24), range(24, 120)


def test_it_finds_what_the_definition_finds():
    counts = Counter()
    for case in FAST:
        compare(case, counts)
    assert all(
        counts[kind] >= 10 for kind in ("finished", "unfinished", "fewer", "early")
    ), counts


@pytest.mark.slow
def test_it_finds_what_the_definition_finds_in_many_configurations():
    counts = Counter()
    for case in MANY:
        compare(case, counts)
    assert all(
        counts[kind] >= 100 for kind in ("finished", "unfinished", "fewer", "early")
    ), counts


def test_among_equals_the_smaller_token_and_then_the_better_hypothesis_comes_first():
    counts = Counter()
    for case in range(1000, 1016):
        compare(case, counts, whole=True)
    assert counts["ties"] >= 20 and counts["equal scores"] >= 20, counts


@pytest.mark.slow
def test_ties_in_many_configurations():
    counts = Counter()
    for case in range(1016, 1090):
        compare(case, counts, whole=True)
    assert counts["ties"] >= 100 and counts["equal scores"] >= 100, counts


def test_the_random_configurations_hold_every_option():
    configs = [random_options(case) for case in FAST]
    for field in dataclasses.fields(SearchConfig):
        if field.name not in ("n_best", "supported", "common_pieces"):
            assert len({getattr(config, field.name) for config, *_ in configs}) >= 2, (
                field.name
            )
    assert len({special.prefix for _, special, *_ in configs}) >= 3
    assert len({special.last_id for _, special, *_ in configs}) >= 3
    assert any(special.pad_id == special.end_id for _, special, *_ in configs)
    assert any(special.start_id == special.end_id for _, special, *_ in configs)


PLAIN = SpecialTokens(start_id=0, end_id=1, pad_id=0, suppressed=(0,))
WIDE = SearchConfig(beam_width=40, max_summary_tokens=4, no_repeat_ngram=0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"length_penalty": 0.0},
        {
            "length_penalty": 2.0,
            "early_stopping": "first_k",
        },  # fewer than 40 finish: it never stops
        {"length_penalty_form": "average"},
        {"length_penalty_form": "none", "min_summary_tokens": 2},
        {"no_repeat_ngram": 1},
        {"no_repeat_ngram": 2, "length_penalty_form": "average", "length_penalty": 0.5},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 1.7, "repetition_penalty_form": "logits"},
        {"repetition_penalty": 0.4, "unfinished": "compete"},
        {"unfinished": "compete", "length_penalty": 2.0},
        {"unfinished": "compete", "min_summary_tokens": 1},
        {"prefix": (3,), "no_repeat_ngram": 1},
        {"last_id": 1},
        {"last_id": 2, "unfinished": "compete"},
        {"suppressed": (0, 2)},
    ],
    ids=str,
)
def test_a_wide_beam_finds_every_hypothesis(changes):
    """Two tokens, the end token and four places make at most 15 finished and 16
    unfinished hypotheses.
    """
    options = {
        name: changes[name]
        for name in changes
        if name in ("prefix", "last_id", "suppressed")
    }
    special = dataclasses.replace(PLAIN, **options)
    config = dataclasses.replace(
        WIDE, **{name: value for name, value in changes.items() if name not in options}
    )
    tables = random_tables(8, 4, 4, seed=len(str(changes)))
    results = search(tables, config, special)
    for document in range(8):
        expected = plain_search.all_hypotheses(
            plain_logits(tables, document, 0), config=config, special=special
        )
        assert 2 <= len(expected) <= 31 and (changes or len(expected) == 31)
        check(results, expected, document, special)
