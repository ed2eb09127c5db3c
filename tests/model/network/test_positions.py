"""Embeddings and positions: codes, tables, buckets and the input of the first block."""

import dataclasses

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


def buckets_of(distances, **settings):
    return positions.relative_buckets(np.array(distances), **settings).tolist()


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


def test_first_values_are_as_large_as_published():
    """A scaled embedding as large as the codes of positions; learned tables small."""
    config = small_config(
        width=64, heads=4, relative_buckets=400, relative_distance=500
    )
    learned, relative = (
        dataclasses.replace(config, positions=kind) for kind in ("learned", "relative")
    )
    embedding = positions.TokenEmbedding(
        vocabulary_size=500, width=64, is_scaled=True, name="embedding"
    )
    codes = positions.PositionedInput(config=learned, max_tokens=200, name="input")
    biases = positions.make_relative_positions(
        relative, is_bidirectional=True, name="n"
    )
    for layer in (embedding, codes, biases):
        layer.build()
    for table, deviation in (
        (embedding(np.arange(500)), 1.0),
        (codes.positions, 0.02),
        (biases.table, 0.02),
    ):
        assert np.std(np.asarray(table)) == pytest.approx(deviation, rel=0.1)
    assert (
        positions.make_relative_positions(learned, is_bidirectional=True, name="n")
        is None
    )
