"""Operations with gradients of their own against the plain formulas, differentiated by
TensorFlow; and what dropout multiplies with.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from precis.model.backend import keep_mask
from precis.model.network.gradients import attend, layer_norm

DOCUMENTS, HEADS, STEPS, LENGTH, WIDTH = 3, 2, 4, 5, 6


def values(*shape, seed=0):
    return tf.constant(
        np.random.default_rng([seed, *shape]).normal(size=shape), tf.float32
    )


def found_and_gradients(function, arguments, upstream):
    """In a graph whose shapes are not known, as in training."""

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([1 if size == 1 else None for size in part.shape])
            for part in arguments
        ],
    )
    def run(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            found = function(*arguments)
        return found, tape.gradient(found, arguments, upstream)

    return run(*arguments)


def plain_attend(query, key, value, bias):
    return tf.nn.softmax(tf.einsum("bhtd,bhsd->bhts", query, key) * 0.3 + bias) @ value


# Masks of sources and targets, and numbers for each pair of positions, of all documents
# and of each.
@pytest.mark.parametrize(
    "shape", [(3, 1, 1, 5), (1, 1, 4, 5), (1, 2, 4, 5), (3, 2, 4, 5)]
)
def test_attention_and_its_gradient(shape):
    parts = [
        values(DOCUMENTS, HEADS, size, WIDTH, seed=seed)
        for seed, size in enumerate((STEPS, LENGTH, LENGTH))
    ]
    upstream = values(DOCUMENTS, HEADS, STEPS, WIDTH, seed=9)
    arguments = [*parts, values(*shape)]
    found, gradients = found_and_gradients(
        lambda *given: attend(*given, 0.3)[0], arguments, upstream
    )
    expected, plain = found_and_gradients(plain_attend, arguments, upstream)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    for gradient, other in zip(gradients, plain, strict=True):
        np.testing.assert_allclose(gradient, other, atol=2e-6)
        assert np.abs(other).max() > 0.1
    np.testing.assert_allclose(
        attend(*arguments, 0.3)[1],
        tf.nn.softmax(
            parts[0] @ tf.transpose(parts[1], [0, 1, 3, 2]) * 0.3 + arguments[3]
        ),
    )


def test_attention_takes_its_softmax_and_that_ones_gradient_in_float32():
    parts = [
        values(DOCUMENTS, HEADS, size, WIDTH, seed=seed)
        for seed, size in enumerate((STEPS, LENGTH, LENGTH))
    ]
    bias, upstream = (
        values(DOCUMENTS, 1, 1, LENGTH),
        values(DOCUMENTS, HEADS, STEPS, WIDTH, seed=9),
    )
    found, gradients = found_and_gradients(
        lambda *given: tf.cast(
            attend(*(tf.cast(part, "bfloat16") for part in given[:3]), given[3], 0.3)[
                0
            ],
            "float32",
        ),
        [*parts, bias],
        upstream,
    )
    expected, plain = found_and_gradients(plain_attend, [*parts, bias], upstream)
    for one, other in zip([found, *gradients], [expected, *plain], strict=True):
        np.testing.assert_allclose(one, other, atol=0.02 * np.abs(other).max())
    _, weights = attend(*(tf.cast(part, "bfloat16") for part in parts), bias, 0.3)
    assert (
        weights.dtype == "float32"
        and float(tf.reduce_max(tf.abs(tf.reduce_sum(weights, -1) - 1.0))) < 1e-6
    )


def test_layer_norm_and_its_gradient():
    def plain(states, gamma, beta):
        mean, variance = tf.nn.moments(states, [-1], keepdims=True)
        return (states - mean) / tf.sqrt(variance + 0.2) * gamma + beta

    arguments = [
        values(DOCUMENTS, STEPS, WIDTH) * 2.0 + 3.0,
        values(WIDTH, seed=1),
        values(WIDTH, seed=2),
    ]
    upstream = values(DOCUMENTS, STEPS, WIDTH, seed=9)

    def ours(states, gamma, beta):
        return layer_norm(
            tf.ensure_shape(states, [None, None, WIDTH]), gamma, beta, 0.2
        )

    found, gradients = found_and_gradients(ours, arguments, upstream)
    expected, others = found_and_gradients(plain, arguments, upstream)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    for gradient, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(gradient, other, atol=3e-6)
        assert np.abs(other).max() > 0.1


def test_dropout_keeps_the_mean_and_no_pattern():
    seeds = keras.random.SeedGenerator(5)
    first, second = (keep_mask((50, 40, 61), 0.1, seeds).numpy() for _ in range(2))
    kept = 1.0 / (1.0 - round(0.1 * 65536) / 65536)
    assert set(np.unique(first)) == {
        np.float32(0.0),
        np.float32(kept),
    } and kept == pytest.approx(1 / 0.9, rel=1e-4)
    # 122,000 values: five standard deviations of their share are 0.0043, and of the
    # share that both drop 0.0014.
    for mask in (first, second):
        assert (mask == 0).mean() == pytest.approx(0.1, abs=0.0043)
        assert all(
            (mask.reshape(-1)[place::4] == 0).mean() == pytest.approx(0.1, abs=0.0086)
            for place in range(4)
        )
    assert ((first == 0) & (second == 0)).mean() == pytest.approx(0.01, abs=0.0014)
    assert (
        (first.reshape(-1)[1:] == 0) & (first.reshape(-1)[:-1] == 0)
    ).mean() == pytest.approx(0.01, abs=0.0014)


@pytest.mark.parametrize("shape", [(1,), (2, 3), (5, 1, 7), (8,)])
def test_a_mask_has_the_shape_it_is_asked_for_and_depends_on_the_seeds_alone(shape):
    one, other = (
        keep_mask(shape, 0.5, keras.random.SeedGenerator(3)).numpy() for _ in range(2)
    )
    assert one.shape == shape and one.tolist() == other.tolist()


@pytest.mark.parametrize("rate", [0.25, 0.75, 0.9999999])
def test_any_share_below_one_can_be_dropped(rate):
    mask = keep_mask((200_000,), rate, keras.random.SeedGenerator(3)).numpy()
    assert (mask == 0).mean() == pytest.approx(rate, abs=0.006)
    if rate < 0.9:
        assert mask.mean() == pytest.approx(1.0, abs=0.02)
