"""The encoder alone: against the encoder of a whole network, its precision and its
refusals. `test_foreign_encoder` compares it with the formulas of BERT.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support.plain_network import scramble
from support.small_network import PAD, SOURCE, network_of, small_config

from precis.model.errors import UsageError
from precis.model.network.build import build_encoder
from precis.model.network.config import SOURCE_PADDING, EncoderConfig
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
    encoder = build_encoder(config, precision=precision)
    scramble(encoder, seed=5, scale=0.4)
    return encoder


@pytest.fixture(scope="module")
def bert() -> Encoder:
    return make_encoder(**BERT)


def test_padding_has_no_influence(bert):
    padded = np.asarray(bert(SOURCE))
    alone = np.asarray(bert(SOURCE[:1, :4]))
    np.testing.assert_allclose(padded[:1, :4], alone, atol=1e-6)
    assert (SOURCE[0, 4:] == SOURCE_PADDING).all()
    unpadded = np.asarray(bert(np.where(SOURCE == SOURCE_PADDING, 5, SOURCE)))
    assert np.abs(padded[0, 0] - unpadded[0, 0]).max() > 1e-2


def test_lower_blocks_can_be_frozen():
    encoder = make_encoder(**BERT)
    encoder.embedding.trainable = False
    encoder.source_input.trainable = False
    encoder.encoder[0].trainable = False
    names = {weight.path.split("/")[1] for weight in encoder.trainable_weights}
    assert names == {"encoder_1", "encoder_2"}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(SOURCE, training=True) ** 2)
    gradients = tape.gradient(
        loss, [weight.value for weight in encoder.trainable_weights]
    )
    paths = [weight.path for weight in encoder.trainable_weights]
    with_gradient = {
        path
        for path, gradient in zip(paths, gradients, strict=True)
        if np.abs(gradient).max() > 1e-4
    }
    # A constant added to all keys of a query does not change the softmax.
    assert {path for path in paths if "key/bias" not in path} == with_gradient


@pytest.mark.parametrize("variant", ["bart", "t5", "vocabularies"])
def test_it_equals_the_encoder_of_a_whole_network(variant):
    network = network_of(variant)
    encoder = build_encoder(network.config.encoder)
    weights = {weight.path.split("/", 1)[1]: weight for weight in network.weights}
    for weight in encoder.weights:
        weight.assign(weights[weight.path.split("/", 1)[1]])
    states = network.encode(SOURCE).states
    np.testing.assert_array_equal(np.asarray(encoder(SOURCE)), np.asarray(states))


def test_dropout_is_on_in_training_alone(bert):
    states = np.asarray(bert(SOURCE))
    assert np.array_equal(states, np.asarray(bert(SOURCE, training=False)))
    assert np.abs(states - np.asarray(bert(SOURCE, training=True))).max() > 0.1


def test_the_seed_fixes_the_weights():
    config = small_config(**BERT).encoder
    first, same, other = (
        build_encoder(config, seed=seed).get_weights() for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_mixed_precision_multiplies_in_16_bits_and_returns_float32(bert):
    encoder = make_encoder("mixed_bfloat16", **BERT)
    assert {weight.dtype for weight in encoder.weights} == {"float32"}
    query = encoder.encoder[0].attention.query
    assert query.compute_dtype == "bfloat16"
    states = encoder(SOURCE)
    assert states.dtype == "float32"
    difference = np.abs(np.asarray(states) - np.asarray(bert(SOURCE))).max()
    assert 1e-4 < difference < 0.1


def test_a_graph_takes_any_shape(bert):
    graph = tf.function(
        lambda tokens: bert(tokens),
        autograph=False,
        input_signature=[tf.TensorSpec((None, None), tf.int32)],
    )
    for tokens in (SOURCE, SOURCE[:1, :3]):
        np.testing.assert_allclose(
            graph(tokens).numpy(), np.asarray(bert(tokens)), atol=1e-6
        )


def test_the_shape_of_a_network_s_encoder():
    config = small_config(
        width=12, heads=3, decoder={"heads": 4}, pointer=False, max_target_tokens=3
    )
    assert config.encoder == EncoderConfig(
        vocabulary_size=13,
        pad_id=PAD,
        encoder_layers=2,
        width=12,
        feed_forward=12,
        heads=3,
        dropout=0.2,
        max_source_tokens=7,
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"heads": 3},
            "the width must be a multiple of the number of heads, "
            "but 8 is not one of 3; take 6 or another number of heads",
        ),
        ({"encoder_layers": 0}, "encoder_layers must be at least 1, not 0"),
        ({"max_source_tokens": 0}, "max_source_tokens must be at least 1, not 0"),
        (
            {"positions": "rotary"},
            "positions is one of sinusoidal, sinusoidal_halves, learned, relative, "
            "not 'rotary'",
        ),
        (
            {"activation": "tanh"},
            "activation is one of relu, gelu, gelu_tanh, silu, not 'tanh'",
        ),
        (
            {"width": 9, "heads": 3},
            "the width must be even for sinusoidal positions, not 9",
        ),
        ({"dropout": 1.0}, "dropout is a share from 0 to below 1, not 1.0"),
    ],
)
def test_an_impossible_shape_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(small_config().encoder, **changes)
