"""One step: the gradient of the mean loss, in any number of pieces, clipped."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.shared_networks import eagerly
from support.small_training import VOCABULARY, network_config, training_config

from precis.model.network.build import build_network
from precis.model.network.config import SOURCE_PADDING, StackConfig
from precis.model.training import train_step
from precis.model.training.strategy import make_strategy
from precis.model.training.train_step import make_train_step


@pytest.fixture(scope="module", autouse=True)
def eager_steps():
    """A compiled step runs in `test_train`; here each test takes a step or two."""
    with eagerly():
        yield


def make_batch() -> dict[str, tf.Tensor]:
    """Four rows, of which one source and two targets are padded."""
    generator = np.random.default_rng(5)
    source = generator.integers(4, VOCABULARY, (4, 20))
    target = generator.integers(4, VOCABULARY, (4, 9))
    source[1, 12:] = SOURCE_PADDING
    target[1, 5:] = 0
    target[2, 8:] = 0
    rows = {
        "source": source,
        "target": target[:, :-1],
        "expected": target[:, 1:],
        "shard": np.zeros(4),
    }
    return {name: tf.constant(values, tf.int32) for name, values in rows.items()}


def make_step(network, batch, **settings):
    """A step of plain gradient descent with the learning rate 1."""
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build(network.trainable_variables)
    spec = {
        name: tf.TensorSpec([None, *rows.shape[1:]], tf.int32)
        for name, rows in batch.items()
    }
    return make_train_step(
        network,
        optimizer,
        make_strategy("one"),
        training=training_config(**settings),
        target_pad_id=0,
        batch_spec=spec,
    )


def sgd_step(*, clip_norm: float, accumulate: int = 1):
    """The change of all weights in a step of plain gradient descent, the gradient of
    the mean loss by an independent route, and the report.
    """
    network = build_network(network_config(dropout=0.0), seed=3)
    batch = make_batch()
    with tf.GradientTape() as tape:
        log_probs = tf.nn.log_softmax(
            network(batch["source"], batch["target"], training=True)
        )
        right = tf.gather(log_probs, batch["expected"], batch_dims=2)
        loss = -right * 0.8 - 0.2 * tf.reduce_mean(log_probs, -1)
        loss = tf.reduce_mean(tf.boolean_mask(loss, batch["expected"] != 0))
    gradients = [
        tf.convert_to_tensor(part).numpy()
        for part in tape.gradient(
            loss, [weight.value for weight in network.trainable_variables]
        )
    ]
    before = network.get_weights()
    step = make_step(
        network,
        batch,
        label_smoothing=0.2,
        clip_norm=clip_norm,
        accumulate=accumulate,
    )
    report = {name: float(value) for name, value in step(batch)._asdict().items()}
    assert report["loss"] == pytest.approx(float(loss), rel=1e-5)
    source_tokens = (batch["source"].numpy() != SOURCE_PADDING).sum()
    target_tokens = (batch["expected"].numpy() != 0).sum()
    assert report["tokens"] == source_tokens + target_tokens
    changes = [
        new - old for new, old in zip(network.get_weights(), before, strict=True)
    ]
    return changes, gradients, report


def norm_of(parts) -> float:
    return float(np.sqrt(sum((part.astype("float64") ** 2).sum() for part in parts)))


@pytest.mark.parametrize(
    ("accumulate", "least_width"), [(1, 256), (4, 256), (1, 16), (2, 16)]
)
def test_a_step_follows_the_gradient_of_the_mean_loss(
    monkeypatch, accumulate, least_width
):
    # Two parts of a batch are worked at the same time from that width on.
    monkeypatch.setattr(train_step, "_LEAST_WIDTH_OF_PARTS", least_width)
    changes, gradients, report = sgd_step(clip_norm=0, accumulate=accumulate)
    for change, gradient in zip(changes, gradients, strict=True):
        np.testing.assert_allclose(-change, gradient, atol=1e-6)
    assert report["gradient_norm"] == pytest.approx(norm_of(gradients), rel=1e-4)
    assert report["learning_rate"] == 1.0


def test_a_gradient_over_the_clip_is_scaled_down_to_it():
    changes, gradients, report = sgd_step(clip_norm=0.25)
    assert report["gradient_norm"] == pytest.approx(norm_of(gradients), rel=1e-4)
    assert report["gradient_norm"] > 0.5
    assert norm_of(changes) == pytest.approx(0.25, rel=1e-4)
    for change, gradient in zip(changes, gradients, strict=True):
        np.testing.assert_allclose(
            -change, gradient * 0.25 / norm_of(gradients), atol=1e-6
        )
    changes, gradients, _ = sgd_step(clip_norm=50.0)
    assert norm_of(changes) == pytest.approx(norm_of(gradients), rel=1e-4)


def test_sources_and_targets_are_counted_without_their_own_padding():
    """20 + 12 + 20 + 20 source tokens and 8 + 4 + 7 + 8 target tokens. Among those of
    the source are the padding tokens of both vocabularies.
    """
    decoder = StackConfig(
        vocabulary_size=VOCABULARY, pad_id=0, width=16, heads=2, feed_forward=32
    )
    network = build_network(
        network_config(
            pad_id=9, decoder_stack=decoder, shared_embedding=False, pointer=False
        )
    )
    batch = make_batch()
    batch["source"] = tf.tensor_scatter_nd_update(
        batch["source"], [[0, 3], [0, 4]], [0, 9]
    )
    batch["expected"] = tf.tensor_scatter_nd_update(batch["expected"], [[0, 3]], [9])
    step = make_step(network, batch)
    assert float(step(batch).tokens) == 72 + 27


def test_a_batch_of_one_row_is_worked_in_two_parts(monkeypatch):
    """The first of which is empty, as only a compiled step allows."""
    batch = {name: rows[:1] for name, rows in make_batch().items()}
    whole = make_step(build_network(network_config(dropout=0.0), seed=3), batch)
    expected = list(map(float, whole(batch)))
    monkeypatch.setattr(train_step, "_LEAST_WIDTH_OF_PARTS", 16)
    in_parts = make_step(build_network(network_config(dropout=0.0), seed=3), batch)
    tf.config.run_functions_eagerly(False)
    try:
        report = list(map(float, in_parts(batch)))
    finally:
        tf.config.run_functions_eagerly(True)
    assert report == pytest.approx(expected, rel=1e-5)
