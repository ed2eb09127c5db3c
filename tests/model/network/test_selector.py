"""The network that scores sentences: its inputs, padding, features, positions and
dropout.
"""

import numpy as np
import pytest
from support.small_selector import WIDTH, make_selector

from precis.model.extractive.features import FEATURE_COUNT
from precis.model.network.selector import Selector

SENTENCES = (5, 3)  # of the two documents of a batch


@pytest.fixture(scope="module")
def network() -> Selector:
    return make_selector()


@pytest.fixture(scope="module")
def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors, features and places of two documents; the values at padding are not
    zero, as they must not matter.
    """
    generator = np.random.default_rng(3)
    places = np.full((2, max(SENTENCES)), -1, "int32")
    for row, count in enumerate(SENTENCES):
        places[row, :count] = np.arange(count)
    sizes = ((*places.shape, width) for width in (WIDTH, FEATURE_COUNT))
    drawn = [generator.normal(size=size).astype("float32") for size in sizes]
    return (*drawn, places)


def logits(network, vectors, features, places, **options) -> np.ndarray:
    return np.asarray(network(vectors, features, places, **options))


def test_padding_does_not_change_logits(network, inputs):
    padded = logits(network, *inputs)
    alone = logits(network, *(part[1:, :3] for part in inputs))
    np.testing.assert_allclose(padded[1, :3], alone[0], atol=1e-5)


@pytest.mark.parametrize("part", [0, 1], ids=["vectors", "features"])
def test_a_sentence_attends_to_those_of_its_document_alone(network, inputs, part):
    changed = [piece.copy() for piece in inputs]
    changed[part][0, 4] += 1.0
    difference = np.abs(logits(network, *changed) - logits(network, *inputs))
    assert difference[0].min() > 1e-4
    assert difference[1].max() < 1e-6


def test_features_are_clipped(inputs):
    vectors, features, places = inputs
    network = make_selector()
    network.feature_mean.assign(np.zeros(FEATURE_COUNT))
    network.feature_scale.assign(np.ones(FEATURE_COUNT))

    def with_value(value):
        changed = features.copy()
        changed[0, 2, 7] = value
        return logits(network, vectors, changed, places)

    for sign in (1, -1):
        np.testing.assert_array_equal(with_value(sign * 6.0), with_value(sign * 1e9))
        assert np.abs(with_value(sign * 5.0) - with_value(sign * 6.0)).max() > 1e-4


def test_positions_matter_up_to_the_last_learned_one(network, inputs):
    vectors, features, places = inputs

    def shifted_by(count):
        shifted = np.where(places >= 0, places + count, -1).astype("int32")
        return logits(network, vectors, features, shifted)

    difference = np.abs(shifted_by(1) - logits(network, *inputs))
    assert difference[0].min() > 1e-4
    np.testing.assert_array_equal(shifted_by(5), shifted_by(900))
