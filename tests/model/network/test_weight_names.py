"""The names and shapes of weights. Bundles hold these, and a change of them would make
the bundles of earlier versions unreadable.
"""

import hashlib

import pytest
from support.small_network import ALL, config_of

from precis.model.network.build import build_network

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
def test_weights_have_the_names_and_shapes_of_earlier_versions(variant):
    network = build_network(config_of(variant))
    held = sorted(f"{weight.path} {tuple(weight.shape)}" for weight in network.weights)
    checksum = hashlib.sha256("\n".join(held).encode()).hexdigest()[:8]
    assert checksum == EXPECTED[variant], "\n".join(held)
    assert len(set(held)) == len(held)
