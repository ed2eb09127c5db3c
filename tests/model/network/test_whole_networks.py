"""Whole networks against plain numpy: the decoder-only and the recurrent network, and
the layers of the encoder-decoder in their order. For any network see `test_step` and
`test_generator`.
"""

import numpy as np
import pytest
from keras import ops
from support import plain_layers as plain
from support.plain_network import finish, weights_of
from support.small_network import (
    DECODERS_ONLY,
    RECURRENT,
    SOURCE,
    TARGET,
    by_hand,
    make_network,
    network_of,
    read_maps,
)

from precis.model.network import layers
from precis.model.network.config import SOURCE_PADDING


def layer_by_layer(network, source, target):
    """One document, int [S] without padding and [T]: its layers in their order."""
    config, decoder = network.config, network.config.decoder
    weights, no_bias = weights_of(network), np.zeros((1, 1, 1, 1), "float32")
    is_shared = config.shared_embedding
    table = weights[f"{'' if is_shared else 'target_'}embedding/table"]
    sides = {
        "source": (weights["embedding/table"], source, config, config.scaled_embedding),
        "target": (
            table,
            target,
            decoder,
            (config if is_shared else decoder).scaled_embedding,
        ),
    }
    inputs = {
        side: plain.embed(
            ids, rows, plain.below(weights, f"{side}_input"), stack, is_scaled=is_scaled
        )
        for side, (rows, ids, stack, is_scaled) in sides.items()
    }
    states, bias, maps = inputs["source"][None].astype("float32"), no_bias, []
    if config.positions == "relative":
        bias = network.encoder_positions(*[np.arange(len(source))] * 2)[None]
    for i, block in enumerate(network.encoder):
        states, shares, _ = block(states, bias)
        maps.append(("encoder", i, shares[0]))
    memory = network.encoder_norm(states) if config.norm_first else states
    if config.convolutional_gate:
        memory = network.convolutional_gate(memory, no_bias)
    states = inputs["target"][None].astype("float32")
    bias = np.where(np.tri(len(target)), 0.0, -1e9).astype("float32")[None, None]
    if decoder.positions == "relative":
        bias = bias + network.relative_positions(*[np.arange(len(target))] * 2)
    for i, block in enumerate(network.blocks):
        states, shares, cross_shares = block(states, bias, memory, no_bias)
        maps += [("self", i, shares[0]), ("cross", i, cross_shares[0])]
    states = network.last_norm(states) if decoder.norm_first else states
    return finish(
        config,
        weights,
        table=table,
        states=np.asarray(states[0], "float64"),
        inputs=inputs["target"],
        memory=np.asarray(memory[0], "float64"),
        source=source,
        maps=maps,
    )


# `test_layers`, `test_blocks` and `test_positions` have the formulas of the layers, and
# transformers is the judge of whole encoder-decoders without a pointer.
TRANSFORMERS = ("pointer", "bart", "t5", "gate", "gelu_tanh", "vocabularies")


@pytest.mark.parametrize("variant", [*TRANSFORMERS, *DECODERS_ONLY, *RECURRENT])
def test_a_whole_network_by_hand(variant):
    network = network_of(variant)
    logits = np.asarray(network(SOURCE, TARGET))
    all_maps = read_maps(network, SOURCE, TARGET)
    if variant in TRANSFORMERS:
        documents = [
            layer_by_layer(network, ids[ids != SOURCE_PADDING], written)
            for ids, written in zip(SOURCE, TARGET, strict=True)
        ]
    else:
        documents = by_hand(network, SOURCE, TARGET)
    for row, expected in enumerate(documents):
        np.testing.assert_allclose(
            ops.softmax(logits[row]), expected.probabilities, atol=1e-5
        )
        if not network.pointer:
            # A constant shift would not show in the distribution.
            np.testing.assert_allclose(logits[row], expected.logits, atol=2e-5)
        assert np.ptp(expected.probabilities, axis=-1).min() > 0.03  # not uniform
        for actual, right in zip(all_maps[row], expected.maps, strict=True):
            assert actual[:2] == right[:2]
            np.testing.assert_allclose(actual[2], right[2], atol=1e-5)


@pytest.mark.parametrize("variant", ["pointer", "decoder_only"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_the_longest_source_with_the_longest_summary_has_positions(variant, positions):
    """The start token stands before the summary; a decoder-only network reads both as
    one sequence.
    """
    network = make_network(
        variant, max_source_tokens=6, max_target_tokens=7, positions=positions
    )
    expected = 7 + 1 if variant == "pointer" else 6 + 7 + 1
    assert network.input_layer.positions.shape == (expected, 8)
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


@pytest.mark.parametrize(
    ("variant", "dropouts"), [("gate", 3 + 2 + 2 * 3), ("decoder_only", 2 + 2 * 4)]
)
def test_training_reaches_every_dropout(variant, dropouts, monkeypatch):
    """Those of the inputs, the gate and of each sublayer; a decoder-only network runs
    its blocks over the source and over the summary.
    """
    network = make_network(variant)
    calls, call = [], layers.Dropout.call

    def watched(self, x, training=False):
        calls.append(training)
        return call(self, x, training)

    monkeypatch.setattr(layers.Dropout, "call", watched)
    network(SOURCE, TARGET, training=True)
    assert calls == [True] * dropouts
