"""Embeddings and positions: codes, tables, buckets and the input of the first block."""

import dataclasses

import numpy as np
import pytest
from support import plain_layers as plain
from support.plain_network import scramble, weights_of
from support.small_network import small_config

from precis.model.network import positions


@pytest.mark.parametrize("in_halves", [False, True])
@pytest.mark.parametrize(("length", "width"), [(1, 2), (7, 6), (300, 16)])
def test_positions_are_sines_and_cosines(length, width, in_halves):
    codes = positions.sinusoidal_positions(length, width, in_halves=in_halves)
    assert codes.dtype == np.float32
    expected = [
        plain.sinusoidal(place, width, in_halves=in_halves) for place in range(length)
    ]
    np.testing.assert_allclose(codes, expected, rtol=1e-6, atol=1e-6)


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
    result = positions.relative_buckets(np.array(distances), **settings).tolist()
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
    layer = positions.RelativePositions(
        config=config, is_bidirectional=is_bidirectional, name="encoder_positions"
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
        vocabulary_size=500, width=64, name="embedding"
    )
    codes = positions.PositionedInput(config=learned, max_tokens=200, name="input")
    biases = positions.RelativePositions(
        config=relative, is_bidirectional=True, name="n"
    )
    for layer in (embedding, codes, biases):
        layer.build()
    for table, deviation in (
        (embedding(np.arange(500)), 1.0),
        (codes.positions, 0.02),
        (biases.table, 0.02),
    ):
        assert np.std(np.asarray(table)) == pytest.approx(deviation, rel=0.1)
