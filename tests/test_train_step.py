"""One step: the gradient of the mean loss, in however many pieces, clipped."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_training import VOCABULARY, network_config, training_config

from precis.model.network.build import build_network
from precis.model.training.strategy import make_strategy
from precis.model.training.train_step import make_train_step


def sgd_step(*, clip_norm: float, accumulate: int = 1):
    """All weights' change in a step of plain gradient descent, the mean loss's gradient
    by an independent route, and the report.
    """
    network = build_network(network_config(dropout=0.0), seed=3)
    generator = np.random.default_rng(5)
    source, target = (
        generator.integers(4, VOCABULARY, (4, 20)),
        generator.integers(4, VOCABULARY, (4, 9)),
    )
    source[1, 12:], target[1, 5:], target[2, 8:] = 0, 0, 0
    batch = {
        "source": source,
        "target": target[:, :-1],
        "expected": target[:, 1:],
        "shard": np.zeros(4),
    }
    batch = {name: tf.constant(rows, tf.int32) for name, rows in batch.items()}
    with tf.GradientTape() as tape:
        log_probs = tf.nn.log_softmax(
            network(batch["source"], batch["target"], training=True)
        )
        loss = -tf.gather(
            log_probs, batch["expected"], batch_dims=2
        ) * 0.8 - 0.2 * tf.reduce_mean(log_probs, -1)
        loss = tf.reduce_mean(tf.boolean_mask(loss, batch["expected"] != 0))
    gradients = [
        tf.convert_to_tensor(part).numpy()
        for part in tape.gradient(
            loss, [weight.value for weight in network.trainable_variables]
        )
    ]
    before = network.get_weights()
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(network.trainable_variables)
    training = training_config(
        label_smoothing=0.2, clip_norm=clip_norm, accumulate=accumulate
    )
    spec = {
        name: tf.TensorSpec([None, *rows.shape[1:]], tf.int32)
        for name, rows in batch.items()
    }
    step = make_train_step(
        network,
        optimizer,
        make_strategy("one"),
        training=training,
        pad_id=0,
        batch_spec=spec,
    )
    report = {name: float(value) for name, value in step(batch)._asdict().items()}
    assert report["loss"] == pytest.approx(float(loss), rel=1e-5)
    assert (
        report["tokens"]
        == (batch["source"].numpy() != 0).sum() + (batch["expected"].numpy() != 0).sum()
    )
    changes = [
        new - old for new, old in zip(network.get_weights(), before, strict=True)
    ]
    return changes, gradients, report


def norm_of(parts) -> float:
    return float(np.sqrt(sum((part.astype("float64") ** 2).sum() for part in parts)))


@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_a_step_follows_the_gradient_of_the_mean_loss(accumulate):
    changes, gradients, report = sgd_step(clip_norm=0, accumulate=accumulate)
    for change, gradient in zip(changes, gradients, strict=True):
        np.testing.assert_allclose(-change, gradient, atol=1e-6)
    assert report["gradient_norm"] == pytest.approx(norm_of(gradients), rel=1e-4)
    assert report["learning_rate"] == 1.0


def test_a_gradient_over_the_clip_is_scaled_down_to_it():
    changes, gradients, report = sgd_step(clip_norm=0.25)
    assert (
        report["gradient_norm"] == pytest.approx(norm_of(gradients), rel=1e-4)
        and report["gradient_norm"] > 0.5
    )
    assert norm_of(changes) == pytest.approx(0.25, rel=1e-4)
    for change, gradient in zip(changes, gradients, strict=True):
        np.testing.assert_allclose(
            -change, gradient * 0.25 / norm_of(gradients), atol=1e-6
        )
    changes, gradients, _ = sgd_step(clip_norm=50.0)
    assert norm_of(changes) == pytest.approx(norm_of(gradients), rel=1e-4)
