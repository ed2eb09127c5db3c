"""The attention maps of every network are the weights of its formulas."""

import numpy as np
import pytest
from support.small_network import ALL, PAD, SOURCE, TARGET, by_hand, network_of

LENGTHS = [int((row != PAD).sum()) for row in SOURCE]


def placed(weights, attention_map, length):
    """Places the weights [H, T, S] of one document without padding where a batch has
    them, with zeros elsewhere; returns also the rows that are not padding.
    """
    width = SOURCE.shape[1]
    whole = np.zeros(
        (
            len(weights),
            width if attention_map.rows == "source" else TARGET.shape[1],
            attention_map.weights.shape[-1],
        )
    )
    columns = {
        "source": np.arange(length),
        "target": np.arange(TARGET.shape[1]),
        "both": [*range(length), *range(width, width + 8)],
    }
    whole[:, : weights.shape[1], columns[attention_map.columns]] = weights
    return whole, slice(weights.shape[1])


@pytest.mark.parametrize("variant", ALL)
def test_attention_maps_are_the_weights_of_the_formulas(variant):
    """All maps in order, with zeros at padding and at later tokens."""
    network = network_of(variant)
    maps, documents = (
        network.attention(SOURCE, TARGET),
        by_hand(network, SOURCE, TARGET),
    )
    sizes = {
        "source": SOURCE.shape[1],
        "target": TARGET.shape[1],
        "both": SOURCE.shape[1] + TARGET.shape[1],
    }
    for row, document in enumerate(documents):
        assert [
            (attention_map.block, attention_map.layer) for attention_map in maps
        ] == [(block, layer) for block, layer, _ in document.maps]
        for attention_map, (_, _, weights) in zip(maps, document.maps, strict=True):
            assert attention_map.weights.dtype == "float32"
            assert tuple(attention_map.weights.shape) == (
                2,
                len(weights),
                sizes[attention_map.rows],
                sizes[attention_map.columns],
            )
            expected, rows = placed(weights, attention_map, LENGTHS[row])
            actual = np.asarray(attention_map.weights)[row]
            np.testing.assert_allclose(actual[:, rows], expected[:, rows], atol=1e-5)
            assert (actual[:, rows][expected[:, rows] == 0] == 0).all()
            np.testing.assert_allclose(actual.sum(-1), 1, atol=1e-5)
            # Padding is never read, not even by rows that are padding.
            assert (
                attention_map.columns == "target"
                or (actual[..., LENGTHS[row] : SOURCE.shape[1]] == 0).all()
            )


@pytest.mark.parametrize(
    ("variant", "blocks"),
    [
        (
            "gate",
            [
                "encoder source source",
                *["self target target", "cross target source"] * 2,
                "copy target source",
            ],
        ),
        (
            "decoder_only",
            [
                *["encoder source source"] * 2,
                *["self target both"] * 2,
                "copy target source",
            ],
        ),
        ("lstm_gate", ["cross target source"]),
    ],
)
def test_attention_maps_name_their_rows_and_columns(variant, blocks):
    assert [
        f"{attention_map.block} {attention_map.rows} {attention_map.columns}"
        for attention_map in network_of(variant).attention(SOURCE, TARGET)
    ] == blocks
