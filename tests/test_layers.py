"""The parts of the Transformer against plain numpy, and what dropout touches."""

import keras
import numpy as np
import pytest
from keras import ops

from model.config import ACTIVATIONS
from model.network import layers
from tests import plain_network as plain
from tests.small_network import small_config


def values(*shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(0, scale, shape).astype("float32")


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.fixture
def source_mask():
    """Two sources of length 3 and 5."""
    return np.array([[True, True, True, False, False], [True] * 5])


@pytest.mark.parametrize(("length", "width"), [(1, 2), (7, 6), (300, 16)])
def test_positions_are_sines_and_cosines(length, width):
    codes = layers.sinusoidal_positions(length, width)
    assert codes.dtype == np.float32
    close(codes, plain.positions(length, width), 1e-6)


def test_padding_may_not_be_read():
    mask = np.asarray(layers.padding_mask(np.array([[7, 8, 4], [7, 4, 4]]), 4))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, True, False]]], [[[True, False, False]]]]


def test_a_target_position_reads_itself_and_what_came_before():
    mask = np.asarray(layers.look_ahead_mask(3))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, False, False], [True, True, False], [True, True, True]]]]


def test_masked_softmax_is_a_softmax_of_what_may_be_read():
    scores, mask = values(2, 3, 5, scale=3), np.random.default_rng(1).random((2, 3, 5)) < 0.6
    mask[..., 0] = True
    found = np.asarray(layers.masked_softmax(scores, mask))
    for b, t in np.ndindex(2, 3):
        close(found[b, t][mask[b, t]], plain.softmax(scores[b, t][mask[b, t]]), 1e-6)
    assert (found[~mask] == 0).all() and (~mask).sum() > 3


def test_masked_softmax_of_half_precision_is_float32():
    found = layers.masked_softmax(ops.cast(values(2, 5), "bfloat16"), np.ones((2, 5), bool))
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    close(np.sum(np.asarray(found), -1), np.ones(2), 1e-6)


def test_nothing_to_read_is_no_nan():
    found = np.asarray(layers.masked_softmax(values(1, 4), np.zeros((1, 4), bool)))
    close(found, np.full((1, 4), 0.25))


def test_attention_mixes_values_by_scaled_dot_products(source_mask):
    query, key, value = values(2, 3, 4, 6, seed=1), values(2, 3, 5, 6, seed=2), values(2, 3, 5, 6, seed=3)
    found = np.asarray(layers.attend(ops.convert_to_tensor(query), key, ops.convert_to_tensor(value), source_mask[:, None, None]))
    for b, head in np.ndindex(2, 3):
        close(found[b, head], plain.attention(query[b, head], key[b, head], value[b, head], np.tile(source_mask[b], (4, 1))))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_heads_are_slices_of_the_weights(heads, source_mask):
    layer = layers.MultiHeadAttention(heads=heads, width=8, name="attention")
    layer.build()
    plain.scramble(layer, seed=heads)
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    found = np.asarray(layer(states, memory, source_mask[:, None, None]))
    for b in range(2):
        close(found[b], plain.multi_head(states[b], memory[b], np.tile(source_mask[b], (4, 1)), plain.weights_of(layer), heads))


def test_keys_and_values_are_what_attention_reads(source_mask):
    layer = layers.MultiHeadAttention(heads=2, width=8, name="attention")
    layer.build()
    plain.scramble(layer, seed=5)
    memory, weights = values(2, 5, 8, seed=2), plain.weights_of(layer)
    for found, name in zip(layer.keys_values(ops.convert_to_tensor(memory)), ("key", "value"), strict=True):
        assert tuple(found.shape) == (2, 2, 5, 4)
        expected = plain.dense(memory, weights, name)
        for b, head in np.ndindex(2, 2):
            close(found[b, head], expected[b, :, 4 * head : 4 * head + 4])


