"""Greedy search against an argmax loop through the teacher-forced call, and over tables of logits."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from model.config import DecodingConfig, NetworkConfig
from model.decoding.greedy import greedy_search
from model.network.build import build_network
from tests import plain_network as plain

PAD, START, END = 0, 1, 2
IDS = {"start_id": START, "end_id": END, "pad_id": PAD}


class Cache(NamedTuple):
    beams: Any
    shared: Any


def search_table(table, suppressed, length):
    """Greedy search where the logits depend on document, step and last token: table [B, T, V, V]."""
    steps = []

    def step(tokens, cache, index):
        steps.append(int(index))
        return ops.take_along_axis(table[:, steps[-1]], ops.cast(tokens, "int32")[..., None], axis=1), cache

    config = DecodingConfig(max_summary_tokens=length, no_repeat_ngram=0)
    found = greedy_search(step, Cache((), ()), batch=len(table), config=config, suppressed=suppressed, **IDS)
    return np.asarray(found.tokens)[:, 0], steps


def plain_greedy(table, suppressed, length):
    """One document by hand: table [T, V, V]."""
    written, last = [], START
    for index in range(length):
        allowed = [token for token in range(table.shape[-1]) if not suppressed[token]]
        last = max(allowed, key=lambda token: table[index, last, token])
        written.append(last)
        if last == END:
            break
    return written + [PAD] * (length - len(written))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_tables_by_hand(length):
    table = np.random.default_rng(length).normal(size=(30, 5, 6, 6)).astype("float32")
    suppressed = np.array([True, True, False, False, True, False])
    found, _ = search_table(table, suppressed, length)
    assert found.dtype == np.int32 and found.shape == (30, length)
    assert found.tolist() == [plain_greedy(document, suppressed, length) for document in table]
    assert length == 1 or len({row.index(END) if END in row else -1 for row in found.tolist()}) >= length  # ends everywhere and nowhere


def test_suppressed_tokens_are_never_written_however_likely():
    table = np.zeros((3, 4, 6, 6), "float32")
    table[..., 4], table[..., PAD], table[..., 5] = 50.0, 60.0, 1.0
    found, _ = search_table(table, np.array([True, True, False, False, True, False]), 4)
    assert (found == 5).all()


def test_it_stops_when_every_document_has_ended():
    table = np.zeros((2, 6, 6, 6), "float32")
    table[..., 3] = 1.0
    table[0, 1, :, END] = table[1, 3, :, END] = 2.0
    found, steps = search_table(table, np.zeros(6, bool), 6)
    assert found.tolist() == [[3, END, PAD, PAD, PAD, PAD], [3, 3, 3, END, PAD, PAD]]
    assert steps == [0, 1, 2, 3]


@pytest.fixture(scope="module", params=[(True, True), (False, False)], ids=["pointer, tied", "untied"])
def network(request):
    pointer, tied = request.param
    config = NetworkConfig(
        vocabulary_size=11,
        pad_id=PAD,
        encoder_layers=1,
        decoder_layers=2,
        width=8,
        feed_forward=12,
        heads=2,
        pointer=pointer,
        tied_output=tied,
        max_source_tokens=6,
        max_target_tokens=7,
    )
    network = build_network(config)
    plain.scramble(network, seed=3 if pointer else 1, scale=0.7)
    if not tied:  # makes the end likely enough for some documents to end
        network.output_layer.bias.assign_add(2.0 * (np.arange(11) == END))
    return network


SOURCE = np.random.default_rng(0).integers(2, 11, (6, 5)).astype("int32")
SOURCE[0, 3:] = SOURCE[2, 2:] = PAD
SUPPRESSED = np.arange(11) < 2


def search_network(network, source):
    source = ops.convert_to_tensor(source)
    cache = network.start(network.encode(source), 1, 7)
    config = DecodingConfig(max_summary_tokens=7, no_repeat_ngram=0)
    return greedy_search(network.step, cache, batch=source.shape[0], config=config, suppressed=SUPPRESSED, **IDS).tokens[:, 0]


def test_a_network_by_argmax_of_the_teacher_forced_call(network):
    found = np.asarray(search_network(network, SOURCE)).tolist()
    target, ended = np.full((6, 8), PAD, "int32"), np.zeros(6, bool)
    target[:, 0] = START
    for index in range(7):
        logits = np.array(network(SOURCE, target))[:, index]
        logits[:, SUPPRESSED] = -np.inf
        target[:, index + 1] = np.where(ended, PAD, logits.argmax(-1))
        ended |= target[:, index + 1] == END
    assert found == target[:, 1:].tolist()
    assert 0 < ended.sum() < 6  # some end, some do not
    assert len({tuple(row) for row in found}) > 2


def test_batch_neighbours_and_padding_change_nothing(network):
    together = np.asarray(search_network(network, SOURCE))
    for row in range(6):
        length = int((SOURCE[row] != PAD).sum())
        assert np.asarray(search_network(network, SOURCE[row : row + 1, :length])).tolist() == together[row : row + 1].tolist()


def test_compiled_and_eager_agree(network):
    compiled = tf.function(lambda source: search_network(network, source), jit_compile=True)
    assert np.asarray(compiled(SOURCE)).tolist() == np.asarray(search_network(network, SOURCE)).tolist()


def test_rules_hold_and_scores_are_those_of_the_written_tokens():
    table = np.random.default_rng(5).normal(size=(40, 6, 6, 6)).astype("float32")
    config = DecodingConfig(max_summary_tokens=6, min_summary_tokens=3, no_repeat_ngram=2, length_penalty=0.7)
    suppressed = np.arange(6) < 2

    def step(tokens, cache, index):
        return ops.take_along_axis(table[:, int(index)], ops.cast(tokens, "int32")[..., None], axis=1), cache

    found = greedy_search(step, Cache((), ()), batch=40, config=config, suppressed=suppressed, **IDS)
    log_softmax = table - np.log(np.exp(table).sum(-1, keepdims=True))
    for row in range(40):
        written = [token for token in np.asarray(found.tokens)[row, 0].tolist() if token != PAD]
        pairs = list(zip([START, *written[:-1]], written, strict=True))
        assert END not in written[:3]
        assert len(set(pairs[1:])) == len(pairs[1:])
        total = sum(log_softmax[row, index, last, token] for index, (last, token) in enumerate(pairs))
        assert float(found.log_probs[row, 0]) == pytest.approx(total, abs=1e-4)
        assert float(found.scores[row, 0]) == pytest.approx(total / ((5 + len(written)) / 6) ** 0.7, abs=1e-4)
        assert bool(found.finished[row, 0]) == (written[-1] == END)
    assert 0 < np.asarray(found.finished).sum() < 40
