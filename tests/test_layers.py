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
from support.plain_network import scramble, weights_of
from support.small_network import small_config, values

from precis.model.logits import log_norm, logit_indices
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


def readable_by(queries, row):
    """The mask of one document for that many queries, bool [T, S]."""
    return np.tile(SOURCE_MASK[row], (queries, 1))


def test_padding_may_not_be_read():
    mask = np.asarray(layers.padding_mask(np.array([[7, 0, -1], [7, -1, -1]])))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]
    tokens = layers.source_tokens(np.array([[7, 0, -1], [7, -1, -1]]), 4)
    assert np.asarray(tokens).tolist() == [[7, 0, 4], [7, 4, 4]]


def test_a_target_position_may_read_itself_and_earlier_ones():
    mask = np.asarray(layers.look_ahead_mask(3))
    assert mask.dtype == bool
    assert mask.tolist() == [
        [[[True, False, False], [True, True, False], [True, True, True]]]
    ]


def test_a_mask_becomes_a_bias_on_scores():
    bias = layers.score_bias(np.array([True, False]))
    assert bias.dtype == "float32"
    assert np.asarray(bias).tolist() == [0.0, -1e9]


def test_the_norm_of_logits_is_the_log_of_their_sum():
    logits = values(2, 3, 7, scale=4)
    np.testing.assert_allclose(
        log_norm(logits)[..., 0],
        np.log(np.exp(logits.astype("float64")).sum(-1)),
        rtol=1e-5,
        atol=1e-5,
    )


def test_token_ids_become_places_in_the_logits():
    ids = np.array([[[5, 6]], [[7, 5]]], "int32")
    assert np.asarray(logit_indices(ids)).tolist() == [
        [0, 0, 5],
        [0, 0, 6],
        [1, 0, 7],
        [1, 0, 5],
    ]


@pytest.mark.parametrize("has_pair_bias", [False, True])
def test_attention_mixes_values_by_dot_products(has_pair_bias):
    query = values(2, 3, 4, 6, seed=1)
    key = values(2, 3, 5, 6, seed=2)
    value = values(2, 3, 5, 6, seed=3)
    pair_bias = np.zeros((2, 3, 4, 5), "float32")
    if has_pair_bias:
        pair_bias = values(2, 3, 4, 5, seed=4, scale=2)
    tensors = map(ops.convert_to_tensor, (query, key, value))
    mixed, weights = map(np.asarray, layers.attend(*tensors, source_bias() + pair_bias))
    for b, head in np.ndindex(2, 3):
        expected, expected_weights = plain.attention(
            query[b, head],
            key[b, head],
            value[b, head],
            readable_by(4, b),
            pair_bias[b, head],
        )
        np.testing.assert_allclose(mixed[b, head], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            weights[b, head], expected_weights, rtol=1e-6, atol=1e-6
        )
    assert (weights[0, ..., 3:] == 0).all()


def test_attention_weights_of_half_precision_are_float32():
    query, key = (
        ops.cast(values(2, 1, 5, 6, seed=seed), "bfloat16") for seed in (1, 2)
    )
    mixed, weights = layers.attend(query, key, key, source_bias())
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    assert keras.backend.standardize_dtype(mixed.dtype) == "bfloat16"
    np.testing.assert_allclose(
        np.sum(np.asarray(weights), -1), np.ones((2, 1, 5)), rtol=1e-6, atol=1e-6
    )


def test_attention_over_a_fully_masked_row_is_not_nan():
    mixed, weights = layers.attend(
        *map(ops.convert_to_tensor, [values(1, 1, 2, 3)] * 3),
        source_bias(np.zeros((1, 2), bool)),
    )
    np.testing.assert_allclose(
        weights, np.full((1, 1, 2, 2), 0.5), rtol=1e-5, atol=1e-5
    )
    assert np.isfinite(np.asarray(mixed)).all()


ATTENTION_SETTINGS = [
    {"heads": 1},
    {"heads": 4},
    {"heads": 3, "head_width": 5},
    {"biases": False, "scaled_scores": False},
]


