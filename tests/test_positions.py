"""Embeddings and positions: codes, tables, buckets and the input of the first block."""

import keras
import numpy as np
import pytest
from keras import ops
from support import plain_layers as plain
from support.plain_network import scramble, weights_of
from support.small_network import small_config, values

from precis.model.network import positions
from precis.model.network.config import POSITIONS


@pytest.mark.parametrize("in_halves", [False, True])
@pytest.mark.parametrize(("length", "width"), [(1, 2), (7, 6), (300, 16)])
def test_positions_are_sines_and_cosines(length, width, in_halves):
    codes = positions.sinusoidal_positions(length, width, in_halves=in_halves)
    assert codes.dtype == np.float32
    expected = [
        plain.sinusoidal(place, width, in_halves=in_halves) for place in range(length)
    ]
    np.testing.assert_allclose(codes, expected, rtol=1e-6, atol=1e-6)


def test_the_second_position_by_hand():
    """Angles 1 and 1 / 100."""
    sines = [0.841471, 0.0099998]
    cosines = [0.540302, 0.99995]
    interleaved = [sines[0], cosines[0], sines[1], cosines[1]]
    np.testing.assert_allclose(
        positions.sinusoidal_positions(2, 4)[1], interleaved, rtol=1e-6, atol=1e-6
    )
    in_halves = positions.sinusoidal_positions(2, 4, in_halves=True)[1]
    np.testing.assert_allclose(in_halves, [*sines, *cosines], rtol=1e-6, atol=1e-6)


def make_embedding(*, is_scaled=True, has_logits_bias=False):
    layer = positions.TokenEmbedding(
        vocabulary_size=11,
        width=6,
        is_scaled=is_scaled,
        has_logits_bias=has_logits_bias,
        name="embedding",
    )
    layer.build()
    scramble(layer, seed=6)
    return layer


@pytest.mark.parametrize("is_scaled", [True, False])
def test_embeddings_are_rows_of_the_table(is_scaled):
    layer = make_embedding(is_scaled=is_scaled)
    ids = np.array([[3, 4, 4], [10, 0, 3]])
    table = weights_of(layer)["table"]
    scale = 6**0.5 if is_scaled else 1
    np.testing.assert_allclose(
        layer(ids),
        [[table[piece] * scale for piece in row] for row in ids],
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("has_logits_bias", [False, True])
def test_tied_logits_are_states_times_the_table_transposed(has_logits_bias):
    layer = make_embedding(has_logits_bias=has_logits_bias)
    states = values(2, 3, 6)
    logits = np.asarray(layer.logits(ops.convert_to_tensor(states), "float32"))
    weights = weights_of(layer)
    assert logits.dtype == np.float32 and logits.shape == (2, 3, 11)
    assert ("logits_bias" in weights) == has_logits_bias
    for b, t, piece in np.ndindex(2, 3, 11):
        expected = sum(
            float(x) * y
            for x, y in zip(states[b, t], weights["table"][piece], strict=True)
        )
        if has_logits_bias:
            expected += weights["logits_bias"][piece]
        assert logits[b, t, piece] == pytest.approx(expected, abs=1e-5)


def test_tied_logits_are_multiplied_in_the_given_precision():
    layer = make_embedding(has_logits_bias=True)
    states = ops.convert_to_tensor(values(2, 3, 6))
    half, full = (layer.logits(states, dtype) for dtype in ("bfloat16", "float32"))
    assert keras.backend.standardize_dtype(half.dtype) == "float32"
    assert 1e-3 < np.abs(np.asarray(half) - np.asarray(full)).max() < 0.05


def test_scaled_embeddings_are_about_as_large_as_positions():
    layer = positions.TokenEmbedding(
        vocabulary_size=500,
        width=64,
        is_scaled=True,
        has_logits_bias=False,
        name="embedding",
    )
    layer.build()
    assert np.std(np.asarray(layer(np.arange(500)))) == pytest.approx(1.0, abs=0.03)


def make_input(**settings):
    config = small_config(dropout=0.5, **settings)
    layer = positions.PositionedInput(config=config, max_tokens=5, name="source_input")
    layer.build()
    scramble(layer, seed=7)
    return layer, config


@pytest.mark.parametrize(
    "settings",
    [{}, {"embedding_norm": True}, {"embedding_norm": True, "rms_norm": True}],
)
@pytest.mark.parametrize("kind", POSITIONS)
def test_positions_are_added_and_then_normed(kind, settings):
    layer, config = make_input(positions=kind, norm_epsilon=0.2, **settings)
    table = values(9, 8, seed=2).astype("float64")
    weights = weights_of(layer)
    names = {"positions"} if kind == "learned" else set()
    if "rms_norm" in settings:
        names |= {"norm/scale"}
    elif settings:
        names |= {"norm/gamma", "norm/beta"}
    assert set(weights) == names
    ids = np.array([3, 8, 0, 5])
    embedded = ops.convert_to_tensor(
        np.stack([table[ids], table[ids[::-1]]]), "float32"
    )
    expected = [
        plain.embed(row, table, weights, config, is_scaled=False)
        for row in (ids, ids[::-1])
    ]
    np.testing.assert_allclose(layer(embedded), expected, rtol=1e-5, atol=1e-5)
    for index in range(4):
        at_index = layer.at(embedded[:, index], ops.convert_to_tensor(index, "int32"))
        np.testing.assert_allclose(
            at_index, np.array(expected)[:, index], rtol=1e-5, atol=1e-5
        )
    # The second row begins at position 1.
    shifted = layer(embedded, np.array([[0, 1, 2, 3], [1, 2, 3, 4]], "int32"))
    second = plain.embed(ids[::-1], table, weights, config, is_scaled=False, first=1)
    np.testing.assert_allclose(shifted, [expected[0], second], rtol=1e-5, atol=1e-5)
    difference = np.abs(np.asarray(shifted)[1] - expected[1]).max()
    assert (difference > 0.1) == (kind != "relative")


def test_learned_positions_begin_small_and_differ():
    layer = positions.PositionedInput(
        config=small_config(positions="learned", width=64, heads=4),
        max_tokens=200,
        name="source_input",
    )
    layer.build()
    codes = np.asarray(layer.positions)
    assert codes.shape == (200, 64)
    assert np.std(codes) == pytest.approx(0.02, rel=0.05)
    assert np.std(codes.mean(1)) < 0.01


@pytest.mark.parametrize(
    "places", [None, np.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], "int32")]
)
def test_dropout_of_the_first_block_s_input_sets_values_to_zero_or_doubles(places):
    layer, _ = make_input()
    embedded = values(2, 5, 8)
    kept = np.asarray(layer(embedded, places))
    dropped = np.asarray(layer(embedded, places, training=True))
    is_zero = dropped == 0
    assert 20 < is_zero.sum() < 60
    np.testing.assert_allclose(
        dropped[~is_zero], 2 * kept[~is_zero], rtol=1e-5, atol=1e-5
    )


