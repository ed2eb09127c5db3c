"""Whole networks of every kind against plain numpy, and the names of their weights."""

import hashlib

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

# Of each test network the checksum of its weights' names and shapes in the version that
# it came with, 0.1.0 for most.
EXPECTED = {
    "pointer": "15c31101",
    "plain": "eb2fe4ce",
    "untied": "7f7b1567",
    "untied_pointer": "34763488",
    "bart": "dc1eedcf",
    "pegasus": "f9262b1b",
    "grouped": "156aa1ba",
    "t5": "454ec0f4",
    "gate": "e7b92c58",
    "gelu_tanh": "4a3b90c9",
    "modernbert": "b905ac82",
    "t5gemma2": "1e708cf8",
    "vocabularies": "4fb0d4b6",
    "decoder_only": "9129c950",
    "decoder_only_relative": "4826655d",
    "decoder_only_post_norm": "afaa8b9d",
    "decoder_only_rotary": "eb8a3d27",
    "decoder_only_grouped": "5b88d588",
    "decoder_only_halves": "758169a8",
    "gru": "1d522be8",
    "gru_untied": "ca039fac",
    "gru_gate": "6040881f",
}


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


@pytest.mark.parametrize("variant", ALL)
def test_weights_have_the_names_and_shapes_of_earlier_versions(variant):
    """Bundles hold these; a change would make those of earlier versions unreadable."""
    weights = network_of(variant).weights
    held = sorted(f"{weight.path} {tuple(weight.shape)}" for weight in weights)
    checksum = hashlib.sha256("\n".join(held).encode()).hexdigest()[:8]
    assert checksum == EXPECTED[variant], "\n".join(held)
    assert len(set(held)) == len(held)


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