@pytest.mark.parametrize(("scale", "epsilon"), [(1.0, 1e-6), (1e-3, 1e-6), (1e-2, 1e-5), (1.0, 0.5)])
def test_a_residual_is_the_norm_of_the_sum(scale, epsilon):
    """At a scale of 1e-3 the variance is about 1e-6, which shows the size of epsilon."""
    layer = layers.Residual(config=small_config(dropout=0.5, norm_epsilon=epsilon), name="residual")
    layer.build((None, None, 8))
    plain.scramble(layer, seed=2)
    states, update = values(2, 3, 8, seed=3, scale=scale), values(2, 3, 8, seed=4, scale=scale)
    close(layer(states, update), plain.layer_norm((states + update).astype("float64"), plain.weights_of(layer), epsilon))


def test_dropout_in_a_residual_touches_the_update_only():
    layer = layers.Residual(config=small_config(dropout=0.5), name="residual")
    layer.build((None, None, 8))
    states = values(2, 3, 8)
    close(layer(states, np.zeros_like(states), training=True), np.asarray(layer(states, np.zeros_like(states))))
    dropped = np.asarray(layer(np.zeros((40, 8), "float32"), np.ones((40, 8), "float32"), training=True))
    # The update becomes 0 or 2, and the norm of zeros and twos has one value for each.
    assert 1.5 < np.mean([len(set(row.tolist())) for row in dropped]) <= 2


