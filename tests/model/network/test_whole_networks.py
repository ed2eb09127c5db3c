"""Whole networks of every kind against plain numpy."""

import numpy as np
import pytest
from keras import ops
from support.small_network import (
    ALL,
    SOURCE,
    TARGET,
    by_hand,
    make_network,
    network_of,
    read_maps,
)

from precis.model.network import layers


@pytest.mark.parametrize("variant", ALL)
def test_a_whole_network_by_hand(variant):
    network = network_of(variant)
    logits = np.asarray(network(SOURCE, TARGET))
    all_maps = read_maps(network, SOURCE, TARGET)
    documents = by_hand(network, SOURCE, TARGET)
    for row, expected in enumerate(documents):
        np.testing.assert_allclose(
            ops.softmax(logits[row]), expected.probabilities, atol=1e-5
        )
        if not network.pointer:
            # A constant shift would not show in the distribution.
            np.testing.assert_allclose(logits[row], expected.logits, atol=2e-5)
        assert np.ptp(expected.probabilities, axis=-1).min() > 0.03  # not uniform
        for actual, right in zip(all_maps[row], expected.maps, strict=True):
            assert actual[:2] == right[:2]
            np.testing.assert_allclose(actual[2], right[2], atol=1e-5)


@pytest.mark.parametrize("variant", ["pointer", "decoder_only"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_the_longest_source_with_the_longest_summary_has_positions(variant, positions):
    """The start token stands before the summary; a decoder-only network reads both as
    one sequence.
    """
    network = make_network(
        variant, max_source_tokens=6, max_target_tokens=7, positions=positions
    )
    expected = 7 + 1 if variant == "pointer" else 6 + 7 + 1
    assert network.input_layer.positions.shape == (expected, 8)
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


@pytest.mark.parametrize(
    ("variant", "dropouts"), [("gate", 3 + 2 + 2 * 3), ("decoder_only", 2 + 2 * 4)]
)
def test_training_reaches_every_dropout(variant, dropouts, monkeypatch):
    """Those of the inputs, the gate and of each sublayer; a decoder-only network runs
    its blocks over the source and over the summary.
    """
    network = make_network(variant)
    calls, call = [], layers.Dropout.call

    def watched(self, x, training=False):
        calls.append(training)
        return call(self, x, training)

    monkeypatch.setattr(layers.Dropout, "call", watched)
    network(SOURCE, TARGET, training=True)
    assert calls == [True] * dropouts
