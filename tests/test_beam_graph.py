"""Beam search stops when it should, is the same in one graph, with room made in pieces,
and whatever else is in the batch.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from precis.model.search import beam
from precis.model.search.config import SearchConfig, SpecialTokens
from tests.table_network import (
    TableNetwork,
    check,
    compiled_search,
    plain_search_of,
    random_tables,
    search,
)

SPECIAL = SpecialTokens(start_id=0, end_id=1, pad_id=0, suppressed=(0,))


def ending_tables(documents, length, size, *, seed):
    """Tables where documents are decided at different steps."""
    table, prints = random_tables(documents, length, size, seed=seed, scale=3.0)
    table[:, :, :, 1] += np.linspace(-4, 6, documents, dtype="float32")[:, None, None]
    return table, prints


STOPPING = [
    SearchConfig(
        beam_width=width,
        beam_groups=groups,
        max_summary_tokens=6,
        no_repeat_ngram=0,
        early_stopping=early,
        **options,
    )
    for early in ("never", "first_k", "bound")
    for width, groups, options in (
        (3, 1, {"length_penalty_form": "average", "length_penalty": -0.5}),
        (4, 2, {"length_penalty_form": "average", "diversity_penalty": 0.5}),
    )
]


@pytest.mark.parametrize(
    "config",
    STOPPING,
    ids=lambda config: f"{config.early_stopping}-{config.beam_width}",
)
def test_it_stops_at_the_step_where_the_definition_does(config):
    """Documents that stop at each of the steps: the earliest two alone, and all
    together, who take as long as the longest.
    """
    tables = ending_tables(60, 6, 4, seed=3)
    expected = [
        plain_search_of(tables, document, config, SPECIAL) for document in range(60)
    ]
    first = {
        found.steps: document for document, found in reversed(list(enumerate(expected)))
    }
    assert len(first) >= 3, first
    for documents in (
        [first[step] for step in steps]
        for steps in (sorted(first)[:1], sorted(first)[1:2], first)
    ):
        network = TableNetwork()
        found = search(
            tuple(part[documents] for part in tables), config, SPECIAL, network=network
        )
        assert network.calls == list(
            range(max(expected[document].steps for document in documents))
        )
        for row, document in enumerate(documents):
            check(found, expected[document].hypotheses, row, SPECIAL)


@pytest.mark.parametrize(
    ("early", "steps"), [("first_k", 2), ("bound", 3), ("never", 4)]
)
def test_steps_by_hand(early, steps):
    """Two hypotheses, at most 9 tokens, scores are log-probabilities over the length; E
    is the end, a and b are words.

    step  probabilities     finished, with scores         best live            over its length, over 9
    1     a .5, E .3, b .2  E ln .3 = -1.20               a  .5
    2     E .6, a .4        aE ln .3 / 2 = -0.60, E       aa ln .2 = -1.61     -0.80, -0.18: above E, which is the worst of two
    3     E .6, a .4        aE, aaE ln .12 / 3 = -0.71    aaa ln .08 = -2.53   -0.84 is below aaE, -0.28 is not
    4     E .99, a .01      aE, aaaE ln .0792 / 4 = -0.63  aaaa ln .0008 = -7.1  -0.79 over 9 is below aaaE
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
    found = search(
        (table, np.zeros((1, 7, 4), "float32")), config, SPECIAL, network=network
    )
    assert network.calls == list(range(steps))
    worst = {"first_k": [1], "bound": [2, 2, 1], "never": [2, 2, 2, 1]}[early]
    assert np.asarray(found.tokens)[0].tolist() == [
        [2, 1] + [0] * 7,
        worst + [0] * (9 - len(worst)),
    ]


