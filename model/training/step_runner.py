"""Runs the steps of a training: one in each call of TensorFlow, or several in a loop
inside it, between which Python has nothing to do.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from precis.model.training.state import TrainingSetup, TrainingState
from precis.model.training.train_step import StepReport, make_train_step


class StepResult(NamedTuple):
    """What a step left.

    Attributes:
      report: float32 scalars, perhaps still on the device.
      shard: int32 [B], per replica: the position of each row's file in the shards, -1
          for a row of padding; None after a loop, which does not keep them.
    """

    report: StepReport
    shard: Any


# Takes batches and a number of steps; makes at least one step and at most so many. No
# result means that the batches are used up.
RunSteps = Callable[[Iterator[Any], int], list[StepResult]]


def make_step_runner(
    setup: TrainingSetup, state: TrainingState, batch_spec: Any
) -> RunSteps:
    """A function that makes the next steps of a training.

    Args:
      setup: with the steps of a loop.
      state: of which the network and the optimizer count.
      batch_spec: the types and shapes of a distributed batch.
    """
    train_step = make_train_step(
        state.network,
        state.optimizer,
        setup.strategy,
        training=setup.training,
        target_pad_id=setup.ids.target_pad,
        batch_spec=batch_spec,
    )
    if setup.training.steps_per_loop == 1:
        return lambda batches, _: _one_step(train_step, batches)
    train_loop = make_train_loop(train_step)
    return lambda batches, count: _loop_of_steps(train_loop, batches, count)


def _one_step(
    train_step: Callable[[Any], StepReport], batches: Iterator[Any]
) -> list[StepResult]:
    return [
        StepResult(train_step(batch), batch["shard"])
        for batch in itertools.islice(batches, 1)
    ]


def _loop_of_steps(
    train_loop: Callable[[Any, tf.Tensor], StepReport],
    batches: Iterator[Any],
    count: int,
) -> list[StepResult]:
    reports = train_loop(batches, tf.constant(count))
    # The figures of all steps come over from the device together.
    steps = zip(*(values.numpy() for values in reports), strict=True)
    return [StepResult(StepReport(*step), None) for step in steps]


def make_train_loop(
    train_step: Callable[[Any], StepReport],
) -> Callable[[Any, tf.Tensor], StepReport]:
    """A compiled loop: an iterator of distributed batches and a number of steps, int32
    scalar, in; the reports of the steps out, each figure float32 [steps].

    The loop makes fewer steps where the iterator ends.
    """

    @tf.function(autograph=False, reduce_retracing=True)
    def train_loop(batches: Any, count: tf.Tensor) -> StepReport:
        figures = [
            tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[])
            for _ in StepReport._fields
        ]

        def make_step(done: tf.Tensor, _: tf.Tensor, figures: Any) -> Any:
            batch = batches.get_next_as_optional()

            def write_report() -> Any:
                report = train_step(batch.get_value())
                written = [
                    array.write(done, value)
                    for array, value in zip(figures, report, strict=True)
                ]
                return done + 1, tf.constant(True), written

            return tf.cond(
                batch.has_value(),
                write_report,
                lambda: (done, tf.constant(False), figures),
            )

        _, _, figures = tf.while_loop(
            lambda done, has_batch, _: tf.logical_and(has_batch, done < count),
            make_step,
            (tf.constant(0), tf.constant(True), figures),
            parallel_iterations=1,
        )
        return StepReport(*(array.stack() for array in figures))

    return train_loop