def buckets_of(distances, **settings):
    return positions.relative_buckets(np.array(distances), **settings).tolist()


def test_the_buckets_of_t5_by_hand():
    """32 buckets up to a distance of 128, as published: sixteen for each direction, or
    all for earlier positions.
    """
    settings = {"buckets": 32, "longest": 128}
    widths = [1] * 8 + [4, 4, 7, 9, 14, 18, 27, 38]  # distances in each bucket
    backward = [bucket for bucket, width in enumerate(widths) for _ in range(width)]
    buckets = buckets_of(range(0, -129, -1), is_bidirectional=True, **settings)
    assert buckets == backward
    buckets = buckets_of(range(1, 129), is_bidirectional=True, **settings)
    assert buckets == [16 + bucket for bucket in backward[1:]]
    distances = [5, 1, 0, -1, -15, -16, -18, -19, -20, -21, -112, -113, -128]
    expected = [0, 0, 0, 1, 15, 16, 16, 17, 17, 18, 30, 31, 31]
    assert buckets_of(distances, is_bidirectional=False, **settings) == expected


@pytest.mark.parametrize("is_bidirectional", [False, True])
@pytest.mark.parametrize(
    ("buckets", "longest"),
    [(32, 128), (8, 10), (6, 5), (4, 3), (32, 17)],
)
def test_buckets_grow_as_the_paper_says(buckets, longest, is_bidirectional):
    settings = {
        "buckets": buckets,
        "longest": longest,
        "is_bidirectional": is_bidirectional,
    }
    distances = list(range(-longest, longest + 1))
    result = buckets_of(distances, **settings)
    assert result == [plain.bucket(distance, **settings) for distance in distances]
    last = 2 * (buckets // 2) - 1 if is_bidirectional else buckets - 1
    assert set(result) <= set(range(buckets))
    assert max(result) == last


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_the_biases_of_relative_positions(is_bidirectional):
    """All distances beyond the longest have one bias, and each row of a batch may have
    its own positions.
    """
    config = small_config(positions="relative", relative_buckets=8, relative_distance=6)
    layer = positions.make_relative_positions(
        config, is_bidirectional=is_bidirectional, name="encoder_positions"
    )
    layer.build()
    scramble(layer, seed=8)
    table = weights_of(layer)["table"]
    assert table.shape == (8, 2)

    def expected(queries, keys):
        return plain.relative_numbers(
            table, queries, keys, config, is_bidirectional=is_bidirectional
        )

    whole = list(range(12))
    np.testing.assert_allclose(
        layer(*[np.arange(12)] * 2), expected(whole, whole), rtol=1e-5, atol=1e-5
    )
    queries = np.array([[3], [9]], "int32")
    keys = np.array([[0, 1, 2, 3, 11], [11, 2, 9, 8, 0]], "int32")
    biases = np.asarray(layer(queries, keys))
    assert biases.shape == (2, 2, 1, 5) and biases.dtype == np.float32
    for row in range(2):
        np.testing.assert_allclose(
            biases[row], expected(queries[row], keys[row]), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("kind", POSITIONS)
def test_only_relative_positions_have_biases(kind):
    config = small_config(positions=kind)
    layer = positions.make_relative_positions(config, is_bidirectional=True, name="n")
    assert (layer is not None) == (kind == "relative")


def test_the_biases_of_relative_positions_begin_small():
    config = small_config(
        positions="relative", relative_buckets=400, relative_distance=500
    )
    layer = positions.make_relative_positions(
        config, is_bidirectional=True, name="encoder_positions"
    )
    layer.build()
    assert np.std(np.asarray(layer.table)) == pytest.approx(0.02, rel=0.1)
