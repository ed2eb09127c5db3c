"""Beam search stops when it should, and finds the same in one graph and whatever else
is in the batch.
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
    """Documents that stop at different steps: the two earliest alone, and all together,
    which take as many steps as the longest.
    """
    tables = ending_tables(60, 6, 4, seed=3)
    expected = [
        plain_search_of(tables, document, config, SPECIAL) for document in range(60)
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
    """One document per call, so that each stops when it is decided; the plain search
    continues to the last place.
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
        results = compiled(
            *(tf.constant(part[document : document + 1]) for part in tables)
        )
        check(
            results,
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
def test_other_documents_of_the_batch_change_nothing(config):
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


@pytest.mark.parametrize(("early", "order"), [("never", 3), ("first_k", 0)])
def test_sixty_tokens(early, order):
    """More than two segments of the real size; an unlikely end token makes summaries
    long.
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
    results = compiled_search(tables, config, SPECIAL)
    assert compaction.SEGMENT < 30
    longest = 0
    for document in range(6):
        expected = plain_search_of(tables, document, config, SPECIAL).hypotheses
        check(results, expected, document, SPECIAL, tolerance=1e-3)
        longest = max(longest, *(len(hypothesis.tokens) for hypothesis in expected))
    assert longest > 25
