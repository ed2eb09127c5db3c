"""The attention maps of a network: their order, their axes and their zeros. The tests
of each architecture compare their weights with its formulas.
"""

import numpy as np
import pytest
from support.small_network import SOURCE, TARGET, network_of

from precis.model.network.config import SOURCE_PADDING


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
def test_maps_name_their_rows_and_columns_and_never_read_padding(variant, blocks):
    maps = network_of(variant).attention(SOURCE, TARGET)
    assert [f"{part.block} {part.rows} {part.columns}" for part in maps] == blocks
    width, length = SOURCE.shape[1], TARGET.shape[1]
    sizes = {"source": width, "target": length, "both": width + length}
    for part in maps:
        weights = np.asarray(part.weights)
        assert weights.dtype == "float32"
        assert weights.shape[0] == len(SOURCE)
        assert weights.shape[2:] == (sizes[part.rows], sizes[part.columns])
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        if part.columns != "target":
            # Not even rows that are padding read it.
            is_padding = np.broadcast_to(
                (SOURCE == SOURCE_PADDING)[:, None, None], (*weights.shape[:3], width)
            )
            assert (weights[..., :width][is_padding] == 0).all()
        if part.block == "self":
            own = weights[..., -length:]
            assert (own[..., ~np.tri(length, dtype=bool)] == 0).all()
