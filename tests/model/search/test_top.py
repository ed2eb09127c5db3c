"""The best tokens of a vocabulary, ties included, against numpy's sort."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from precis.model.search.scores import top_tokens


def by_sorting(scores, count):
    """The largest values of each row and their places, the smaller place first among
    equals.
    """
    order = np.argsort(-scores, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(scores, order, axis=-1), order


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("size", [1, 60, 1000, 9973, 16000])
def test_it_is_the_head_of_the_sorted_vocabulary(size, count):
    rng = np.random.default_rng(size)
    distinct = rng.permutation(12 * size).reshape(3, 4, size).astype("float32")
    # A third of the tokens are the best.
    ties = rng.integers(-3, 0, (3, 4, size)).astype("float32")
    is_best = rng.random((3, 4, size)) < 2 / size
    rare = np.where(is_best, 5.0, rng.integers(0, 2, (3, 4, size))).astype("float32")
    impossible = np.full((1, 4, size), -1e9, "float32")
    scores = np.concatenate([distinct, ties, rare, impossible])
    values, ids = map(np.asarray, top_tokens(ops.convert_to_tensor(scores), count))
    expected_values, expected_ids = by_sorting(scores, count)
    available = min(size, count)
    assert values.shape == ids.shape == (10, 4, count) and ids.dtype == np.int32
    np.testing.assert_array_equal(values[..., :available], expected_values)
    np.testing.assert_array_equal(ids[..., :available], expected_ids)
    assert (values[..., available:] == -np.inf).all()
    if available > 1:
        assert (expected_values[..., 0] == expected_values[..., 1]).sum() >= 12


@pytest.mark.parametrize("jit_compile", [False, True])
def test_in_a_graph_for_any_batch(jit_compile):
    scores = np.random.default_rng(0).integers(0, 50, (5, 3, 16000)).astype("float32")
    signature = [tf.TensorSpec([None, 3, 16000], tf.float32)]
    settings = {"input_signature": signature, "autograph": False}
    compiled = tf.function(
        lambda scores: top_tokens(scores, 8), jit_compile=jit_compile, **settings
    )
    for batch in (1, 5):
        values, ids = compiled(scores[:batch])
        expected_values, expected_ids = by_sorting(scores[:batch], 8)
        np.testing.assert_array_equal(values, expected_values)
        np.testing.assert_array_equal(ids, expected_ids)
