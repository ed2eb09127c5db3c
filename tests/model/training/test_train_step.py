"""One step: the gradient of the mean loss, in any number of pieces, clipped; and every
kind of network learns by it, with all of its state in its variables.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.shared_networks import eagerly
from support.small_training import VOCABULARY, network_config, training_config

from precis.model.network.build import build_network
from precis.model.network.config import (
    SOURCE_PADDING,
    DecoderOnlyConfig,
    RecurrentConfig,
    StackConfig,
)
from precis.model.training import train_step
from precis.model.training.strategy import make_strategy
from precis.model.training.train_step import make_train_step

SHAPE = {"vocabulary_size": VOCABULARY, "pad_id": 0, "width": 16, "dropout": 0.1}
SHAPE |= {"max_source_tokens": 192, "max_target_tokens": 48}
LIKE_T5 = {
    **dict.fromkeys(("norm_first", "rms_norm", "gated_feed_forward"), True),
    **{"positions": "relative", "biases": False, "pointer": False},
}
NETWORKS = {
    "gate": network_config(convolutional_gate=True),
    "like_t5": network_config(**LIKE_T5),
    "decoder_only": DecoderOnlyConfig(**SHAPE, feed_forward=32, heads=2, layers=2),
    "gru": RecurrentConfig(**SHAPE, encoder_layers=1, decoder_layers=1),
}


def make_batch() -> dict[str, tf.Tensor]:
    """Six rows: sources of up to 8 tokens, targets of up to 4, the last of padding."""
    generator = np.random.default_rng(5)
    source = generator.integers(4, VOCABULARY, (6, 8))
    target = generator.integers(4, VOCABULARY, (6, 5))
    source[1, 5:] = source[5] = SOURCE_PADDING
    target[1, 3:] = target[5] = 0
    rows = {"source": source, "target": target[:, :-1], "expected": target[:, 1:]}
    return {name: tf.constant(values, tf.int32) for name, values in rows.items()}


def make_step(network, optimizer=None, *, rows=None, **settings):
    """A step of Adam, or of another optimizer, whose rate is the same for every step,
    and all variables.

    Args:
      network: what is trained.
      optimizer: of Keras.
      rows: of every batch, where their number is known beforehand.
      **settings: of the training.
    """
    optimizer = optimizer or keras.optimizers.Adam(0.01)
    optimizer.build(network.trainable_variables)
    batch = make_batch().items()
    spec = {n: tf.TensorSpec([rows, *each.shape[1:]], tf.int32) for n, each in batch}
    training = {"training": training_config(**settings), "target_pad_id": 0}
    strategy = make_strategy("one")
    step = make_train_step(network, optimizer, strategy, batch_spec=spec, **training)
    return step, [*network.variables, *optimizer.variables]


def floats(figures) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items()}


# The gradient


def norm_of(parts) -> float:
    return float(np.sqrt(sum((part.astype("float64") ** 2).sum() for part in parts)))


GRADIENTS = [
    ({"clip_norm": 0.0}, 256),
    ({"clip_norm": 0.0, "accumulate": 3}, 256),
    # Two parts of a batch are worked at the same time from that width on.
    ({"clip_norm": 0.0}, 16),
    ({"clip_norm": 0.0, "accumulate": 2}, 16),
    ({"clip_norm": 0.25}, 256),
    ({"clip_norm": 50.0}, 256),
]


@pytest.mark.parametrize(("settings", "least_width"), GRADIENTS)
def test_a_step_follows_the_clipped_gradient_of_the_mean_loss(
    monkeypatch, settings, least_width
):
    """Plain gradient descent with the rate 1, beside TensorFlow's own gradient of the
    formula.
    """
    monkeypatch.setattr(train_step, "_LEAST_WIDTH_OF_PARTS", least_width)
    network = build_network(network_config(dropout=0.0), seed=3)
    batch = make_batch()
    with eagerly(), tf.GradientTape() as tape:
        logits = network(batch["source"], batch["target"], training=True)
        log_probs = tf.nn.log_softmax(logits)
        right = tf.gather(log_probs, batch["expected"], batch_dims=2)
        loss = -right * 0.8 - 0.2 * tf.reduce_mean(log_probs, -1)
        loss = tf.reduce_mean(tf.boolean_mask(loss, batch["expected"] != 0))
        values = [weight.value for weight in network.trainable_variables]
    gradients = [tf.convert_to_tensor(n).numpy() for n in tape.gradient(loss, values)]
    before = network.get_weights()
    descent = keras.optimizers.SGD(1.0)
    step, _ = make_step(network, descent, label_smoothing=0.2, **settings)
    with eagerly():
        report = floats(step(batch))
    norm = norm_of(gradients)
    assert report["loss"] == pytest.approx(float(loss), rel=1e-5)
    assert report["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    assert report["learning_rate"] == 1.0 and norm > 0.5
    scale = min(1.0, (settings["clip_norm"] or norm) / norm)
    for new, old, gradient in zip(
        network.get_weights(), before, gradients, strict=True
    ):
        np.testing.assert_allclose(old - new, gradient * scale, atol=1e-6)


def test_sources_and_targets_are_counted_without_their_own_padding():
    """Four sources of 8 tokens and one of 5, four targets of 4 and one of 2. Among the
    tokens of the source are the padding tokens of both vocabularies.
    """
    decoder = StackConfig(
        vocabulary_size=VOCABULARY, pad_id=0, width=16, heads=2, feed_forward=32
    )
    sides = {"decoder_stack": decoder, "shared_embedding": False, "pointer": False}
    network = build_network(network_config(pad_id=9, **sides))
    batch, places = make_batch(), [[0, 3], [0, 4]]
    batch["source"] = tf.tensor_scatter_nd_update(batch["source"], places, [0, 9])
    batch["expected"] = tf.tensor_scatter_nd_update(batch["expected"], [[0, 3]], [9])
    with eagerly():
        step, _ = make_step(network)
        assert float(step(batch)["tokens"]) == 37 + 18


@pytest.mark.slow
def test_a_batch_of_one_row_is_worked_in_two_parts(monkeypatch):
    """The first of which is empty, as only a compiled step allows."""
    batch = {name: rows[:1] for name, rows in make_batch().items()}
    with eagerly():
        whole, _ = make_step(build_network(network_config(dropout=0.0), seed=3))
        expected = floats(whole(batch))
    monkeypatch.setattr(train_step, "_LEAST_WIDTH_OF_PARTS", 16)
    in_parts, _ = make_step(build_network(network_config(dropout=0.0), seed=3))
    assert floats(in_parts(batch)) == pytest.approx(expected, rel=1e-5)


# Every kind of network


SLOW = ("like_t5", "decoder_only")
EACH = ("gate", "gru", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW))


@pytest.mark.parametrize("name", EACH)
def test_every_network_learns_and_its_state_is_all_in_its_variables(name):
    """The variables of one network set another, made with another seed, to the same
    state: a checkpoint holds all of it, the seeds of dropout included.
    """
    with eagerly():
        step, variables = make_step(build_network(NETWORKS[name], seed=3))
        losses = [float(step(make_batch())["loss"]) for _ in range(3)]
        other_step, others = make_step(build_network(NETWORKS[name], seed=4))
        for variable, other in zip(variables, others, strict=True):
            other.assign(variable.numpy())
        losses.append(float(step(make_batch())["loss"]))
        assert float(other_step(make_batch())["loss"]) == losses[-1]
    assert losses[-1] < losses[0] - 0.15
    for variable, other in zip(variables, others, strict=True):
        np.testing.assert_array_equal(variable.numpy(), other.numpy())


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_step_that_xla_compiles_is_the_same(name):
    """XLA compiles for a TPU too: every operation of the step and of its gradient must
    be one that it has, with shapes that it knows. Dropout is on. It does not compile
    the gradient of `keras.ops.scan`, which recurrent networks use.
    """
    step, variables = make_step(build_network(NETWORKS[name], seed=3), rows=6)
    first = [variable.numpy() for variable in variables]
    figures = []
    for run in (step, tf.function(step, autograph=False, jit_compile=True)):
        for variable, value in zip(variables, first, strict=True):
            variable.assign(value)
        steps = [run(make_batch()) for _ in "123"]
        figures.append([list(floats(each).values()) for each in steps])
    np.testing.assert_allclose(figures[1], figures[0], rtol=1e-4)
