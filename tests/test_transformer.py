"""The encoder-decoder: its layers and its precision. For any network see
`test_step` and `test_generator`.
"""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops
from support import plain_layers as plain
from support.plain_network import finish, weights_of
from support.small_network import (
    SOURCE,
    TARGET,
    make_network,
    network_of,
    read_maps,
    small_config,
)

from precis.model.errors import UsageError
from precis.model.network import blocks, layers
from precis.model.network.build import build_network
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
        states, shares = block(states, bias)
        maps.append(("encoder", i, shares[0]))
    memory = network.encoder_norm(states) if config.norm_first else states
    if config.convolutional_gate:
        memory = network.convolutional_gate(memory, no_bias)
    states = inputs["target"][None].astype("float32")
    bias = np.where(np.tri(len(target)), 0.0, -1e9).astype("float32")[None, None]
    if decoder.positions == "relative":
        bias = bias + network.decoder_positions(*[np.arange(len(target))] * 2)
    for i, block in enumerate(network.decoder):
        states, shares, cross_shares = block(states, memory, bias, no_bias)
        maps += [("self", i, shares[0]), ("cross", i, cross_shares[0])]
    states = network.decoder_norm(states) if decoder.norm_first else states
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


@pytest.mark.parametrize(
    "variant",
    ["pointer", "bart", "t5", "gate", "gelu_tanh", "vocabularies"],
)
def test_the_whole_network_is_its_layers_in_their_order(variant):
    """`test_layers`, `test_blocks` and `test_positions` have the formulas of the
    layers, and transformers is the judge of whole networks without a pointer.
    """
    network = network_of(variant)
    logits = np.asarray(network(SOURCE, TARGET))
    all_maps = read_maps(network, SOURCE, TARGET)
    for row, ids in enumerate(SOURCE):
        expected = layer_by_layer(network, ids[ids != SOURCE_PADDING], TARGET[row])
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


@pytest.mark.parametrize("settings", [{}, {"positions": "learned"}])
def test_the_longest_source_and_target_have_positions(settings):
    network = make_network(
        max_source_tokens=6, max_target_tokens=7, **settings
    )  # the target has a start token besides
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    assert network.source_input.positions.shape == (6, 8)
    assert network.target_input.positions.shape == (8, 8)
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_training_reaches_every_dropout(monkeypatch):
    network = make_network(decoder_layers=1, convolutional_gate=True)
    calls, call = [], layers.Dropout.call
    monkeypatch.setattr(
        layers.Dropout,
        "call",
        lambda self, x, training=False: (
            calls.append((id(self), training)) or call(self, x, training)
        ),
    )
    network(SOURCE, TARGET, training=True)
    parts = [network.source_input, network.target_input, network.convolutional_gate]
    parts += [
        part
        for block in network.encoder
        for part in (block.attention_residual, block.feed_forward_residual)
    ]
    parts += [
        part
        for block in network.decoder
        for part in (
            block.self_residual,
            block.cross_residual,
            block.feed_forward_residual,
        )
    ]
    assert len(parts) == 3 + 4 + 3
    assert sorted(calls) == sorted((id(part.dropout), True) for part in parts)


def test_heads_must_divide_the_width():
    with pytest.raises(
        UsageError,
        match="the width must be a multiple of the number of heads, "
        "but 8 is not one of 3; take 6",
    ):
        build_network(dataclasses.replace(small_config(), heads=3))


@pytest.mark.parametrize(
    ("variant", "inputs", "ends"), [("pointer", 0, 0), ("bart", 2, 0), ("t5", 0, 2)]
)
def test_the_residual_stream_norms_and_softmax_are_float32(
    variant, inputs, ends, monkeypatch
):
    """Besides the norms of the residuals there are norms of the input of the first
    blocks and of the output of the last ones.
    """
    network = network_of(variant, "mixed_bfloat16")
    dtypes = {"stream": [], "norm": [], "softmax": [], "sublayer": []}

    def watch(owner, name, part, *, place):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            result = original(*args, **kwargs)
            first = result[0] if isinstance(result, tuple) else result
            dtypes[part] += [
                keras.backend.standardize_dtype(tensor.dtype)
                for tensor in (args[place], first)
            ]
            return result

        monkeypatch.setattr(owner, name, watched, raising=False)

    # As the block hands it over, before the layer casts it: what is bfloat16 here has
    # lost its digits.
    watch(layers.Residual, "__call__", "stream", place=1)
    watch(blocks.EncoderBlock, "call", "stream", place=1)
    watch(blocks.DecoderBlock, "call", "stream", place=1)
    watch(
        keras.layers.RMSNormalization if variant == "t5" else layers.LayerNorm,
        "call",
        "norm",
        place=1,
    )
    watch(layers.Linear, "call", "sublayer", place=1)
    watch(ops, "softmax", "softmax", place=0)
    network(SOURCE, TARGET)
    decoder = network.config.decoder_layers
    attentions, residuals = 2 + 2 * decoder, 4 + 3 * decoder
    assert dtypes["stream"] == ["float32"] * 2 * (residuals + 2 + decoder)
    assert dtypes["norm"] == ["float32"] * 2 * (residuals + inputs + ends)
    assert dtypes["softmax"] == ["float32"] * 2 * (
        attentions + (2 if network.pointer else 0)
    )
    # What they multiply is half as wide.
    assert set(dtypes["sublayer"]) == {"bfloat16"}
    assert len(dtypes["sublayer"]) > 8 * attentions
    assert network.encode(SOURCE).states.dtype == "float32"
