"""The encoder alone: against the encoder of a whole network, its precision and its
refusals. `test_foreign_encoder` compares it with the formulas of BERT.
"""

import dataclasses

import numpy as np
import pytest
from support.plain_network import scramble
from support.small_network import SOURCE, network_of, small_config

from precis.model.network.build import build_network
from precis.model.network.encoder import Encoder

BERT = {
    "positions": "learned",
    "embedding_norm": True,
    "activation": "gelu",
    "scaled_embedding": False,
    "norm_epsilon": 1e-12,
    "encoder_layers": 3,
}


def make_encoder(precision: str = "float32", **changes) -> Encoder:
    config = dataclasses.replace(small_config().encoder, **changes)
    encoder = build_network(config, precision=precision)
    scramble(encoder, seed=5, scale=0.4)
    return encoder


@pytest.fixture(scope="module")
def bert() -> Encoder:
    return make_encoder(**BERT)


@pytest.mark.parametrize("variant", ["bart", "t5", "vocabularies"])
def test_it_equals_the_encoder_of_a_whole_network(variant):
    network = network_of(variant)
    encoder = build_network(network.config.encoder)
    weights = {weight.path.split("/", 1)[1]: weight for weight in network.weights}
    for weight in encoder.weights:
        weight.assign(weights[weight.path.split("/", 1)[1]])
    states = network.encode(SOURCE).states
    np.testing.assert_array_equal(np.asarray(encoder(SOURCE)), np.asarray(states))


def test_mixed_precision_multiplies_in_16_bits_and_returns_float32(bert):
    encoder = make_encoder("mixed_bfloat16", **BERT)
    assert {weight.dtype for weight in encoder.weights} == {"float32"}
    query = encoder.encoder[0].self_attention.query
    assert query.compute_dtype == "bfloat16"
    states = encoder(SOURCE)
    assert states.dtype == "float32"
    difference = np.abs(np.asarray(states) - np.asarray(bert(SOURCE))).max()
    assert 1e-4 < difference < 0.1
