"""Dropout and precision of the layers and the block of a Transformer;
`test_whole_networks` has their formulas.
"""

import contextlib
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.small_network import small_config, values

from precis.model.network import layers
from precis.model.network.blocks import TransformerBlock


@contextlib.contextmanager
def policy(name):
    """Layers that are made in it compute in a precision."""
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy("float32")


def test_dropout_in_a_residual_touches_the_update_only():
    layer = layers.Residual(config=small_config(dropout=0.5), name="residual")
    layer.build((None, None, 8))
    states = values(2, 3, 8)
    no_update = np.zeros_like(states)
    updated = (layer(states, no_update, training=each) for each in (True, False))
    np.testing.assert_allclose(*updated, rtol=1e-5, atol=1e-5)
    zeros, ones = np.zeros((40, 8), "float32"), np.ones((40, 8), "float32")
    dropped = np.asarray(layer(zeros, ones, training=True))
    # The update becomes 0 or 2, and the norm of zeros and twos has one value for each.
    assert 1.5 < np.mean([len(set(row.tolist())) for row in dropped]) <= 2


def test_attention_computes_in_the_precision_it_is_given():
    """In bfloat16 the bias is still added in float32: 1e-3 beside 4 would be lost."""
    config = dataclasses.replace(small_config(), heads=1)
    with policy("mixed_bfloat16"):
        half, full = (
            layers.MultiHeadAttention(config=config, name="attention", **settings)
            for settings in ({}, {"dtype": "float32"})
        )
    assert {layer.compute_dtype for layer in full._flatten_layers()} == {"float32"}
    assert {layer.compute_dtype for layer in half._flatten_layers()} == {"bfloat16"}
    half.build()
    bias = np.array([[[[4.0, 4.001]]]], "float32")
    states, memory = np.zeros((1, 1, 8), "float32"), np.zeros((1, 2, 8), "float32")
    _, weights = half(states, memory, bias)
    log_weights = np.log(np.asarray(weights))[0, 0, 0]
    assert log_weights @ [-1, 1] == pytest.approx(0.001, abs=1e-4)


@pytest.mark.parametrize("window", [(0, 0), (37, 20), (300, 300)])
def test_a_window_is_a_mask_however_the_text_is_cut_into_chunks(window):
    """Two texts of 300 and 140 tokens; a graph does not know the length."""
    query, key, value = (values(2, 3, 300, 4, seed=seed) for seed in range(3))
    readable = np.arange(300) < np.array([[300], [140]])
    before, behind = window
    distances = np.arange(300) - np.arange(300)[:, None]
    is_near = (-distances <= before) & (distances <= behind)
    mask = readable[:, None, None] & is_near
    scores = np.where(mask, np.einsum("bhtd,bhsd->bhts", query, key) * 0.7, -np.inf)
    with np.errstate(invalid="ignore"):
        shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (shares / shares.sum(-1, keepdims=True)) @ value
    bias = layers.score_bias(readable[:, None, None])
    spec = tf.TensorSpec([None, 3, None, 4])

    @tf.function(input_signature=[spec] * 3)
    def attend(*parts):
        return layers.attend_within(*parts, bias, 0.7, window)

    actual = attend(query, key, value)
    seen = np.broadcast_to(readable[:, None, :, None], expected.shape)
    np.testing.assert_allclose(actual.numpy()[seen], expected[seen], atol=1e-5)


@pytest.mark.parametrize("name", ["mixed_bfloat16", "mixed_float16"])
def test_the_digits_of_states_outlive_a_block_of_half_precision(name):
    """Sublayers whose weights are zero add nothing."""
    config = small_config(norm_first=True)
    with policy(name):
        block = TransformerBlock(config=config, memory_width=8, name="b")
    block.build((None, None, 8))
    block.set_weights([np.zeros(weight.shape) for weight in block.weights])
    mask = np.array([[True, True, True, False, False], [True] * 5])  # [B, S]
    states, bias = values(2, 5, 8), layers.score_bias(mask[:, None, None])
    updated, *_ = block(states, bias, states, bias)
    np.testing.assert_array_equal(updated, states)
