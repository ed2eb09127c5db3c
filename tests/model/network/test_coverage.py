"""Coverage, the sum of past copy distributions: its loss, and its sum in a search."""

import numpy as np
import pytest
from keras import ops
from support.small_network import (
    COVERED,
    SOURCE,
    TARGET,
    make_network,
    network_of,
)
from support.walks import SOURCE as DOCUMENTS
from support.walks import random_walk, take_steps

from precis.model.network.pointer import coverage_loss


def copies_of(network, source, target):
    """The copy distributions of the teacher-forced call, [B, T, S]."""
    (copy,) = [
        attention_map
        for attention_map in network.attention(source, target)
        if attention_map.block == "copy"
    ]
    return np.asarray(copy.weights)[:, 0]


def test_the_loss_by_hand():
    """Equation 12 of See et al. The coverage before each token is (0, 0), (1/2, 1/2)
    and (5/4, 3/4).
    """
    copy = np.array(
        [
            [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]],
            [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        ],
        "float32",
    )
    np.testing.assert_allclose(
        coverage_loss(ops.convert_to_tensor(copy)),
        [[0.0, 0.5 + 0.25, 0.25 + 0.75], [0.0, 0.0, 1.0]],
        atol=1e-6,
    )


@pytest.mark.parametrize("variant", COVERED)
def test_a_network_says_what_it_read_again(variant):
    network, copies = (
        network_of(variant),
        copies_of(network_of(variant), SOURCE, TARGET),
    )
    results = np.asarray(network.predict_next(SOURCE, TARGET).coverage_loss)
    for row, t in np.ndindex(TARGET.shape):
        before = copies[row, :t].sum(0)
        assert results[row, t] == pytest.approx(
            np.minimum(copies[row, t], before).sum(), abs=1e-5
        )
    assert results[:, 0].tolist() == [0.0, 0.0] and results[:, 1:].min() > 0.05


@pytest.mark.parametrize("variant", ["untied_pointer", "gru_coverage"])
def test_coverage_that_is_not_trained_yet_changes_nothing(variant):
    """The coverage weight starts at 0, so training continues from a network without
    coverage.
    """
    fresh = make_network(variant, coverage=False)
    network = make_network(variant)
    old = {weight.path: weight for weight in fresh.weights}
    (new,) = [weight for weight in network.weights if weight.path not in old]
    assert new.path.endswith("pointer/coverage_weight") and new.shape == ()
    for weight in network.weights:
        weight.assign(old[weight.path] if weight.path in old else 0.0)
    np.testing.assert_allclose(
        network(SOURCE, TARGET), fresh(SOURCE, TARGET), atol=1e-5
    )
    new.assign(-2.0)
    moved = ops.subtract(network(SOURCE, TARGET), fresh(SOURCE, TARGET))
    assert np.abs(moved).max() > 1e-2


@pytest.mark.parametrize("variant", COVERED)
def test_a_search_counts_the_coverage_of_each_hypothesis(variant):
    """The coverage is the sum of the copy distributions of a hypothesis's tokens,
    however the cache is reordered, selected and grown.
    """
    network, walk = network_of(variant), random_walk(3, steps=6)
    histories = walk.histories.reshape(-1, 6)
    copies = copies_of(network, np.repeat(DOCUMENTS, 18, axis=0), histories)
    copies = copies.reshape(3, 3, 6, 6, 6)
    for step in take_steps(network, DOCUMENTS, walk, (4, 6), selections={4: [2, 0]}):
        counted = copies[step.documents, :, step.index, : step.index + 1]
        expected = counted.sum(2)  # [B, K, S]
        np.testing.assert_allclose(step.cache.per_beam["coverage"], expected, atol=1e-5)
    assert step.index == 5