@pytest.mark.parametrize(
    ("width", "form", "alpha"), [(1, "wu", 0.0), (2, "average", 1.0), (3, "wu", 2.0)]
)
def test_stopping_early_changes_nothing(width, form, alpha):
    """One document a call, so that each stops when it alone is decided; the plain
    search goes on to the last place.
    """
    config = SearchConfig(
        beam_width=width,
        length_penalty=alpha,
        length_penalty_form=form,
        max_summary_tokens=6,
        no_repeat_ngram=0,
        early_stopping="never",
    )
    tables = ending_tables(60, 6, 5, seed=width)
    compiled = tf.function(
        lambda *memory: search(memory, config, SPECIAL), autograph=False
    )
    early = 0
    for document in range(60):
        found = compiled(
            *(tf.constant(part[document : document + 1]) for part in tables)
        )
        check(
            found,
            plain_search_of(tables, document, config, SPECIAL, stops=False).hypotheses,
            0,
            SPECIAL,
        )
        early += plain_search_of(tables, document, config, SPECIAL).steps < 6
    assert early >= 5


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(
            beam_width=3,
            max_summary_tokens=6,
            no_repeat_ngram=2,
            early_stopping="bound",
        ),
        SearchConfig(
            beam_width=4,
            beam_groups=2,
            diversity_penalty=0.7,
            max_summary_tokens=6,
            repetition_penalty=1.4,
            coverage_penalty=0.3,
            min_summary_tokens=1,
        ),
    ],
    ids=["bound", "groups"],
)
def test_neighbours_change_nothing(config):
    tables = ending_tables(16, 6, 6, seed=5)
    signature = [tf.TensorSpec([None, *part.shape[1:]], tf.float32) for part in tables]
    compiled = tf.function(
        lambda *memory: search(
            memory, config, SPECIAL, covers=config.coverage_penalty > 0
        ),
        input_signature=signature,
        autograph=False,
    )
    alone = [
        compiled(*(part[document : document + 1] for part in tables))
        for document in range(16)
    ]
    assert (
        len(
            {
                int(plain_search_of(tables, document, config, SPECIAL).steps)
                for document in range(16)
            }
        )
        >= 2
    )
    for shift in range(16):
        order = np.roll(np.arange(16), shift)
        together = compiled(*(part[order] for part in tables))
        for place, document in enumerate(order):
            for part, single in zip(together, alone[document], strict=True):
                np.testing.assert_allclose(
                    np.asarray(part)[place], np.asarray(single)[0], rtol=1e-6
                )


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


@pytest.mark.parametrize("groups", [1, 2])
def test_one_graph_finds_the_same(groups):
    config = dataclasses.replace(EVERYTHING, beam_groups=groups)
    special = dataclasses.replace(SPECIAL, prefix=(2,), last_id=1)
    tables = random_tables(20, 7, 6, seed=1)
    eager = search(tables, config, special, covers=True)
    compiled = compiled_search(tables, config, special, covers=True)
    for document in range(20):
        expected = plain_search_of(
            tables, document, config, special, covers=True
        ).hypotheses
        check(eager, expected, document, special)
        check(compiled, expected, document, special)


@pytest.mark.parametrize(
    ("segment", "length", "rooms"),
    [
        (2, 7, [(0, 2), (2, 2), (4, 2), (6, 2)]),
        (2, 4, [(0, 2), (2, 2)]),
        (2, 1, [(0, 1)]),
        (3, 3, [(0, 3)]),
    ],
)
def test_room_is_made_in_pieces(monkeypatch, segment, length, rooms):
    monkeypatch.setattr(beam, "SEGMENT", segment)
    config = dataclasses.replace(
        EVERYTHING,
        max_summary_tokens=length,
        min_summary_tokens=0,
        early_stopping="never",
        beam_groups=1,
    )
    tables = random_tables(12, length, 6, seed=length)
    network = TableNetwork()
    found = search(tables, config, SPECIAL, covers=True, network=network)
    assert network.rooms == rooms
    for document in range(12):
        check(
            found,
            plain_search_of(tables, document, config, SPECIAL, covers=True).hypotheses,
            document,
            SPECIAL,
        )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("early", ["never", "first_k", "bound"])
def test_documents_that_are_done_leave_between_segments(monkeypatch, early, groups):
    """What is found stays where it belongs: compiled and eagerly, the documents that
    end late in the middle of those that end early.
    """
    monkeypatch.setattr(beam, "SEGMENT", 2)
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
    steps = [found.steps for found in expected]
    assert network.documents == [
        sum(step > index // 2 * 2 for step in steps) for index in range(max(steps))
    ]
    assert len(set(network.documents)) >= 3, network.documents


def test_one_is_left_when_all_are_done_between_segments(monkeypatch):
    monkeypatch.setattr(beam, "SEGMENT", 2)
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


@pytest.mark.parametrize(("early", "order"), [("never", 3), ("first_k", 0)])
def test_sixty_tokens(early, order):
    """More than two segments of the real size; the end is made unlikely, so that
    documents are long.
    """
    config = SearchConfig(
        beam_width=3,
        max_summary_tokens=60,
        no_repeat_ngram=order,
        early_stopping=early,
        repetition_penalty=1.1,
        min_summary_tokens=20,
    )
    tables = random_tables(6, 60, 6, seed=11)
    tables[0][..., 1] -= 3.0
    found = compiled_search(tables, config, SPECIAL)
    assert beam.SEGMENT < 30
    longest = 0
    for document in range(6):
        expected = plain_search_of(tables, document, config, SPECIAL).hypotheses
        check(found, expected, document, SPECIAL, tolerance=1e-3)
        longest = max(longest, *(len(hypothesis.tokens) for hypothesis in expected))
    assert longest > 25