@pytest.mark.parametrize("settings", ATTENTION_SETTINGS)
def test_heads_are_slices_of_the_weights(settings):
    config = small_config(**settings)
    layer = built(layers.MultiHeadAttention(config=config, name="attention"))
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    attended, weights = map(np.asarray, layer(states, memory, source_bias()))
    assert weights.shape == (2, config.heads, 4, 5)
    assert len(layer.weights) == (8 if config.biases else 4)
    for b in range(2):
        expected, expected_weights = plain.multi_head(
            states[b], memory[b], readable_by(4, b), weights_of(layer), config
        )
        np.testing.assert_allclose(attended[b], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(weights[b], expected_weights, rtol=1e-5, atol=1e-5)


def test_a_memory_of_another_width():
    config = small_config()
    layer = built(
        layers.MultiHeadAttention(config=config, memory_width=6, name="attention")
    )
    assert layer.key.kernel.shape == layer.value.kernel.shape == (6, 8)
    assert layer.query.kernel.shape == (8, 8)
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 6, seed=2)
    attended, _ = layer(states, memory, source_bias())
    for b in range(2):
        expected, _ = plain.multi_head(
            states[b], memory[b], readable_by(4, b), weights_of(layer), config
        )
        np.testing.assert_allclose(attended[b], expected, rtol=1e-5, atol=1e-5)


def test_keys_and_values_are_split_into_heads():
    config = small_config(head_width=3)
    layer = built(layers.MultiHeadAttention(config=config, name="attention"), seed=5)
    memory, weights = values(2, 5, 8, seed=2), weights_of(layer)
    keys, head_values = layer.keys_values(ops.convert_to_tensor(memory))
    for tensor, name in ((keys, "key"), (head_values, "value")):
        assert tuple(tensor.shape) == (2, 2, 5, 3)
        expected = plain.dense(memory, weights, name)
        for b, head in np.ndindex(2, 2):
            np.testing.assert_allclose(
                tensor[b, head],
                expected[b, :, 3 * head : 3 * head + 3],
                rtol=1e-5,
                atol=1e-5,
            )


def test_past_keys_and_values_stand_before_the_memory():
    """The first two of five positions are given as keys and values."""
    layer = built(layers.MultiHeadAttention(config=small_config(), name="attention"))
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    whole = layer(states, memory, source_bias())
    past = layer.keys_values(ops.convert_to_tensor(memory[:, :2]))
    parts = layer(states, memory[:, 2:], source_bias(), past=past)
    for part, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(part, np.asarray(expected), rtol=1e-6, atol=1e-6)


NORMS = [
    {},
    {"rms_norm": True},
    {"norm_first": True},
    {"norm_first": True, "rms_norm": True},
]


@pytest.mark.parametrize("settings", NORMS)
@pytest.mark.parametrize(("scale", "epsilon"), [(1.0, 1e-6), (1e-3, 1e-6), (1.0, 0.5)])
def test_residual_by_hand(scale, epsilon, settings):
    """At a scale of 1e-3 the variance is about 1e-6, so that epsilon matters."""
    config = small_config(dropout=0.5, norm_epsilon=epsilon, **settings)
    layer = built(layers.Residual(config=config, name="residual"), seed=2)
    states = values(2, 3, 8, seed=3, scale=scale)
    update = values(2, 3, 8, seed=4, scale=scale)
    weights = weights_of(layer)
    norm_weights = {"norm/scale"} if config.rms_norm else {"norm/gamma", "norm/beta"}
    assert set(weights) == norm_weights
    sublayer_inputs = []

    def sublayer(inputs):
        sublayer_inputs.append(inputs)
        return update

    expected = plain.residual(states.astype("float64"), sublayer, weights, config)
    np.testing.assert_allclose(layer(states, update), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        layer.sublayer_input(ops.convert_to_tensor(states)),
        sublayer_inputs[0],
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


def test_dropout_in_a_residual_with_the_norm_first():
    config = small_config(dropout=0.5, norm_first=True)
    layer = layers.Residual(config=config, name="residual")
    layer.build((None, None, 8))
    ones = np.ones((40, 8), "float32")
    assert set(np.unique(layer(ones, ones, training=True))) == {1.0, 3.0}


def test_every_activation_has_a_function():
    assert tuple(layers.ACTIVATION_FUNCTIONS) == ACTIVATIONS


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


@pytest.mark.parametrize(
    ("activation", "gated"), [("relu", False), ("gelu_tanh", True), ("silu", True)]
)
def test_the_feed_forward_network_by_hand(activation, gated):
    config = small_config(
        feed_forward=10,
        activation=activation,
        gated_feed_forward=gated,
        biases=not gated,
    )
    layer = built(layers.FeedForward(config=config, name="feed_forward"), seed=3)
    assert len(layer.weights) == (3 if gated else 4)
    states = values(2, 3, 8)
    np.testing.assert_allclose(
        layer(states),
        plain.feed_forward(states, weights_of(layer), config),
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
