"""The network that scores sentences: its inputs, padding, features, positions and
dropout.
"""

import keras
import numpy as np
import pytest
from support.small_extractor import WIDTH, extractor_config, make_extractor

from precis.model.errors import UsageError
from precis.model.extractive.features import FEATURE_COUNT
from precis.model.network.build import build_extractor
from precis.model.network.extractor import Extractor

SENTENCES = (5, 3)  # of the two documents of a batch


@pytest.fixture(scope="module")
def network() -> Extractor:
    return make_extractor()


@pytest.fixture(scope="module")
def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors, features and places of two documents; the values at padding are not
    zero, as they must not matter.
    """
    generator = np.random.default_rng(3)
    places = np.full((2, max(SENTENCES)), -1, "int32")
    for row, count in enumerate(SENTENCES):
        places[row, :count] = np.arange(count)
    shape = places.shape
    return (
        generator.normal(size=(*shape, WIDTH)).astype("float32"),
        generator.normal(size=(*shape, FEATURE_COUNT)).astype("float32"),
        places,
    )


def logits(network, vectors, features, places, **options) -> np.ndarray:
    return np.asarray(network(vectors, features, places, **options))


def test_a_float32_logit_for_each_sentence(network, inputs):
    scores = network(*inputs)
    assert scores.shape == (2, 5) and scores.dtype == "float32"
    assert np.isfinite(np.asarray(scores)).all()
    assert len(np.unique(np.round(np.asarray(scores)[0], 5))) == 5


def test_padding_does_not_change_logits(network, inputs):
    padded = logits(network, *inputs)
    alone = logits(network, *(part[1:, :3] for part in inputs))
    np.testing.assert_allclose(padded[1, :3], alone[0], atol=1e-5)


def test_values_at_padding_do_not_change_logits(network, inputs):
    vectors, features, places = (part.copy() for part in inputs)
    vectors[1, 3:] = 50.0
    features[1, 3:] = -50.0
    np.testing.assert_allclose(
        logits(network, vectors, features, places)[1, :3],
        logits(network, *inputs)[1, :3],
        atol=1e-5,
    )


@pytest.mark.parametrize("part", [0, 1], ids=["vectors", "features"])
def test_a_sentence_attends_to_those_of_its_document_alone(network, inputs, part):
    changed = [piece.copy() for piece in inputs]
    changed[part][0, 4] += 1.0
    difference = np.abs(logits(network, *changed) - logits(network, *inputs))
    assert difference[0].min() > 1e-4
    assert difference[1].max() < 1e-6


def test_features_are_shifted_and_scaled(inputs):
    vectors, features, places = inputs
    network = make_extractor()
    plain = make_extractor()
    plain.feature_mean.assign(np.zeros(FEATURE_COUNT))
    plain.feature_scale.assign(np.ones(FEATURE_COUNT))
    scaled = (features - np.linspace(-1, 1, FEATURE_COUNT)) * np.linspace(
        0.5, 2, FEATURE_COUNT
    )
    expected = logits(plain, vectors, scaled.astype("float32"), places)
    np.testing.assert_allclose(logits(network, *inputs), expected, atol=1e-4)


def test_features_are_clipped(inputs):
    vectors, features, places = inputs
    network = make_extractor()
    network.feature_mean.assign(np.zeros(FEATURE_COUNT))
    network.feature_scale.assign(np.ones(FEATURE_COUNT))

    def with_value(value):
        changed = features.copy()
        changed[0, 2, 7] = value
        return logits(network, vectors, changed, places)

    for sign in (1, -1):
        np.testing.assert_array_equal(with_value(sign * 6.0), with_value(sign * 1e9))
        assert np.abs(with_value(sign * 5.0) - with_value(sign * 6.0)).max() > 1e-4


def test_the_scale_of_features_is_not_trained(network):
    trained = {weight.path for weight in network.trainable_variables}
    untrained = {weight.path for weight in network.weights} - trained
    assert untrained == {network.feature_mean.path, network.feature_scale.path}


def test_positions_matter_up_to_the_last_learned_one(network, inputs):
    vectors, features, places = inputs

    def shifted_by(count):
        shifted = np.where(places >= 0, places + count, -1).astype("int32")
        return logits(network, vectors, features, shifted)

    difference = np.abs(shifted_by(1) - logits(network, *inputs))
    assert difference[0].min() > 1e-4
    np.testing.assert_array_equal(shifted_by(5), shifted_by(900))


def test_dropout_is_on_in_training_alone(network, inputs):
    first, second = logits(network, *inputs), logits(network, *inputs)
    np.testing.assert_array_equal(first, second)
    trained = [logits(network, *inputs, training=True) for _ in range(2)]
    assert np.abs(trained[0] - first).max() > 1e-3
    assert np.abs(trained[0] - trained[1]).max() > 1e-3
    without = logits(make_extractor(dropout=0.0), *inputs, training=True)
    np.testing.assert_allclose(without, first, atol=1e-6)


def test_without_vectors_it_reads_features_alone(inputs):
    vectors, features, places = inputs
    network = make_extractor(vector_width=0)
    scores = logits(network, vectors[..., :0], features, places)
    assert scores.shape == (2, 5) and np.isfinite(scores).all()
    assert not any("vector_input" in weight.path for weight in network.weights)


def test_the_seed_fixes_the_weights_and_they_are_float32():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        first, same, other = (
            build_extractor(extractor_config(), seed=seed) for seed in (4, 4, 5)
        )
    finally:
        keras.config.set_dtype_policy("float32")
    weights = [
        np.concatenate([weight.numpy().ravel() for weight in network.weights])
        for network in (first, same, other)
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).mean() > 0.5
    assert {layer.compute_dtype for layer in first._flatten_layers()} == {"float32"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"max_sentences": 0}, "max_sentences must be at least 1, not 0"),
        (
            {"heads": 3},
            "the width must be a multiple of the number of heads, "
            "but 8 is not one of 3",
        ),
        ({"dropout": 1.0}, "dropout is a share from 0 to below 1, not 1.0"),
    ],
)
def test_an_impossible_shape_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        extractor_config(**changes)
