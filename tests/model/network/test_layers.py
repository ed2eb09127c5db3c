"""The layers of a Transformer against plain numpy: masks, attention, residuals,
dropout, activations and the feed-forward network.

`test_blocks` has the blocks, `test_positions` embeddings and positions.
"""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops
from support import plain_layers as plain
from support.plain_network import scramble
from support.small_network import small_config, values

from precis.model.logits import log_norm
from precis.model.network import layers
from precis.model.network.config import ACTIVATIONS

# Two sources of length 3 and 5, bool [B, S].
SOURCE_MASK = np.array([[True, True, True, False, False], [True] * 5])


def built(layer, *, seed=1):
    layer.build((None, None, 8))
    scramble(layer, seed=seed)
    return layer


def source_bias(mask=SOURCE_MASK):
    """The bias that masks padding: bool [B, S] -> float32 [B, 1, 1, S]."""
    return layers.score_bias(mask[:, None, None])


def test_masks_by_hand():
    mask = np.asarray(layers.padding_mask(np.array([[7, 0, -1], [7, -1, -1]])))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]
    tokens = layers.source_tokens(np.array([[7, 0, -1], [7, -1, -1]]), 4)
    assert np.asarray(tokens).tolist() == [[7, 0, 4], [7, 4, 4]]
    assert np.asarray(layers.look_ahead_mask(3)).tolist() == [
        [[[True, False, False], [True, True, False], [True, True, True]]]
    ]
    bias = layers.score_bias(np.array([True, False]))
    assert bias.dtype == "float32" and np.asarray(bias).tolist() == [0.0, -1e9]


def test_the_norm_of_logits_is_the_log_of_their_sum():
    logits = values(2, 3, 7, scale=4)
    np.testing.assert_allclose(
        log_norm(logits)[..., 0],
        np.log(np.exp(logits.astype("float64")).sum(-1)),
        rtol=1e-5,
        atol=1e-5,
    )


def test_dropout_in_a_residual_touches_the_update_only():
    layer = layers.Residual(config=small_config(dropout=0.5), name="residual")
    layer.build((None, None, 8))
    states = values(2, 3, 8)
    no_update = np.zeros_like(states)
    np.testing.assert_allclose(
        layer(states, no_update, training=True),
        np.asarray(layer(states, no_update)),
        rtol=1e-5,
        atol=1e-5,
    )
    zeros, ones = np.zeros((40, 8), "float32"), np.ones((40, 8), "float32")
    dropped = np.asarray(layer(zeros, ones, training=True))
    # The update becomes 0 or 2, and the norm of zeros and twos has one value for each.
    assert 1.5 < np.mean([len(set(row.tolist())) for row in dropped]) <= 2


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_by_hand(activation):
    x = np.linspace(-6, 6, 241)
    activated = np.asarray(
        layers.ACTIVATION_FUNCTIONS[activation](ops.convert_to_tensor(x, "float32"))
    )
    # The two forms of gelu differ by up to 5e-4.
    np.testing.assert_allclose(
        activated,
        [plain.activate(activation, value) for value in x],
        rtol=2e-6,
        atol=2e-6,
    )


def test_attention_computes_in_the_precision_it_is_given():
    """In bfloat16 the bias is still added in float32: 1e-3 beside 4 would be lost."""
    config = dataclasses.replace(small_config(), heads=1)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        half, full = (
            layers.MultiHeadAttention(config=config, name="attention", **settings)
            for settings in ({}, {"dtype": "float32"})
        )
    finally:
        keras.config.set_dtype_policy("float32")
    assert {layer.compute_dtype for layer in full._flatten_layers()} == {"float32"}
    assert {layer.compute_dtype for layer in half._flatten_layers()} == {"bfloat16"}
    half.build()
    bias = np.array([[[[4.0, 4.001]]]], "float32")
    states, memory = np.zeros((1, 1, 8), "float32"), np.zeros((1, 2, 8), "float32")
    _, weights = half(states, memory, bias)
    log_weights = np.log(np.asarray(weights))[0, 0, 0]
    assert log_weights @ [-1, 1] == pytest.approx(0.001, abs=1e-4)
