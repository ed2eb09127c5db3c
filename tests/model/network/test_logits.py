"""Tests of the changes of single logits, against loops."""

import numpy as np
import pytest
from keras import ops
from support.small_network import values

from precis.model.logits import lower_chosen, restore_chosen

B, K, V, M = 2, 3, 7, 4


@pytest.fixture
def given():
    """Logits, token ids and which of them are chosen; a token stands there twice."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, V, (B, K, M)).astype("int32")
    ids[0, 0, :2] = 5
    is_chosen = rng.random((B, K, M)) < 0.4
    is_chosen[0, 0] = [False, True, False, False]
    is_chosen[1, 2] = False
    return values(B, K, V, seed=1), ids, is_chosen


def chosen_cells(ids, is_chosen):
    for row, beam, place in np.argwhere(is_chosen):
        yield row, beam, ids[row, beam, place]


def test_chosen_tokens_are_lowered(given):
    logits, ids, is_chosen = given
    expected = logits.copy()
    for cell in chosen_cells(ids, is_chosen):
        expected[cell] = min(expected[cell], -0.25)
    lowered = lower_chosen(logits, ids, is_chosen, -0.25)
    np.testing.assert_array_equal(ops.convert_to_numpy(lowered), expected)
    assert (expected != logits).any()


def test_chosen_tokens_get_their_logits_back(given):
    logits, ids, is_chosen = given
    lowered = logits - 9
    expected = lowered.copy()
    for cell in chosen_cells(ids, is_chosen):
        expected[cell] = logits[cell]
    restored = restore_chosen(lowered, logits, ids, is_chosen)
    np.testing.assert_array_equal(ops.convert_to_numpy(restored), expected)


def test_nothing_is_chosen(given):
    logits, ids, _ = given
    none = np.zeros(ids.shape, "bool")
    lowered = lower_chosen(logits, ids, none, -0.25)
    np.testing.assert_array_equal(ops.convert_to_numpy(lowered), logits)
