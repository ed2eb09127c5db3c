"""Coverage, the sum of past copy distributions: its loss, its penalty, its counting in
a search, and its influence on the ranking.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from support import plain_search
from support.small_network import (
    COVERED,
    KINDS,
    PAD,
    SOURCE,
    TARGET,
    make_network,
    network_of,
)
from support.table_network import check
from support.walks import SOURCE as DOCUMENTS
from support.walks import every_summary, random_walk

from precis.model.cache import grow, reorder_beams, select_documents
from precis.model.network.layers import score_bias
from precis.model.network.pointer import coverage_loss, coverage_penalty
from precis.model.search import compaction
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.greedy import greedy_search

START, END = 1, 2
# Three tokens and the end: few enough that every summary can be listed.
LIVE = (3, 7, 8)
SPECIAL = SpecialTokens(
    start_id=START,
    end_id=END,
    pad_id=PAD,
    suppressed=tuple(sorted(set(range(13)) - {END, *LIVE})),
)


def copies_of(network, source, target):
    """The copy distributions of the teacher-forced call, [B, T, S]."""
    (copy,) = [
        attention_map
        for attention_map in network.attention(source, target)
        if attention_map.block == "copy"
    ]
    return np.asarray(copy.weights)[:, 0]


def test_the_loss_by_hand():
    """Equation 12 of See et al. The coverage before each token is (0, 0), (1/2, 1/2)
    and (5/4, 3/4).
    """
    copy = np.array(
        [
            [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]],
            [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        ],
        "float32",
    )
    np.testing.assert_allclose(
        coverage_loss(ops.convert_to_tensor(copy)),
        [[0.0, 0.5 + 0.25, 0.25 + 0.75], [0.0, 0.0, 1.0]],
        atol=1e-6,
    )


def test_the_penalty_by_hand():
    """Equation 14 of Wu et al.: coverage above 1 counts as 1, padding does not
    count.
    """
    coverage = np.array(
        [
            [[1.5, 0.5, 0.25, 0.0], [1.0, 1.0, 1.0, 0.0]],
            [[0.0, 0.1, 2.0, 3.0], [0.5, 0.5, 0.5, 0.5]],
        ],
        "float32",
    )
    bias = score_bias(np.array([[[True, True, True, False]], [[True] * 4]]))
    expected = [[np.log(0.5 * 0.25), 0.0], [np.log(1e-30 * 0.1), 4 * np.log(0.5)]]
    np.testing.assert_allclose(
        coverage_penalty(ops.convert_to_tensor(coverage), bias),
        expected,
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("variant", COVERED)
def test_a_network_says_what_it_read_again(variant):
    network, copies = (
        network_of(variant),
        copies_of(network_of(variant), SOURCE, TARGET),
    )
    results = np.asarray(network.predict_next(SOURCE, TARGET).coverage_loss)
    for row, t in np.ndindex(TARGET.shape):
        before = copies[row, :t].sum(0)
        assert results[row, t] == pytest.approx(
            np.minimum(copies[row, t], before).sum(), abs=1e-5
        )
    assert results[:, 0].tolist() == [0.0, 0.0] and results[:, 1:].min() > 0.05


@pytest.mark.parametrize("variant", ["plain", *KINDS])
def test_without_coverage_there_is_no_loss(variant):
    prediction = network_of(variant).predict_next(SOURCE, TARGET)
    assert prediction.coverage_loss is None and (prediction.pointer_output is None) == (
        variant == "plain"
    )


@pytest.mark.parametrize("variant", COVERED)
def test_coverage_that_is_not_trained_yet_changes_nothing(variant):
    """The coverage weight starts at 0, so training continues from a network without
    coverage.
    """
    fresh = make_network(variant, coverage=False)
    network = make_network(variant)
    old = {weight.path: weight for weight in fresh.weights}
    (new,) = [weight for weight in network.weights if weight.path not in old]
    assert new.path.endswith("pointer/coverage_weight") and new.shape == ()
    for weight in network.weights:
        weight.assign(old[weight.path] if weight.path in old else 0.0)
    np.testing.assert_allclose(
        network(SOURCE, TARGET), fresh(SOURCE, TARGET), atol=1e-5
    )
    new.assign(-2.0)
    assert (
        np.abs(
            np.asarray(network(SOURCE, TARGET)) - np.asarray(fresh(SOURCE, TARGET))
        ).max()
        > 1e-2
    )


@pytest.mark.parametrize("variant", [*KINDS, *COVERED])
def test_a_search_counts_the_coverage_of_each_hypothesis(variant):
    """The coverage is the sum of the copy distributions of a hypothesis's tokens,
    however the cache is reordered, selected and grown.
    """
    network, walk = network_of(variant), random_walk(3, steps=6)
    copies = copies_of(
        network, np.repeat(DOCUMENTS, 18, axis=0), walk.histories.reshape(-1, 6)
    ).reshape(3, 3, 6, 6, 6)
    cache, rows = (
        network.start(network.encode(DOCUMENTS), 3, 4, counts_coverage=True),
        [0, 1, 2],
    )
    for index in range(6):
        if index == 4:
            rows = [2, 0]
            cache = select_documents(cache, ops.convert_to_tensor(rows, "int32"))
            cache = grow(cache, written=4, more=2)
        tokens = ops.convert_to_tensor(walk.tokens[rows, :, index])
        _, cache = network.step(tokens, cache, ops.convert_to_tensor(index, "int32"))
        expected = copies[rows, :, index, : index + 1].sum(2)  # [B, K, S]
        np.testing.assert_allclose(cache.per_beam["coverage"], expected, atol=1e-5)
        readable = DOCUMENTS[rows] != PAD
        penalty = [
            [np.log(np.minimum(row[text], 1)).sum() for row in ranked]
            for ranked, text in zip(expected, readable, strict=True)
        ]
        np.testing.assert_allclose(
            network.coverage_penalty(cache), penalty, rtol=1e-4, atol=1e-4
        )
        cache = reorder_beams(cache, walk.parents[rows, :, index])


@pytest.mark.parametrize(
    ("variant", "counts"),
    [*((kind, False) for kind in KINDS), *((kind, True) for kind in COVERED)],
)
def test_coverage_is_counted_only_where_needed(variant, counts):
    network = network_of(variant)
    cache = network.start(network.encode(SOURCE), 3, 4)
    assert [
        tuple(leaf.shape) for leaf in keras.tree.flatten(cache.per_beam["coverage"])
    ] == ([(2, 3, 6)] if counts else [])


def plain_parts(network, document, *, length):
    """Logits and the coverage penalty of one document for the plain search, from the
    teacher-forced call of all summaries at once.
    """
    source, (target, rows) = (
        DOCUMENTS[document : document + 1],
        every_summary(START, LIVE, length),
    )
    sources = np.repeat(source, len(target), axis=0)
    logits, copies = (
        np.asarray(network(sources, target)),
        copies_of(network, sources, target).astype("float64"),
    )

    def coverage(tokens):
        total = copies[rows[tokens], : len(tokens) + 1].sum(0)[source[0] != PAD]
        return float(np.log(np.minimum(total, 1)).sum())

    return lambda tokens: logits[rows[tokens], len(tokens)], coverage


def search(network, config):
    source = ops.convert_to_tensor(DOCUMENTS)
    coverage = network.coverage_penalty if config.coverage_penalty else None
    return beam_search(
        network,
        network.encode(source),
        batch=3,
        config=config,
        special=SPECIAL,
        coverage=coverage,
    )


@pytest.mark.parametrize(
    ("variant", "unfinished"),
    [("pointer", "last"), ("decoder_only_relative", "compete"), ("lstm", "last")],
)
def test_a_wide_beam_ranks_every_summary_as_the_definition_does(variant, unfinished):
    """There are forty summaries of up to three tokens, and forty hypotheses. They are
    ordered by score, coverage included.
    """
    network = network_of(variant)
    config = SearchConfig(
        beam_width=40,
        max_summary_tokens=3,
        no_repeat_ngram=0,
        coverage_penalty=0.7,
        unfinished=unfinished,
    )
    results = search(network, config)
    for document in range(3):
        logits, coverage = plain_parts(network, document, length=3)
        expected = plain_search.all_hypotheses(
            logits, config=config, special=SPECIAL, coverage=coverage
        )
        check(results, expected, document, SPECIAL, tolerance=2e-4)
        without = plain_search.all_hypotheses(logits, config=config, special=SPECIAL)
        # The penalty changes the order, except for a source of one token.
        is_other = [each.tokens for each in expected] != [
            each.tokens for each in without
        ]
        assert len(expected) == 40 and is_other == (document < 2)


@pytest.mark.parametrize(
    ("variant", "width", "groups"),
    [
        ("gelu_tanh", 3, 1),
        ("decoder_only", 4, 2),
        ("gru", 4, 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("gelu_tanh", 4, 2), ("decoder_only", 3, 1), ("gru", 3, 1))
        ),
    ],
)
def test_a_narrow_beam_by_the_definition(variant, width, groups, monkeypatch):
    """Eagerly or compiled, in several segments, so that documents that are done are
    dropped.
    """
    monkeypatch.setattr(compaction, "SEGMENT", 2)
    network = network_of(variant)
    settings = {
        "max_summary_tokens": 5,
        "no_repeat_ngram": 0,
        "coverage_penalty": 0.5,
        "diversity_penalty": 0.2,
    }
    config = SearchConfig(beam_width=width, beam_groups=groups, **settings)
    results = (
        tf.function(lambda: search(network, config), autograph=False)()
        if width == 3
        else search(network, config)
    )
    for document in range(3):
        logits, coverage = plain_parts(network, document, length=5)
        expected = plain_search.beam_search(
            logits, config=config, special=SPECIAL, coverage=coverage
        ).hypotheses
        check(results, expected, document, SPECIAL, tolerance=2e-4)


@pytest.mark.parametrize("variant", COVERED)
def test_greedy_search_of_a_network_that_was_trained_with_coverage(variant):
    """Coverage is counted without a penalty, because the next token depends on it."""
    network, config = (
        network_of(variant),
        SearchConfig(beam_width=1, max_summary_tokens=5, no_repeat_ngram=0),
    )
    results = greedy_search(
        network, network.encode(DOCUMENTS), batch=3, config=config, special=SPECIAL
    )
    for document in range(3):
        logits, _ = plain_parts(network, document, length=5)
        check(
            results,
            [plain_search.greedy_search(logits, config=config, special=SPECIAL)],
            document,
            SPECIAL,
        )
