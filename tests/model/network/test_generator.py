"""What holds for every network that writes summaries: dropout, precision, freezing.
`test_whole_networks` shows that padding and later tokens have no influence.
"""

import keras
import numpy as np
import pytest
from keras import ops
from support.small_network import SOURCE, TARGET, config_of, make_network, network_of

from precis.model.network.build import build_network
from precis.model.network.config import SOURCE_PADDING


def logits_of(network, source, target, **settings):
    ids = (np.asarray(part, "int32") for part in (source, target))
    return np.asarray(network(*ids, **settings))


def difference(first, second):
    return np.abs(np.asarray(first) - np.asarray(second)).max()


def test_a_seed_makes_weights_and_dropout():
    config = config_of("gru")
    first, same, other = (build_network(config, seed=seed) for seed in (3, 3, 4))
    for weight, again in zip(first.weights, same.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), again.numpy())
    assert difference(first.embedding.table, other.embedding.table) > 0.01
    noisy = []
    for _ in range(2):
        network = build_network(config, seed=3)
        noisy += [logits_of(network, SOURCE, TARGET, training=True) for _ in range(2)]
    np.testing.assert_array_equal(noisy[:2], noisy[2:])
    assert difference(noisy[0], noisy[1]) > 1e-4  # each call drops others


def paths_of(weights):
    return [weight.path.split("/", 1)[1] for weight in weights]


# What belongs to the encoder alone, by the beginnings of the weights' paths; an
# embedding that the decoder reads too does not.
ENCODERS = {
    "pointer": {"encoder_0", "encoder_1"},
    "t5": {"encoder_0", "encoder_1", "encoder_norm", "encoder_positions"},
    "vocabularies": {"encoder_0", "encoder_1", "encoder_norm", "embedding"},
    "decoder_only": set(),
    "gru_gate": {"encoder_0"},
}


@pytest.mark.parametrize("variant", ENCODERS)
def test_a_frozen_encoder_is_not_trained_and_reads_without_dropout(variant):
    network = make_network(variant, dropout=0.5)
    every = paths_of(network.weights)
    of_encoder = {path for path in every if path.split("/")[0] in ENCODERS[variant]}
    parts = sum((paths_of(part.weights) for part in network.encoder_parts()), [])
    assert set(parts) == of_encoder and len(parts) == len(of_encoder)
    before = set(paths_of(network.trainable_variables))
    noisy = [network.encode(SOURCE, training=True).states for _ in range(2)]
    assert of_encoder <= before and difference(*noisy) > 1e-2
    network.freeze_encoder()
    assert set(paths_of(network.trainable_variables)) == before - of_encoder
    read, again = (network.encode(SOURCE, training=on).states for on in (True, False))
    np.testing.assert_array_equal(read, again)
    noisy = [logits_of(network, SOURCE, TARGET, training=True) for _ in range(2)]
    assert difference(*noisy) > 1e-3  # the decoder still drops


# Measured: up to 0.04 of a probability, where scores are not scaled, and 0.0077
# elsewhere; bfloat16 holds 3 digits.
LIMITS = [
    ("pointer", "float16", 0.004),
    ("t5", "bfloat16", 0.02),
    ("decoder_only_relative", "bfloat16", 0.06),
    ("gru_gate", "bfloat16", 0.02),
]


@pytest.mark.parametrize(("variant", "precision", "limit"), LIMITS)
def test_mixed_precision_stays_near_float32(variant, precision, limit):
    """The last source is one of padding only, which is no NaN."""
    network = make_network(variant, precision=f"mixed_{precision}")
    assert keras.config.dtype_policy().name == "float32"  # as it was before
    assert network.compute_dtype == precision
    assert {weight.dtype for weight in network.weights} == {"float32"}
    source = np.vstack([SOURCE, np.full((1, 6), SOURCE_PADDING)])
    both = (network, network_of(variant))
    half, full = (logits_of(each, source, TARGET[[0, 1, 1]]) for each in both)
    assert half.dtype == "float32"
    assert 0 < difference(ops.softmax(half), ops.softmax(full)) < limit
    if network.pointer:  # the mixture itself is float32
        np.testing.assert_allclose(np.exp(half).sum(-1), 1, atol=1e-5)
