"""Beam search stops when it should, finds the same in one graph and whatever else is in
the batch, and runs in segments: room is made piece by piece, and documents that are
done are dropped.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
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


STOPPING = [
    SearchConfig(
        beam_width=width,
        beam_groups=groups,
        max_summary_tokens=6,
        no_repeat_ngram=0,
        early_stopping=early,
        length_penalty_form="average",
        **options,
    )
    for early, width, groups, options in (
        ("never", 3, 1, {"length_penalty": -0.5}),
        ("never", 4, 2, {"diversity_penalty": 0.5}),
        ("first_k", 4, 2, {"diversity_penalty": 0.5}),
        ("bound", 3, 1, {}),
    )
]


@pytest.mark.parametrize(
    "config",
    STOPPING,
    ids=lambda config: f"{config.early_stopping}-{config.beam_width}",
)
def test_it_stops_at_the_step_where_the_definition_does(config):
    """Documents that stop at different steps: the two earliest alone, and all together,
    which take as many steps as the longest.
    """
    tables = ending_tables(40, 6, 4, seed=3)
    expected = [
        plain_search_of(tables, document, config, SPECIAL) for document in range(40)
    ]
    first = {
        results.steps: document
        for document, results in reversed(list(enumerate(expected)))
    }
    assert len(first) >= 3, first
    for documents in (
        [first[step] for step in steps]
        for steps in (sorted(first)[:1], sorted(first)[1:2], first)
    ):
        network = TableNetwork()
        results = search(
            tuple(part[documents] for part in tables), config, SPECIAL, network=network
        )
        assert network.calls == list(
            range(max(expected[document].steps for document in documents))
        )
        for row, document in enumerate(documents):
            check(results, expected[document].hypotheses, row, SPECIAL)


@pytest.mark.parametrize(
    ("early", "steps"), [("first_k", 2), ("bound", 3), ("never", 4)]
)
def test_steps_by_hand(early, steps):
    """Two hypotheses, at most 9 tokens, scores are log-probabilities over the length; E
    is the end token, a and b are words.

    step  probabilities     finished and scores           best live hypothesis
    1     a .5, E .3, b .2  E -1.20                       a    ln .5
    2     E .6, a .4        aE ln .3 / 2 = -0.60, E       aa   ln .2 = -1.61
    3     E .6, a .4        aE, aaE ln .12 / 3 = -0.71    aaa  ln .08 = -2.53
    4     E .99, a .01      aE, aaaE ln .0792 / 4 = -0.63 aaaa ln .0008 = -7.1

    The best live score over the present length and over 9 tokens, against the worst
    finished score:
    2     -0.80 and -0.18 are above E
    3     -0.84 is below aaE, -0.28 is not
    4     -0.79 over 9 tokens is below aaaE
    """
    table = np.full((1, 9, 4, 4), -30.0, "float32")
    table[0, 0, :, 1:] = np.log([0.3, 0.5, 0.2])
    for step, end in enumerate([0.6, 0.6, 0.99, 0.5, 0.5, 0.5, 0.5, 0.5], start=1):
        table[0, step, :, 1:3] = np.log([end, 1 - end])
    config = SearchConfig(
        beam_width=2,
        max_summary_tokens=9,
        no_repeat_ngram=0,
        length_penalty_form="average",
        early_stopping=early,
    )
    network = TableNetwork()
    results = search(
        (table, np.zeros((1, 7, 4), "float32")), config, SPECIAL, network=network
    )
    assert network.calls == list(range(steps))
    worst = {"first_k": [1], "bound": [2, 2, 1], "never": [2, 2, 2, 1]}[early]
    assert np.asarray(results.tokens)[0].tolist() == [
        [2, 1] + [0] * 7,
        worst + [0] * (9 - len(worst)),
    ]


@pytest.mark.parametrize(
    ("width", "form", "alpha"), [(1, "wu", 0.0), (2, "average", 1.0), (3, "wu", 2.0)]
)
def test_stopping_early_changes_nothing(width, form, alpha):
    """A document that is decided takes no more hypotheses while others of the batch go
    on; the plain search continues to the last place.
    """
    config = SearchConfig(
        beam_width=width,
        length_penalty=alpha,
        length_penalty_form=form,
        max_summary_tokens=6,
        no_repeat_ngram=0,
        early_stopping="never",
    )
    tables = ending_tables(40, 6, 5, seed=width)
    results = search(tables, config, SPECIAL)
    early = 0
    for document in range(40):
        to_the_end = plain_search_of(tables, document, config, SPECIAL, stops=False)
        check(results, to_the_end.hypotheses, document, SPECIAL)
        early += plain_search_of(tables, document, config, SPECIAL).steps < 6
    assert early >= 5


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


def test_one_graph_finds_the_same_whatever_else_is_in_the_batch(monkeypatch):
    """All options at once, in segments of two steps, so that documents are dropped."""
    monkeypatch.setattr(compaction, "SEGMENT", 2)
    special = dataclasses.replace(SPECIAL, prefix=(2,), last_id=1)
    tables = ending_tables(12, 7, 6, seed=5)
    signature = [tf.TensorSpec([None, *part.shape[1:]], tf.float32) for part in tables]
    compiled = tf.function(
        lambda *memory: search(memory, EVERYTHING, special, covers=True),
        input_signature=signature,
        autograph=False,
    )
    alone, steps = [], set()
    for document in range(12):
        alone.append(compiled(*(part[document : document + 1] for part in tables)))
        expected = plain_search_of(tables, document, EVERYTHING, special, covers=True)
        check(alone[-1], expected.hypotheses, 0, special)
        steps.add(expected.steps)
    assert len(steps) >= 2
    for shift in (0, 1, 5, 8):
        order = np.roll(np.arange(12), shift)
        together = compiled(*(part[order] for part in tables))
        for place, document in enumerate(order):
            for part, single in zip(together, alone[document], strict=True):
                np.testing.assert_allclose(part[place], single[0], rtol=1e-6)


@pytest.mark.slow
def test_sixty_tokens():
    """More than two segments of the real size; an unlikely end token makes summaries
    long.
    """
    config = SearchConfig(
        beam_width=3,
        max_summary_tokens=60,
        no_repeat_ngram=3,
        repetition_penalty=1.1,
        min_summary_tokens=20,
    )
    tables = random_tables(6, 60, 6, seed=11)
    tables[0][..., 1] -= 3.0
    results = compiled_search(tables, config, SPECIAL)
    assert compaction.SEGMENT < 30
    longest = 0
    for document in range(6):
        expected = plain_search_of(tables, document, config, SPECIAL).hypotheses
        check(results, expected, document, SPECIAL, tolerance=1e-3)
        longest = max(longest, *(len(hypothesis.tokens) for hypothesis in expected))
    assert longest > 25


# Segments


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


@pytest.mark.parametrize(
    ("early", "groups"), [("never", 1), ("first_k", 2), ("bound", 2)]
)
def test_documents_that_are_done_are_dropped_between_segments(
    monkeypatch, early, groups
):
    """The results stay at the places of their documents, with documents that end late
    among those that end early.
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
    order = np.random.default_rng(0).permutation(24)
    tables = tuple(part[order] for part in ending_tables(24, 8, 6, seed=9))
    network = TableNetwork()
    results = search(tables, config, SPECIAL, covers=True, network=network)
    steps = []
    for document in range(24):
        expected = plain_search_of(tables, document, config, SPECIAL, covers=True)
        check(results, expected.hypotheses, document, SPECIAL)
        steps.append(expected.steps)
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
    # The end, alone and after one token: all are done after two steps.
    tables[0][..., 1] = 9.0
    network = TableNetwork()
    results = search(tables, config, SPECIAL, network=network)
    assert network.calls == [0, 1]
    for document in range(3):
        expected = plain_search_of(tables, document, config, SPECIAL)
        check(results, expected.hypotheses, document, SPECIAL)
