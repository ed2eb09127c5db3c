"""The network that scores sentences: what it reads, what it must not read, and what is
on in training only.
"""

import keras
import numpy as np
import pytest
from small_extractor import WIDTH, extractor_config, make_extractor

from precis.model.errors import UsageError
from precis.model.extractive.features import COUNT
from precis.model.network.build import build_extractor
from precis.model.network.extractor import Extractor

SENTENCES = (5, 3)  # of the two documents of a batch


@pytest.fixture(scope="module")
def network() -> Extractor:
    return make_extractor()


@pytest.fixture(scope="module")
def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two documents; what stands at padding is not zero, as it must not matter."""
    generator = np.random.default_rng(3)
    places = np.full((2, max(SENTENCES)), -1, "int32")
    for row, count in enumerate(SENTENCES):
        places[row, :count] = np.arange(count)
    shape = places.shape
    return (
        generator.normal(size=(*shape, WIDTH)).astype("float32"),
        generator.normal(size=(*shape, COUNT)).astype("float32"),
        places,
    )


def logits(network, vectors, features, places, **options) -> np.ndarray:
    return np.asarray(network(vectors, features, places, **options))


def test_a_logit_for_each_sentence_of_float32(network, inputs):
    found = network(*inputs)
    assert (
        found.shape == (2, 5)
        and found.dtype == "float32"
        and np.isfinite(np.asarray(found)).all()
    )
    assert len(np.unique(np.round(np.asarray(found)[0], 5))) == 5


def test_padding_does_not_change_logits(network, inputs):
    found = logits(network, *inputs)
    alone = logits(network, *(part[1:, :3] for part in inputs))
    np.testing.assert_allclose(found[1, :3], alone[0], atol=1e-5)


def test_padding_is_not_read(network, inputs):
    vectors, features, places = (part.copy() for part in inputs)
    vectors[1, 3:], features[1, 3:] = 50.0, -50.0
    np.testing.assert_allclose(
        logits(network, vectors, features, places)[1, :3],
        logits(network, *inputs)[1, :3],
        atol=1e-5,
    )


@pytest.mark.parametrize("part", [0, 1], ids=["vectors", "features"])
def test_each_sentence_sees_the_others_of_its_document_only(network, inputs, part):
    changed = [piece.copy() for piece in inputs]
    changed[part][0, 4] += 1.0
    difference = np.abs(logits(network, *changed) - logits(network, *inputs))
    assert difference[0].min() > 1e-4 and difference[1].max() < 1e-6


def test_features_are_shifted_and_scaled(inputs):
    vectors, features, places = inputs
    network, plain = make_extractor(), make_extractor()
    plain.feature_mean.assign(np.zeros(COUNT))
    plain.feature_scale.assign(np.ones(COUNT))
    scaled = (features - np.linspace(-1, 1, COUNT)) * np.linspace(0.5, 2, COUNT)
    np.testing.assert_allclose(
        logits(network, *inputs),
        logits(plain, vectors, scaled.astype("float32"), places),
        atol=1e-4,
    )


def test_features_are_clipped(inputs):
    vectors, features, places = inputs
    network = make_extractor()
    network.feature_mean.assign(np.zeros(COUNT))
    network.feature_scale.assign(np.ones(COUNT))

    def at(value):
        changed = features.copy()
        changed[0, 2, 7] = value
        return logits(network, vectors, changed, places)

    for sign in (1, -1):
        np.testing.assert_array_equal(at(sign * 6.0), at(sign * 1e9))
        assert np.abs(at(sign * 5.0) - at(sign * 6.0)).max() > 1e-4


def test_the_scale_of_features_is_no_weight_to_be_trained(network):
    trained = {weight.path for weight in network.trainable_variables}
    assert {network.feature_mean.path, network.feature_scale.path} == {
        weight.path for weight in network.weights
    } - trained


def test_places_matter_up_to_the_last_that_was_learned(network, inputs):
    vectors, features, places = inputs
    later = np.where(places >= 0, places + 1, -1).astype("int32")
    assert (
        np.abs(logits(network, vectors, features, later) - logits(network, *inputs))[
            0
        ].min()
        > 1e-4
    )
    far, farther = (
        np.where(places >= 0, places + start, -1).astype("int32") for start in (5, 900)
    )
    np.testing.assert_array_equal(
        logits(network, vectors, features, far),
        logits(network, vectors, features, farther),
    )


def test_dropout_is_on_in_training_alone(network, inputs):
    first, second = logits(network, *inputs), logits(network, *inputs)
    np.testing.assert_array_equal(first, second)
    trained = [logits(network, *inputs, training=True) for _ in range(2)]
    assert (
        np.abs(trained[0] - first).max() > 1e-3
        and np.abs(trained[0] - trained[1]).max() > 1e-3
    )
    without = make_extractor(dropout=0.0)
    np.testing.assert_allclose(
        logits(without, *inputs, training=True), first, atol=1e-6
    )


def test_without_vectors_it_reads_features_alone(inputs):
    vectors, features, places = inputs
    network = make_extractor(vector_width=0)
    found = logits(network, vectors[..., :0], features, places)
    assert found.shape == (2, 5) and np.isfinite(found).all()
    assert not any("vector_input" in weight.path for weight in network.weights)


def test_the_seed_says_what_the_weights_are():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        one, same, other = (
            build_extractor(extractor_config(), seed=seed) for seed in (4, 4, 5)
        )
    finally:
        keras.config.set_dtype_policy("float32")
    weights = [
        np.concatenate([weight.numpy().ravel() for weight in network.weights])
        for network in (one, same, other)
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).mean() > 0.5
    assert {layer.compute_dtype for layer in one._flatten_layers()} == {"float32"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"max_sentences": 0}, "max_sentences must be at least 1, not 0"),
        (
            {"heads": 3},
            "the width must be a multiple of the number of heads, but 8 is not one of 3",
        ),
        ({"dropout": 1.0}, "dropout is a share from 0 to below 1, not 1.0"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        extractor_config(**changes)
