"""The parts of the Transformer against plain numpy, and what dropout touches."""

import keras
import numpy as np
import pytest
from keras import ops

from model.network import layers
from tests import plain_network as plain


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


def test_each_beam_reads_its_own_past_step_by_step():
    layer = layers.MultiHeadAttention(heads=2, width=8, name="attention")
    layer.build()
    plain.scramble(layer, seed=5)
    states = values(2, 3, 4, 8, seed=6)  # [B, K, T, D]
    # Positions that are not filled yet hold garbage: nothing may read them.
    past = (ops.convert_to_tensor(values(2, 3, 2, 4, 4, seed=7)), ops.convert_to_tensor(values(2, 3, 2, 4, 4, seed=8)))
    look_ahead = np.tril(np.ones((4, 4), bool))
    expected = np.array([[plain.multi_head(beam, beam, look_ahead, plain.weights_of(layer), 2) for beam in row] for row in states])
    for index in range(4):
        found, past = layer.read_own(ops.convert_to_tensor(states[:, :, index]), past, ops.convert_to_tensor(index, "int32"))
        close(found, expected[:, :, index])


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_residual_is_the_norm_of_the_sum(scale):
    """At a scale of 1e-3 the variance is about epsilon, which shows its size."""
    layer = layers.Residual(dropout=0.5, name="residual")
    layer.build((None, None, 8))
    plain.scramble(layer, seed=2)
    states, update = values(2, 3, 8, seed=3, scale=scale), values(2, 3, 8, seed=4, scale=scale)
    close(layer(states, update), plain.layer_norm((states + update).astype("float64"), plain.weights_of(layer)))


def test_dropout_in_a_residual_touches_the_update_only():
    layer = layers.Residual(dropout=0.5, name="residual")
    layer.build((None, None, 8))
    states = values(2, 3, 8)
    close(layer(states, np.zeros_like(states), training=True), np.asarray(layer(states, np.zeros_like(states))))
    dropped = np.asarray(layer(np.zeros((40, 8), "float32"), np.ones((40, 8), "float32"), training=True))
    # The update becomes 0 or 2, and the norm of zeros and twos has one value for each.
    assert 1.5 < np.mean([len(set(row.tolist())) for row in dropped]) <= 2


def test_the_feed_forward_network_is_two_layers_with_relu_between():
    layer = layers.FeedForward(width=6, feed_forward=10, name="feed_forward")
    layer.build()
    plain.scramble(layer, seed=3)
    states = values(2, 3, 6)
    close(layer(states), plain.feed_forward(states, plain.weights_of(layer)))


def test_the_encoder_block_by_hand(source_mask):
    block = layers.EncoderBlock(width=8, feed_forward=12, heads=2, dropout=0.3, name="block")
    block.build()
    plain.scramble(block, seed=4)
    states = values(2, 5, 8)
    found = np.asarray(block(states, source_mask[:, None, None]))
    for b in range(2):
        close(found[b], plain.encoder_block(states[b], source_mask[b], plain.weights_of(block), 2))


def test_the_decoder_block_by_hand(source_mask):
    block = layers.DecoderBlock(width=8, feed_forward=12, heads=4, dropout=0.3, name="block")
    block.build()
    plain.scramble(block, seed=5)
    states, memory = values(2, 4, 8, seed=1), values(2, 5, 8, seed=2)
    found = np.asarray(block(states, memory, layers.look_ahead_mask(4), source_mask[:, None, None]))
    for b in range(2):
        close(found[b], plain.decoder_block(states[b], memory[b], source_mask[b], plain.weights_of(block), 4))


@pytest.fixture
def embedding():
    layer = layers.TokenEmbedding(vocabulary_size=11, width=6, max_tokens=5, dropout=0.5, name="embedding")
    layer.build()
    return layer


def test_embeddings_are_scaled_and_know_their_position(embedding):
    ids = np.array([[3, 4, 4], [10, 0, 3]])
    expected = [plain.embed(row, {"embedding/table": np.asarray(embedding.table.numpy(), "float64")}) for row in ids]
    close(embedding(ids), expected)
    for index in range(3):
        close(embedding.at(ids[:, index : index + 1], ops.convert_to_tensor(index, "int32"))[:, 0], np.array(expected)[:, index])


def test_dropout_in_embeddings_sets_to_zero_or_doubles(embedding):
    ids = np.arange(10).reshape(2, 5)
    kept, dropped = np.asarray(embedding(ids)), np.asarray(embedding(ids, training=True))
    is_zero = dropped == 0
    assert 10 < is_zero.sum() < 50
    close(dropped[~is_zero], 2 * kept[~is_zero])


def test_tied_logits_are_states_times_the_table_transposed(embedding):
    states = values(2, 3, 6)
    logits = np.asarray(embedding.logits(ops.convert_to_tensor(states)))
    table = np.asarray(embedding.table.numpy())
    assert logits.dtype == np.float32 and logits.shape == (2, 3, 11)
    for b, t, piece in np.ndindex(2, 3, 11):
        assert logits[b, t, piece] == pytest.approx(
            sum(float(x) * float(y) for x, y in zip(states[b, t], table[piece], strict=True)), abs=1e-5
        )


def test_scaled_embeddings_are_about_as_large_as_positions():
    layer = layers.TokenEmbedding(vocabulary_size=500, width=64, max_tokens=5, dropout=0.0, name="embedding")
    layer.build()
    assert np.std(np.asarray(layer.look_up(np.arange(500)))) == pytest.approx(1.0, abs=0.03)