def test_every_activation_has_its_function():
    assert tuple(layers.ACTIVATION_FUNCTIONS) == ACTIVATIONS


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_by_hand(activation):
    x = np.linspace(-6, 6, 241)
    found = np.asarray(layers.ACTIVATION_FUNCTIONS[activation](ops.convert_to_tensor(x, "float32")))
    # The two forms of gelu differ by up to 5e-4.
    close(found, [plain.activate(activation, value) for value in x], 2e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_feed_forward_network_is_two_layers_with_an_activation_between(activation):
    layer = layers.FeedForward(width=6, feed_forward=10, activation=activation, name="feed_forward")
    layer.build()
    plain.scramble(layer, seed=3)
    states = values(2, 3, 6)
    close(layer(states), plain.feed_forward(states, plain.weights_of(layer), activation), 1e-6)


# Every setting that a block reads, other than its default.
BLOCK_SETTINGS = [
    {},
    {"activation": "gelu", "norm_epsilon": 0.3, "heads": 4},
    {"decoder_heads": 4, "decoder_feed_forward": 20, "activation": "silu", "norm_epsilon": 0.1},
]


@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_encoder_block_by_hand(source_mask, settings):
    config = small_config(dropout=0.3, **settings)
    block = layers.EncoderBlock(config=config, name="block")
    block.build()
    plain.scramble(block, seed=4)
    states = values(2, 5, 8)
    found = np.asarray(block(states, source_mask[:, None, None]))
    for b in range(2):
        close(found[b], plain.encoder_block(states[b], source_mask[b], plain.weights_of(block), config))
    assert block.feed_forward.inner.kernel.shape == (8, 12)


@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_decoder_block_by_hand(source_mask, settings):
    config = small_config(dropout=0.3, **settings)
    block = layers.DecoderBlock(config=config, name="block")
    block.build()
    plain.scramble(block, seed=5)
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    found = np.asarray(block(states, memory, layers.look_ahead_mask(4), source_mask[:, None, None]))
    for b in range(2):
        close(found[b], plain.decoder_block(states[b], memory[b], source_mask[b], plain.weights_of(block), config))
    assert block.feed_forward.inner.kernel.shape == (8, settings.get("decoder_feed_forward", 12))


def make_embedding(*, is_scaled=True, has_logits_bias=False):
    layer = layers.TokenEmbedding(vocabulary_size=11, width=6, is_scaled=is_scaled, has_logits_bias=has_logits_bias, name="embedding")
    layer.build()
    plain.scramble(layer, seed=6)
    return layer


@pytest.mark.parametrize("is_scaled", [True, False])
def test_embeddings_are_rows_of_the_table(is_scaled):
    layer, ids = make_embedding(is_scaled=is_scaled), np.array([[3, 4, 4], [10, 0, 3]])
    table = plain.weights_of(layer)["table"]
    close(layer(ids), [[table[piece] * (6**0.5 if is_scaled else 1) for piece in row] for row in ids])


@pytest.mark.parametrize("has_logits_bias", [False, True])
def test_tied_logits_are_states_times_the_table_transposed(has_logits_bias):
    layer, states = make_embedding(has_logits_bias=has_logits_bias), values(2, 3, 6)
    logits = np.asarray(layer.logits(ops.convert_to_tensor(states), "float32"))
    weights = plain.weights_of(layer)
    assert logits.dtype == np.float32 and logits.shape == (2, 3, 11)
    assert ("logits_bias" in weights) == has_logits_bias
    for b, t, piece in np.ndindex(2, 3, 11):
        expected = sum(float(x) * y for x, y in zip(states[b, t], weights["table"][piece], strict=True))
        assert logits[b, t, piece] == pytest.approx(expected + (weights["logits_bias"][piece] if has_logits_bias else 0), abs=1e-5)


def test_tied_logits_are_multiplied_in_the_given_precision():
    layer, states = make_embedding(has_logits_bias=True), ops.convert_to_tensor(values(2, 3, 6))
    half, full = (layer.logits(states, dtype) for dtype in ("bfloat16", "float32"))
    assert keras.backend.standardize_dtype(half.dtype) == "float32"
    assert 1e-3 < np.abs(np.asarray(half) - np.asarray(full)).max() < 0.05


def test_scaled_embeddings_are_about_as_large_as_positions():
    layer = layers.TokenEmbedding(vocabulary_size=500, width=64, is_scaled=True, has_logits_bias=False, name="embedding")
    layer.build()
    assert np.std(np.asarray(layer(np.arange(500)))) == pytest.approx(1.0, abs=0.03)


def make_input(**settings):
    config = small_config(dropout=0.5, **settings)
    layer = layers.PositionedInput(config=config, max_tokens=5, name="source_input")
    layer.build()
    plain.scramble(layer, seed=7)
    return layer, config


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_are_added_and_then_normed(positions, norm):
    layer, config = make_input(positions=positions, embedding_norm=norm, norm_epsilon=0.2)
    embedded, weights = values(2, 4, 8), plain.weights_of(layer)
    assert set(weights) == ({"positions"} if positions == "learned" else set()) | ({"norm/gamma", "norm/beta"} if norm else set())
    expected = embedded + (weights["positions"][:4] if positions == "learned" else plain.positions(4, 8))
    if norm:
        expected = plain.layer_norm(expected, weights, config.norm_epsilon)
    close(layer(embedded), expected)
    for index in range(4):
        close(layer.at(ops.convert_to_tensor(embedded[:, index]), ops.convert_to_tensor(index, "int32")), expected[:, index])


def test_learned_positions_begin_small_and_differ():
    layer = layers.PositionedInput(config=small_config(positions="learned", width=64, heads=4), max_tokens=200, name="source_input")
    layer.build()
    codes = np.asarray(layer.positions)
    assert codes.shape == (200, 64)
    assert np.std(codes) == pytest.approx(0.02, rel=0.05) and np.std(codes.mean(1)) < 0.01


def test_dropout_of_what_enters_the_first_block_sets_to_zero_or_doubles():
    layer, _ = make_input()
    embedded = values(2, 5, 8)
    kept, dropped = np.asarray(layer(embedded)), np.asarray(layer(embedded, training=True))
    is_zero = dropped == 0
    assert 20 < is_zero.sum() < 60
    close(dropped[~is_zero], 2 * kept[~is_zero])
