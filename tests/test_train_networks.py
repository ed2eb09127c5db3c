"""Training of every kind of network: it learns, in pieces the same, and its state is
all in its variables.
"""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.shared_networks import eagerly
from support.small_training import (
    VOCABULARY,
    network_config,
    training_config,
)

from precis.model.network.build import build_network
from precis.model.network.config import (
    SOURCE_PADDING,
    DecoderOnlyConfig,
    RecurrentConfig,
)
from precis.model.training.strategy import make_strategy
from precis.model.training.train_step import make_train_step

SHAPE = {
    "vocabulary_size": VOCABULARY,
    "pad_id": 0,
    "width": 16,
    "dropout": 0.1,
    "max_source_tokens": 192,
    "max_target_tokens": 48,
}
FAST = ("coverage_and_gate", "gru")  # the other networks are slow tests
NETWORKS = {
    "coverage_and_gate": network_config(coverage=True, convolutional_gate=True),
    "like_t5": network_config(
        positions="relative",
        norm_first=True,
        rms_norm=True,
        biases=False,
        gated_feed_forward=True,
        pointer=False,
    ),
    "decoder_only": DecoderOnlyConfig(**SHAPE, feed_forward=32, heads=2, layers=2),
    "gru": RecurrentConfig(**SHAPE, encoder_layers=1, decoder_layers=1),
    "lstm": RecurrentConfig(
        **SHAPE,
        encoder_layers=2,
        decoder_layers=2,
        cell="lstm",
        attention="bahdanau",
        input_feeding=False,
        convolutional_gate=True,
    ),
}


def make_batch() -> dict[str, tf.Tensor]:
    """Six rows: sources of up to 8 tokens, targets of up to 4, the last of padding."""
    generator = np.random.default_rng(5)
    source = generator.integers(4, VOCABULARY, (6, 8))
    target = generator.integers(4, VOCABULARY, (6, 5))
    source[1, 5:] = source[5] = SOURCE_PADDING
    target[1, 3:] = target[5] = 0
    rows = {"source": source, "target": target[:, :-1], "expected": target[:, 1:]}
    rows["shard"] = np.where(source[:, 0] == SOURCE_PADDING, -1, 0)
    return {name: tf.constant(values, tf.int32) for name, values in rows.items()}


def make_step(network, *, accumulate=1, rows=None):
    """A step of Adam whose rate is the same for every step.

    Args:
      network: what is trained.
      accumulate: the pieces of a batch.
      rows: of every batch, where their number is known beforehand.
    """
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(network.trainable_variables)
    spec = {
        name: tf.TensorSpec([rows, *values.shape[1:]], tf.int32)
        for name, values in make_batch().items()
    }
    step = make_train_step(
        network,
        optimizer,
        make_strategy("one"),
        training=training_config(accumulate=accumulate),
        target_pad_id=0,
        batch_spec=spec,
    )
    return step, [*network.variables, *optimizer.variables]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow])
        for name in NETWORKS
    ],
)
def test_every_network_learns_and_its_state_is_all_in_its_variables(name):
    """The variables of one network set another, made with another seed, to the same
    state: a checkpoint holds all of it, the seeds of dropout included.
    """
    with eagerly():
        step, variables = make_step(build_network(NETWORKS[name], seed=3))
        losses = [float(step(make_batch()).loss) for _ in range(3)]
        other_step, others = make_step(build_network(NETWORKS[name], seed=4))
        for variable, other in zip(variables, others, strict=True):
            other.assign(variable.numpy())
        losses.append(float(step(make_batch()).loss))
        assert float(other_step(make_batch()).loss) == losses[-1]
    assert losses[-1] < losses[0] - 0.15
    for variable, other in zip(variables, others, strict=True):
        np.testing.assert_array_equal(variable.numpy(), other.numpy())


@pytest.mark.parametrize(
    "name", ["coverage_and_gate", pytest.param("gru", marks=pytest.mark.slow)]
)
def test_pieces_change_no_step(name):
    """Without dropout, whose masks differ; half of the last piece is padding."""
    reports = []
    config = dataclasses.replace(NETWORKS[name], dropout=0.0)
    with eagerly():
        for pieces in (1, 3):
            step, _ = make_step(build_network(config, seed=3), accumulate=pieces)
            report = step(make_batch())
            reports.append([float(report.loss), float(report.gradient_norm)])
    assert reports[0] == pytest.approx(reports[1], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["like_t5", "decoder_only"])
def test_a_step_that_xla_compiles_is_the_same(name):
    """XLA compiles for a TPU too: every operation of the step and of its gradient must
    be one that it has, with shapes that it knows. Dropout is on. It does not compile
    the gradient of `keras.ops.scan`, which recurrent networks and coverage use.
    """
    step, variables = make_step(build_network(NETWORKS[name], seed=3), rows=6)
    first = [variable.numpy() for variable in variables]
    figures = []
    for run in (step, tf.function(step, autograph=False, jit_compile=True)):
        for variable, value in zip(variables, first, strict=True):
            variable.assign(value)
        figures.append([[float(value) for value in run(make_batch())] for _ in "123"])
    np.testing.assert_allclose(figures[1], figures[0], rtol=1e-4)
