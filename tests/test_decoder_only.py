"""The decoder-only network: source, start token and summary are one sequence. For any
network see `test_step` and `test_generator`.
"""

import numpy as np
import pytest
from keras import ops
from support import plain_layers as plain
from support.plain_network import weights_of
from support.small_network import (
    DECODERS_ONLY,
    PAD,
    SOURCE,
    TARGET,
    by_hand,
    close,
    make_network,
    network_of,
)

from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig
from precis.model.network.decoder_only import source_lengths


@pytest.mark.parametrize("variant", DECODERS_ONLY)
def test_the_whole_network_by_hand(variant):
    network = network_of(variant)
    documents = by_hand(network, SOURCE, TARGET)
    expected = np.array([document.probabilities for document in documents])
    logits = network(SOURCE, TARGET)
    np.testing.assert_allclose(ops.softmax(logits), expected, atol=1e-5)
    assert np.ptp(expected, axis=-1).min() > 0.03  # far from uniform
    if not network.pointer:
        np.testing.assert_allclose(
            logits, [document.logits for document in documents], atol=1e-5
        )


def test_positions_continue_after_the_source_whatever_its_padding():
    """The sources have four and six tokens, so the start token has position 4 or 6."""
    network = network_of("decoder_only")
    assert np.asarray(source_lengths(SOURCE, PAD)).tolist() == [4, 6]
    _, inputs, _ = network.decode(TARGET, network.encode(SOURCE))
    weights = weights_of(network)
    table, codes = weights["embedding/table"], weights["input_layer/positions"]
    for row, first in enumerate((4, 6)):
        close(
            np.asarray(inputs)[row],
            table[TARGET[row]] * 8**0.5 + codes[first : first + 8],
        )


def test_the_source_is_read_causally():
    """A token of the source attends only to itself and the tokens before it."""
    network = network_of("decoder_only_relative")
    states = np.asarray(network.encode(SOURCE).states)
    for end in range(1, 6):
        close(np.asarray(network.encode(SOURCE[1:, :end]).states)[0], states[1, :end])


def test_the_cut_between_source_and_summary_does_not_matter():
    """The logits of a sequence are the same wherever the source ends."""
    network = network_of("decoder_only_halves")
    whole = np.concatenate([SOURCE[1], TARGET[1]])
    logits = np.asarray(network(whole[None, :6], whole[None, 6:]))[0]
    for cut in (4, 7, 9):
        close(
            np.asarray(network(whole[None, :cut], whole[None, cut:]))[0][
                max(0, 6 - cut) :
            ],
            logits[max(0, cut - 6) :],
        )


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_the_longest_source_with_the_longest_summary_has_positions(positions):
    network = make_network(
        "decoder_only", max_source_tokens=6, max_target_tokens=7, positions=positions
    )
    assert network.input_layer.positions.shape == (
        6 + 7 + 1,
        8,
    )  # the start token stands between
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_the_source_is_stored_once_for_all_hypotheses():
    """Keys and values of the source have no axis of hypotheses."""
    network = network_of("decoder_only")
    for source in network.start(network.encode(SOURCE), 5, 3).per_document["source"]:
        assert source.keys.shape == (2, 2, 4, 6) and source.values.shape == (2, 2, 6, 4)


def shapes_of(**settings):
    shape = {
        "vocabulary_size": 11,
        "pad_id": 0,
        "layers": 1,
        "width": 4,
        "feed_forward": 6,
        "heads": 2,
    }
    network = build_network(DecoderOnlyConfig(**shape, **settings))
    return {
        weight.path.removeprefix("decoder_only/"): tuple(weight.shape)
        for weight in network.weights
    }


def test_weights_have_the_names_that_bundles_hold():
    linear = {
        f"block_0/attention/{name}": (4, 4)
        for name in ("query", "key", "value", "output")
    }
    linear |= {
        "block_0/feed_forward/inner": (4, 6),
        "block_0/feed_forward/outer": (6, 4),
    }
    kernels = {f"{name}/kernel": shape for name, shape in linear.items()}
    biases = {f"{name}/bias": shape[1:] for name, shape in linear.items()}
    norms = {
        f"block_0/{part}_residual/norm/{name}": (4,)
        for part in ("attention", "feed_forward")
        for name in ("gamma", "beta")
    }
    pointer = {
        f"pointer/{name}": shape
        for name, shape in (
            ("query/bias", (4,)),
            ("key/bias", (4,)),
            ("gate/bias", (1,)),
        )
    }
    pointer |= {
        f"pointer/{name}/kernel": shape
        for name, shape in (("query", (4, 4)), ("key", (4, 4)), ("gate", (12, 1)))
    }
    plain_ones = {"embedding/table": (11, 4), **kernels, **biases, **norms}
    assert shapes_of() == {**plain_ones, **pointer}
    assert shapes_of(coverage=True) == {
        **plain_ones,
        **pointer,
        "pointer/coverage_weight": (),
    }
    learned = {
        "input_layer/positions": (512 + 128 + 1, 4),
        "input_layer/norm/gamma": (4,),
        "input_layer/norm/beta": (4,),
    }
    assert shapes_of(pointer=False, positions="learned", embedding_norm=True) == {
        **plain_ones,
        **learned,
    }
    last = {
        "last_norm/gamma": (4,),
        "last_norm/beta": (4,),
        "relative_positions/table": (32, 2),
    }
    assert shapes_of(pointer=False, positions="relative", norm_first=True) == {
        **plain_ones,
        **last,
    }
    untied = {
        "embedding/table": (11, 4),
        **kernels,
        **norms,
        "output_layer/kernel": (4, 11),
    }
    assert shapes_of(pointer=False, tied_output=False, biases=False) == untied


def test_one_softmax_goes_over_the_source_and_the_written_tokens():
    """The weights of the first summary token over six source tokens and itself are one
    row of the attention over the whole sequence.
    """
    network = network_of("decoder_only_relative")
    (first, _) = [
        attention_map
        for attention_map in network.attention(SOURCE[1:], TARGET[1:, :1])
        if attention_map.block == "self"
    ]
    assert first.weights.shape == (1, 2, 1, 7)
    weights, config = weights_of(network), network.config
    ids = np.append(SOURCE[1], TARGET[1, 0])
    states = plain.embed(ids, weights["embedding/table"], {}, config, is_scaled=False)
    numbers = plain.relative_numbers(
        weights["relative_positions/table"],
        range(7),
        range(7),
        config,
        is_bidirectional=False,
    )
    _, shares = plain.encoder_block(
        states, plain.past(7), plain.below(weights, "block_0"), config, numbers
    )
    close(np.asarray(first.weights)[0, :, 0], shares[:, -1])
