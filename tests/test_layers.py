"""The parts of the Transformer against plain numpy, and what dropout touches.
`test_positions` has embeddings and positions.
"""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from precis.model.network import layers
from precis.model.network.config import ACTIVATIONS
from tests import plain_layers as plain
from tests.plain_network import scramble, weights_of
from tests.small_network import close, small_config, values


def built(layer, *, seed=1):
    layer.build((None, None, 8))
    scramble(layer, seed=seed)
    return layer


@pytest.fixture
def source_mask():
    """Two sources of length 3 and 5."""
    return np.array([[True, True, True, False, False], [True] * 5])


def bias_of(mask):
    """What hides what may not be read, [B, 1, 1, S]."""
    return layers.score_bias(mask[:, None, None])


def test_padding_may_not_be_read():
    mask = np.asarray(layers.padding_mask(np.array([[7, 8, 4], [7, 4, 4]]), 4))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]


def test_a_target_position_reads_itself_and_what_came_before():
    mask = np.asarray(layers.look_ahead_mask(3))
    assert mask.dtype == bool
    assert mask.tolist() == [
        [[[True, False, False], [True, True, False], [True, True, True]]]
    ]


def test_a_mask_becomes_a_number_added_to_scores():
    bias = layers.score_bias(np.array([True, False]))
    assert bias.dtype == "float32" and np.asarray(bias).tolist() == [0.0, -1e9]


def test_the_norm_of_logits_is_the_log_of_their_sum():
    logits = values(2, 3, 7, scale=4)
    close(
        layers.log_norm(logits)[..., 0],
        np.log(np.exp(logits.astype("float64")).sum(-1)),
    )


def test_token_ids_become_places_in_the_logits():
    ids = np.array([[[5, 6]], [[7, 5]]], "int32")
    assert np.asarray(layers.places(ids)).tolist() == [
        [0, 0, 5],
        [0, 0, 6],
        [1, 0, 7],
        [1, 0, 5],
    ]


@pytest.mark.parametrize("has_numbers", [False, True])
def test_attention_mixes_values_by_dot_products(source_mask, has_numbers):
    query, key, value = (
        values(2, 3, 4, 6, seed=1),
        values(2, 3, 5, 6, seed=2),
        values(2, 3, 5, 6, seed=3),
    )
    numbers = (
        values(2, 3, 4, 5, seed=4, scale=2)
        if has_numbers
        else np.zeros((2, 3, 4, 5), "float32")
    )
    found, weights = map(
        np.asarray,
        layers.attend(
            *map(ops.convert_to_tensor, (query, key, value)),
            bias_of(source_mask) + numbers,
        ),
    )
    for b, head in np.ndindex(2, 3):
        readable = np.tile(source_mask[b], (4, 1))
        read, shares = plain.attention(
            query[b, head], key[b, head], value[b, head], readable, numbers[b, head]
        )
        close(found[b, head], read)
        close(weights[b, head], shares, 1e-6)
    assert (weights[0, ..., 3:] == 0).all()


def test_weights_of_half_precision_are_float32(source_mask):
    query, key = (
        ops.cast(values(2, 1, 5, 6, seed=seed), "bfloat16") for seed in (1, 2)
    )
    read, weights = layers.attend(query, key, key, bias_of(source_mask))
    assert (
        keras.backend.standardize_dtype(weights.dtype) == "float32"
        and keras.backend.standardize_dtype(read.dtype) == "bfloat16"
    )
    close(np.sum(np.asarray(weights), -1), np.ones((2, 1, 5)), 1e-6)


def test_nothing_to_read_is_no_nan():
    read, weights = layers.attend(
        *map(ops.convert_to_tensor, [values(1, 1, 2, 3)] * 3),
        bias_of(np.zeros((1, 2), bool)),
    )
    close(weights, np.full((1, 1, 2, 2), 0.5))
    assert np.isfinite(np.asarray(read)).all()


ATTENTIONS = [
    {"heads": 1},
    {"heads": 4},
    {"heads": 3, "head_width": 5},
    {"biases": False, "scaled_scores": False},
]


