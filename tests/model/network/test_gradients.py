"""Attention and layer norm with gradients written by hand, against plain formulas that
TensorFlow differentiates; and the mask of dropout.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from precis.model.backend import keep_mask
from precis.model.network.gradients import attend, layer_norm

DOCUMENTS, HEADS, STEPS, LENGTH, WIDTH = 3, 2, 4, 5, 6


def values(*shape, seed=0):
    drawn = np.random.default_rng([seed, *shape]).normal(size=shape)
    return tf.constant(drawn, tf.float32)


def result_and_gradients(function, arguments, upstream):
    """Runs a function and its gradients in a graph of unknown shapes, like training."""
    shapes = [[1 if size == 1 else None for size in each.shape] for each in arguments]

    @tf.function(autograph=False, input_signature=list(map(tf.TensorSpec, shapes)))
    def run(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return result, tape.gradient(result, arguments, upstream)

    return run(*arguments)


def check(function, plain, arguments, shape, *, limits, relative=False) -> None:
    """Compares a function and its gradients with a plain formula's.

    Args:
      function, plain: of the arguments.
      arguments: tensors.
      shape: of the result.
      limits: the largest differences, of values and of gradients.
      relative: whether it is a share of the largest right value.
    """
    upstream = values(*shape, seed=9)
    result, gradients = result_and_gradients(function, arguments, upstream)
    right, right_gradients = result_and_gradients(plain, arguments, upstream)
    pairs = zip([result, *gradients], [right, *right_gradients], strict=True)
    for place, (computed, expected) in enumerate(pairs):
        largest = np.abs(expected).max()
        limit = limits[min(place, 1)] * (largest if relative else 1.0)
        np.testing.assert_allclose(computed, expected, atol=limit)
        assert largest > 0.1


def plain_attend(query, key, value, bias):
    return tf.nn.softmax(tf.einsum("bhtd,bhsd->bhts", query, key) * 0.3 + bias) @ value


def query_key_value():
    sizes = enumerate((STEPS, LENGTH, LENGTH))
    return [values(DOCUMENTS, HEADS, size, WIDTH, seed=seed) for seed, size in sizes]


MIXED = (DOCUMENTS, HEADS, STEPS, WIDTH)


# The biases of padding and of later positions, and those of relative positions, for all
# documents and for each.
@pytest.mark.parametrize(
    "shape", [(3, 1, 1, 5), (1, 1, 4, 5), (1, 2, 4, 5), (3, 2, 4, 5)]
)
def test_attention_and_its_gradient(shape):
    query, key, value = query_key_value()
    bias = values(*shape)
    arguments = [query, key, value, bias]
    limits = (1e-6, 2e-6)
    check(lambda *a: attend(*a, 0.3)[0], plain_attend, arguments, MIXED, limits=limits)
    _, weights = attend(*arguments, 0.3)
    scores = query @ tf.transpose(key, [0, 1, 3, 2]) * 0.3 + bias
    np.testing.assert_allclose(weights, tf.nn.softmax(scores))


def test_attention_computes_its_softmax_and_its_gradient_in_float32():
    def in_half(*arguments):
        *tensors, bias = arguments
        halves = (tf.cast(tensor, "bfloat16") for tensor in tensors)
        mixed, weights = attend(*halves, bias, 0.3)
        return tf.cast(mixed, "float32"), weights

    arguments = [*query_key_value(), values(DOCUMENTS, 1, 1, LENGTH)]
    share = {"limits": (0.02, 0.02), "relative": True}
    check(lambda *each: in_half(*each)[0], plain_attend, arguments, MIXED, **share)
    _, weights = in_half(*arguments)
    assert weights.dtype == "float32"
    assert float(tf.reduce_max(tf.abs(tf.reduce_sum(weights, -1) - 1.0))) < 1e-6


def test_layer_norm_and_its_gradient():
    def plain(states, gamma, beta):
        mean, variance = tf.nn.moments(states, [-1], keepdims=True)
        return (states - mean) / tf.sqrt(variance + 0.2) * gamma + beta

    def ours(states, gamma, beta):
        states = tf.ensure_shape(states, [None, None, WIDTH])
        return layer_norm(states, gamma, beta, 0.2)

    states = values(DOCUMENTS, STEPS, WIDTH) * 2.0 + 3.0
    arguments = [states, values(WIDTH, seed=1), values(WIDTH, seed=2)]
    check(ours, plain, arguments, states.shape, limits=(1e-6, 3e-6))


def test_dropout_keeps_the_mean_and_has_no_pattern():
    """122,000 values: five standard deviations of the dropped share are 0.0043, of the
    share that is dropped in two places at once 0.0014.
    """
    seeds = keras.random.SeedGenerator(5)
    first, second = (keep_mask((50, 40, 61), 0.1, seeds).numpy() for _ in range(2))
    kept_value = 1.0 / (1.0 - round(0.1 * 65536) / 65536)
    assert first.shape == (50, 40, 61)
    assert set(np.unique(first)) == {np.float32(0.0), np.float32(kept_value)}
    dropped = first.reshape(-1) == 0
    assert dropped.mean() == pytest.approx(0.1, abs=0.0043)
    for start in range(4):
        assert dropped[start::4].mean() == pytest.approx(0.1, abs=0.0086)
    for both in (dropped & (second.reshape(-1) == 0), dropped[1:] & dropped[:-1]):
        assert both.mean() == pytest.approx(0.01, abs=0.0014)
    again = keep_mask((50, 40, 61), 0.1, keras.random.SeedGenerator(5)).numpy()
    assert (again == first).all()
