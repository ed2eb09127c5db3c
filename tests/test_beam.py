"""Beam search against its definition in plain Python, against enumeration, and end to end with a small network.

Tables: the logits of a document depend on the step, the last token and a fingerprint of all tokens before, which the cache carries; a
cache that follows the wrong hypothesis gives other logits.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from model.config import DecodingConfig, NetworkConfig
from model.decoding.beam import beam_search
from model.decoding.rules import length_penalty, repeats_ngram
from model.network.build import build_network
from tests import plain_network, plain_search

START, END, PAD = 0, 1, 0
IDS = {"start_id": START, "end_id": END, "pad_id": PAD}
PRINTS = 7


class Cache(NamedTuple):
    beams: Any
    shared: Any


def tables(documents, length, size, *, seed, scale=1.5):
    rng = np.random.default_rng(seed)
    return rng.normal(0, scale, (documents, length, size, size)).astype("float32"), rng.normal(0, 1, (documents, PRINTS, size)).astype(
        "float32"
    )


def search(table, prints, config, suppressed=None, calls=None):
    """Beam search over tables [B, T, V, V] by step and last token, and [B, 7, V] by the fingerprint of the past."""
    batch, size = table.shape[0], table.shape[-1]

    def step(tokens, cache, index):
        if calls is not None:
            calls.append(int(index))
        past = (cache.beams * 3 + tokens[..., None] + 1) % PRINTS  # [B, K, 1]
        logits = ops.take_along_axis(ops.take(table, index, axis=1), tokens[..., None], axis=1)
        return logits + ops.take_along_axis(cache.shared, past, axis=1), Cache(past, cache.shared)

    cache = Cache(ops.zeros((batch, config.beam_width, 1), dtype="int32"), ops.convert_to_tensor(prints))
    suppressed = np.arange(size) == START if suppressed is None else suppressed
    return beam_search(step, cache, batch=batch, config=config, suppressed=suppressed, **IDS)


def logits_of_table(table, prints):
    """The same logits of one document for the plain search."""

    def logits_after(tokens):
        print_ = 0
        for token in (START, *tokens):
            print_ = (print_ * 3 + token + 1) % PRINTS
        return table[len(tokens), ((START, *tokens))[-1]] + prints[print_]

    return logits_after


def check(found, expected, document, length, tolerance=1e-4):
    """Row `document` of found hypotheses equals a list; places beyond the list hold nothing that can be written."""
    tokens, scores, log_probs, finished = (np.asarray(part)[document] for part in found)
    for place, hypothesis in enumerate(expected):
        assert tokens[place].tolist() == [*hypothesis.tokens, *[PAD] * (length - len(hypothesis.tokens))]
        assert scores[place] == pytest.approx(hypothesis.score, abs=tolerance)
        assert log_probs[place] == pytest.approx(hypothesis.log_prob, abs=tolerance)
        assert bool(finished[place]) == hypothesis.finished
    assert (log_probs[len(expected) :] < -1e8).all()


GRID = [
    (width, penalty, minimum, order)
    for width in (1, 2, 3, 4)
    for penalty in (0.0, 0.6, 1.0, 2.0)
    for minimum, order in ((0, 0), (2, 0), (0, 2), (1, 3))
]


@pytest.mark.parametrize(("length", "size"), [(2, 4), (4, 5), (5, 6)])
def test_it_finds_what_the_definition_finds(length, size):
    kinds = set()
    for case, (width, penalty, minimum, order) in enumerate(GRID):
        config = DecodingConfig(
            beam_width=width,
            length_penalty=penalty,
            min_summary_tokens=min(minimum, length - 1),
            max_summary_tokens=length,
            no_repeat_ngram=order,
        )
        table, prints = tables(6, length, size, seed=1000 * length + case)
        suppressed = np.arange(size) == START
        suppressed[size - 1] = case % 2
        found = search(table, prints, config, suppressed)
        for document in range(6):
            logits = logits_of_table(table[document], prints[document])
            expected = plain_search.beam_search(logits, config=config, end_id=END, suppressed=suppressed)
            check(found, expected, document, length)
            kinds |= {hypothesis.finished for hypothesis in expected}
    assert kinds == {True, False}


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
@pytest.mark.parametrize(("minimum", "order"), [(0, 0), (1, 2)])
def test_a_wide_beam_finds_everything_there_is(penalty, minimum, order):
    config = DecodingConfig(beam_width=40, length_penalty=penalty, min_summary_tokens=minimum, max_summary_tokens=4, no_repeat_ngram=order)
    table, prints = tables(3, 4, 4, seed=int(penalty) + minimum)
    suppressed = np.array([True, False, False, False])  # two tokens and the end: 15 finished and 16 unfinished hypotheses
    found = search(table, prints, config, suppressed)
    for document in range(3):
        logits = logits_of_table(table[document], prints[document])
        expected = plain_search.all_hypotheses(logits, config=config, end_id=END, suppressed=suppressed)
        assert order or len(expected) == 31 - minimum
        check(found, expected, document, 4)


@pytest.mark.parametrize(("width", "penalty"), [(1, 0.0), (2, 1.0), (2, 2.0), (3, 2.0)])
def test_stopping_early_changes_nothing(width, penalty):
    """One document a call, so that each stops when it alone is decided; the plain search never stops."""
    config = DecodingConfig(beam_width=width, length_penalty=penalty, max_summary_tokens=6, no_repeat_ngram=0)
    table, prints = tables(120, 6, 5, seed=width, scale=4.0)
    table[:, :3, :, END] += 4.0
    compiled = tf.function(lambda one, shared: search(one, shared, config))
    for document in range(120):
        found = compiled(ops.convert_to_tensor(table[document : document + 1]), ops.convert_to_tensor(prints[document : document + 1]))
        logits = logits_of_table(table[document], prints[document])
        expected = plain_search.beam_search(logits, config=config, end_id=END, suppressed=np.arange(5) == START)
        check(found, expected, 0, 6)


def test_it_does_stop_early():
    config = DecodingConfig(beam_width=2, max_summary_tokens=9, no_repeat_ngram=0)
    table, prints = np.zeros((2, 9, 4, 4), "float32"), np.zeros((2, PRINTS, 4), "float32")
    table[0, :2, :, END], table[1, :4, :, END] = 20.0, 20.0
    for documents, steps in (([0], 2), ([1], 2), ([0, 1], 2)):
        calls = []
        search(table[documents], prints[documents], config, calls=calls)
        assert calls == list(range(steps))
    table[1, :3, :, END] = -20.0  # the second cannot end before its fourth token
    calls = []
    search(table, prints, config, calls=calls)
    assert calls == [0, 1, 2, 3]


def test_neighbours_change_nothing():
    config = DecodingConfig(beam_width=3, max_summary_tokens=5, no_repeat_ngram=2)
    table, prints = tables(4, 5, 6, seed=5, scale=3.0)
    table[:2, :2, :, END] += 6.0  # two documents are decided early
    for document in range(4):
        alone = search(table[document : document + 1], prints[document : document + 1], config)
        for place in range(4):
            order = np.roll(np.arange(4), place - document)
            assert order[place] == document
            together = search(table[order], prints[order], config)
            assert np.asarray(together.tokens)[place].tolist() == np.asarray(alone.tokens)[0].tolist()
            np.testing.assert_allclose(np.asarray(together.scores)[place], np.asarray(alone.scores)[0], rtol=1e-6)


def test_how_many_are_kept_changes_no_hypothesis():
    table, prints = tables(3, 4, 5, seed=8)
    one, three = (search(table, prints, DecodingConfig(beam_width=3, n_best=n_best, max_summary_tokens=4)) for n_best in (1, 3))
    assert np.asarray(one.tokens).tolist() == np.asarray(three.tokens).tolist()
    assert one.tokens.shape == (3, 3, 4) and one.tokens.dtype == "int32"


@pytest.mark.parametrize(("length", "alpha", "expected"), [(1, 0.6, 1.0), (7, 1.0, 2.0), (7, 0.0, 1.0), (13, 2.0, 9.0), (19, 0.5, 2.0)])
def test_the_length_penalty_by_hand(length, alpha, expected):
    assert float(length_penalty(length, alpha)) == pytest.approx(expected)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_repeated_ngrams_by_loops(order):
    tokens = np.random.default_rng(order).integers(0, 3, (3, 5, 12)).astype("int32")
    tokens[..., 0] = START
    hits = 0
    for index in range(12):
        written = tokens.copy()
        written[..., index + 1 :] = PAD
        found = np.asarray(repeats_ngram(ops.convert_to_tensor(written), ops.convert_to_tensor(index, "int32"), order, 4))
        for b, k, token in np.ndindex(3, 5, 4):
            expected = plain_search.repeats((*written[b, k, 1 : index + 1].tolist(), token), order)
            assert found[b, k, token] == expected
            hits += expected
    assert hits >= 10


@pytest.fixture(scope="module")
def network():
    config = NetworkConfig(
        vocabulary_size=9,
        pad_id=PAD,
        encoder_layers=1,
        decoder_layers=2,
        width=8,
        feed_forward=12,
        heads=2,
        max_source_tokens=6,
        max_target_tokens=5,
    )
    network = build_network(config)
    plain_network.scramble(network, seed=2)
    return network


SOURCE = np.array([[3, 4, 3, 7, 8], [5, 1, 6, PAD, PAD], [2, 5, PAD, PAD, PAD]], "int32")
# The network starts with token 2; neither it nor padding is written.
NETWORK_IDS = {"start_id": 2, "end_id": END, "pad_id": PAD, "suppressed": np.isin(np.arange(9), [PAD, 2])}


def search_network(network, source, config):
    source = ops.convert_to_tensor(source)
    cache = network.start(network.encode(source), config.beam_width, config.max_summary_tokens)
    return beam_search(network.step, cache, batch=source.shape[0], config=config, **NETWORK_IDS)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_scores_are_those_of_the_teacher_forced_call(network, width):
    config = DecodingConfig(beam_width=width, length_penalty=0.8, max_summary_tokens=5, no_repeat_ngram=2, min_summary_tokens=1)
    tokens, scores, log_probs, finished = (np.asarray(part) for part in search_network(network, SOURCE, config))
    flat = tokens.reshape(-1, 5)
    target = np.concatenate([np.full((len(flat), 1), 2), flat], axis=1).astype("int32")[:, :-1]
    steps = np.asarray(ops.log_softmax(network(np.repeat(SOURCE, width, axis=0), target))).reshape(3, width, 5, 9)
    for b, k in np.ndindex(3, width):
        written = tokens[b, k].tolist()
        length = written.index(END) + 1 if END in written else 5
        total = sum(steps[b, k, t, written[t]] for t in range(length))
        assert written[length:] == [PAD] * (5 - length) and not {PAD, 2} & set(written[:length])
        assert log_probs[b, k] == pytest.approx(total, abs=1e-4)
        assert scores[b, k] == pytest.approx(total / ((5 + length) / 6) ** 0.8, abs=1e-4)
        assert bool(finished[b, k]) == (END in written) and length > 1
        assert len({tuple(row) for row in tokens[b].tolist()}) == width


def test_a_network_by_the_definition(network):
    config = DecodingConfig(beam_width=3, length_penalty=1.0, max_summary_tokens=4, no_repeat_ngram=2)
    found = search_network(network, SOURCE, config)
    compiled = tf.function(lambda source: search_network(network, source, config), jit_compile=True)(SOURCE)
    for document in range(3):

        def logits_after(tokens, document=document):
            target = np.array([[2, *tokens, *[PAD] * (4 - len(tokens))]], "int32")
            return np.asarray(network(SOURCE[document : document + 1], target))[0, len(tokens)]

        expected = plain_search.beam_search(logits_after, config=config, end_id=END, suppressed=NETWORK_IDS["suppressed"])
        check(found, expected, document, 4)
        check(compiled, expected, document, 4)


def test_padding_of_the_source_changes_nothing(network):
    config = DecodingConfig(beam_width=2, max_summary_tokens=5)
    together = search_network(network, SOURCE, config)
    for row in range(3):
        alone = search_network(network, SOURCE[row : row + 1, : int((SOURCE[row] != PAD).sum())], config)
        assert np.asarray(alone.tokens)[0].tolist() == np.asarray(together.tokens)[row].tolist()
        np.testing.assert_allclose(np.asarray(alone.scores)[0], np.asarray(together.scores)[row], atol=1e-4)