@pytest.mark.parametrize("settings", ATTENTIONS)
def test_heads_are_slices_of_the_weights(settings, source_mask):
    config = small_config(**settings)
    layer = built(layers.MultiHeadAttention(config=config, name="attention"))
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    found, weights = map(np.asarray, layer(states, memory, bias_of(source_mask)))
    assert weights.shape == (2, config.heads, 4, 5) and len(layer.weights) == (
        8 if config.biases else 4
    )
    for b in range(2):
        read, shares = plain.multi_head(
            states[b],
            memory[b],
            np.tile(source_mask[b], (4, 1)),
            weights_of(layer),
            config,
        )
        close(found[b], read)
        close(weights[b], shares)


def test_a_memory_of_another_width(source_mask):
    layer = built(
        layers.MultiHeadAttention(
            config=small_config(), memory_width=6, name="attention"
        )
    )
    assert layer.key.kernel.shape == layer.value.kernel.shape == (
        6,
        8,
    ) and layer.query.kernel.shape == (8, 8)
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 6, seed=2)
    found, _ = layer(states, memory, bias_of(source_mask))
    for b in range(2):
        read, _ = plain.multi_head(
            states[b],
            memory[b],
            np.tile(source_mask[b], (4, 1)),
            weights_of(layer),
            small_config(),
        )
        close(found[b], read)


def test_keys_and_values_are_what_attention_reads():
    layer = built(
        layers.MultiHeadAttention(config=small_config(head_width=3), name="attention"),
        seed=5,
    )
    memory, weights = values(2, 5, 8, seed=2), weights_of(layer)
    for found, name in zip(
        layer.keys_values(ops.convert_to_tensor(memory)), ("key", "value"), strict=True
    ):
        assert tuple(found.shape) == (2, 2, 5, 3)
        expected = plain.dense(memory, weights, name)
        for b, head in np.ndindex(2, 2):
            close(found[b, head], expected[b, :, 3 * head : 3 * head + 3])


def test_what_stands_before_the_memory_is_read_too(source_mask):
    """As if it were one memory: the first two of five places are handed over as keys
    and values.
    """
    layer = built(layers.MultiHeadAttention(config=small_config(), name="attention"))
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    whole = layer(states, memory, bias_of(source_mask))
    parts = layer(
        states,
        memory[:, 2:],
        bias_of(source_mask),
        past=layer.keys_values(ops.convert_to_tensor(memory[:, :2])),
    )
    for found, expected in zip(parts, whole, strict=True):
        close(found, np.asarray(expected), 1e-6)


NORMS = [
    {},
    {"rms_norm": True},
    {"norm_first": True},
    {"norm_first": True, "rms_norm": True},
]


@pytest.mark.parametrize("settings", NORMS)
@pytest.mark.parametrize(
    ("scale", "epsilon"), [(1.0, 1e-6), (1e-3, 1e-6), (1e-2, 1e-5), (1.0, 0.5)]
)
def test_what_surrounds_a_sublayer(scale, epsilon, settings):
    """At a scale of 1e-3 the variance is about 1e-6, which shows the size of epsilon."""
    config = small_config(dropout=0.5, norm_epsilon=epsilon, **settings)
    layer = built(layers.Residual(config=config, name="residual"), seed=2)
    states, update = (
        values(2, 3, 8, seed=3, scale=scale),
        values(2, 3, 8, seed=4, scale=scale),
    )
    weights = weights_of(layer)
    assert set(weights) == (
        {"norm/scale"} if config.rms_norm else {"norm/gamma", "norm/beta"}
    )
    read = []
    expected = plain.residual(
        states.astype("float64"),
        lambda reads: read.append(reads) or update,
        weights,
        config,
    )
    close(layer(states, update), expected)
    close(layer.reads(ops.convert_to_tensor(states)), read[0])


def test_dropout_in_a_residual_touches_the_update_only():
    layer = layers.Residual(config=small_config(dropout=0.5), name="residual")
    layer.build((None, None, 8))
    states = values(2, 3, 8)
    close(
        layer(states, np.zeros_like(states), training=True),
        np.asarray(layer(states, np.zeros_like(states))),
    )
    dropped = np.asarray(
        layer(np.zeros((40, 8), "float32"), np.ones((40, 8), "float32"), training=True)
    )
    # The update becomes 0 or 2, and the norm of zeros and twos has one value for each.
    assert 1.5 < np.mean([len(set(row.tolist())) for row in dropped]) <= 2
    first = layers.Residual(
        config=small_config(dropout=0.5, norm_first=True), name="residual"
    )
    first.build((None, None, 8))
    assert set(
        np.unique(
            first(
                np.ones((40, 8), "float32"), np.ones((40, 8), "float32"), training=True
            )
        )
    ) == {1.0, 3.0}


