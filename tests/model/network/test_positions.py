"""Embeddings and positions: codes, tables, buckets and the input of the first block."""

import numpy as np
import pytest
from support import plain_layers as plain
from support.small_network import small_config

from precis.model.network import positions


@pytest.mark.parametrize("is_bidirectional", [False, True])
@pytest.mark.parametrize(
    ("buckets", "longest"), [(32, 128), (8, 10), (6, 5), (4, 3), (32, 17)]
)
def test_buckets_grow_as_the_paper_says(buckets, longest, is_bidirectional):
    settings = {"buckets": buckets, "longest": longest}
    settings["is_bidirectional"] = is_bidirectional
    distances = list(range(-longest, longest + 1))
    result = positions.relative_buckets(np.array(distances), **settings).tolist()
    assert result == [plain.bucket(distance, **settings) for distance in distances]
    last = 2 * (buckets // 2) - 1 if is_bidirectional else buckets - 1
    assert set(result) <= set(range(buckets))
    assert max(result) == last


def test_first_values_are_as_large_as_published():
    """A scaled embedding as large as the codes of positions; learned tables small."""
    shape = {"width": 64, "heads": 4, "vocabulary_size": 500}
    shape |= {"relative_buckets": 400, "relative_distance": 500}
    large, learned, relative = (
        small_config(positions=kind, **shape)
        for kind in ("sinusoidal", "learned", "relative")
    )
    embedding = positions.TokenEmbedding(large, name="embedding")
    codes = positions.PositionedInput(config=learned, max_tokens=200, name="input")
    sides = {"is_bidirectional": True, "name": "n"}
    biases = positions.RelativePositions(config=relative, **sides)
    for layer in (embedding, codes, biases):
        layer.build()
    for table, deviation in (
        (embedding(np.arange(500)), 1.0),
        (codes.positions, 0.02),
        (biases.table, 0.02),
    ):
        assert np.std(np.asarray(table)) == pytest.approx(deviation, rel=0.1)