def test_every_activation_has_its_function():
    assert tuple(layers.ACTIVATION_FUNCTIONS) == ACTIVATIONS


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_by_hand(activation):
    x = np.linspace(-6, 6, 241)
    found = np.asarray(
        layers.ACTIVATION_FUNCTIONS[activation](ops.convert_to_tensor(x, "float32"))
    )
    # The two forms of gelu differ by up to 5e-4.
    close(found, [plain.activate(activation, value) for value in x], 2e-6)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_feed_forward_network_is_two_layers_with_an_activation_between(
    activation, gated
):
    config = small_config(
        feed_forward=10,
        activation=activation,
        gated_feed_forward=gated,
        biases=not gated,
    )
    layer = built(layers.FeedForward(config=config, name="feed_forward"), seed=3)
    assert len(layer.weights) == (3 if gated else 4)
    states = values(2, 3, 8)
    close(layer(states), plain.feed_forward(states, weights_of(layer), config), 2e-6)


# Every setting that a block reads, other than its default.
BLOCKS = [
    {},
    {"activation": "gelu", "norm_epsilon": 0.3, "heads": 4},
    {
        "norm_first": True,
        "activation": "silu",
        "biases": False,
        "rms_norm": True,
        "gated_feed_forward": True,
        "head_width": 3,
    },
    {"norm_first": True, "feed_forward": 20, "scaled_scores": False},
]


@pytest.mark.parametrize("settings", BLOCKS)
def test_the_encoder_block_by_hand(source_mask, settings):
    config = small_config(dropout=0.3, **settings)
    block = built(layers.EncoderBlock(config=config, name="block"), seed=4)
    states, numbers = values(2, 5, 8), values(1, config.heads, 5, 5, seed=6)
    found, weights = map(np.asarray, block(states, bias_of(source_mask) + numbers))
    for b in range(2):
        readable = np.tile(source_mask[b], (5, 1))
        expected, shares = plain.encoder_block(
            states[b], readable, weights_of(block), config, numbers[0]
        )
        close(found[b], expected)
        close(weights[b], shares)
    assert block.feed_forward.inner.kernel.shape == (8, config.feed_forward)


@pytest.mark.parametrize("memory_width", [8, 6])
@pytest.mark.parametrize("settings", BLOCKS)
def test_the_decoder_block_by_hand(source_mask, settings, memory_width):
    config = small_config(dropout=0.3, **settings)
    block = built(
        layers.DecoderBlock(config=config, memory_width=memory_width, name="block"),
        seed=5,
    )
    states, memory, numbers = (
        values(2, 4, 8, seed=1),
        values(2, 5, memory_width, seed=2),
        values(1, config.heads, 4, 4, seed=6),
    )
    own_bias = layers.score_bias(layers.look_ahead_mask(4)) + numbers
    found = [
        np.asarray(part)
        for part in block(states, memory, own_bias, bias_of(source_mask))
    ]
    for b in range(2):
        expected = plain.decoder_block(
            states[b], memory[b], source_mask[b], weights_of(block), config, numbers[0]
        )
        for part, right in zip(found, expected, strict=True):
            close(part[b], right)


def test_attention_computes_in_its_own_precision_whatever_is_usual():
    """The bias is added in float32 all the same: 1e-3 beside 4 is lost in bfloat16."""
    config = dataclasses.replace(small_config(), heads=1)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        usual, own = (
            layers.MultiHeadAttention(config=config, name="attention", **given)
            for given in ({}, {"dtype": "float32"})
        )
    finally:
        keras.config.set_dtype_policy("float32")
    assert {part.compute_dtype for part in own._flatten_layers()} == {"float32"}
    assert {part.compute_dtype for part in usual._flatten_layers()} == {"bfloat16"}
    usual.build()
    bias = np.array([[[[4.0, 4.001]]]], "float32")
    _, weights = usual(
        np.zeros((1, 1, 8), "float32"), np.zeros((1, 2, 8), "float32"), bias
    )
    assert np.log(np.asarray(weights))[0, 0, 0] @ [-1, 1] == pytest.approx(
        0.001, abs=1e-4
    )
