"""One compiled optimizer step. Its result does not depend on the number of replicas: it
is the same as on one device with the whole batch.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from precis.model.network.config import SOURCE_PADDING
from precis.model.network.generator import Generator
from precis.model.training.batches import split_rows
from precis.model.training.config import TrainingConfig
from precis.model.training.loss import Sums, smoothed_cross_entropy
from precis.model.training.strategy import trains_on_cpu

# On a CPU, two parts of a batch are computed at the same time, which keeps its cores
# busier. The graph becomes twice as large, which is not worth it for a narrow network.
_PARTS = 2
_LEAST_WIDTH_OF_PARTS = 256

Batch = dict[str, tf.Tensor]
# The gradients of the summed loss of some rows, and the sums themselves.
GradientSums = tuple[list[tf.Tensor], Sums]


def make_train_step(
    network: Generator,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    *,
    training: TrainingConfig,
    target_pad_id: int,
    batch_spec: Any,
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """Makes a compiled step, which takes a distributed batch, updates the weights and
    returns figures.

    The figures are float32 scalars over the whole batch: `loss`, the mean smoothed loss
    of a target token; `accuracy`, the share of target tokens with the highest
    probability; `tokens`, the number of source and target tokens without padding;
    `gradient_norm`, the global norm before clipping; and `learning_rate`.

    Args:
      network: the network.
      optimizer: the optimizer, built for the network's trainable weights; it may scale
          the loss.
      strategy: the devices.
      training: the settings for smoothing, accumulation and clipping.
      target_pad_id: the padding of targets.
      batch_spec: the types and shapes of a distributed batch.
    """
    step = _ReplicaStep(network, optimizer, strategy, training, target_pad_id)

    @tf.function(input_signature=[batch_spec], autograph=False)
    def train_step(batch: Any) -> dict[str, tf.Tensor]:
        figures = strategy.run(step.run, args=(batch,))
        return {
            name: strategy.experimental_local_results(value)[0]
            for name, value in figures.items()
        }

    return train_step


@dataclasses.dataclass(frozen=True, eq=False)
class _ReplicaStep:
    """The step of one replica; the arguments are as for `make_train_step`.

    Gradients are summed over pieces and replicas, divided by the number of target
    tokens in the whole batch, and only then clipped. So the step does not depend on the
    number of devices or pieces.
    """

    network: Generator
    optimizer: keras.optimizers.Optimizer
    strategy: tf.distribute.Strategy
    training: TrainingConfig
    pad_id: int

    def run(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Updates the network and returns the figures."""
        gradients, sums = self.sum_over_pieces(batch)
        source_tokens = tf.math.count_nonzero(
            tf.not_equal(batch["source"], SOURCE_PADDING), dtype=tf.float32
        )
        context = tf.distribute.get_replica_context()
        loss, correct, target_tokens, source_tokens = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [*sums, source_tokens]
        )
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        norm, rate = self.apply([gradient / target_tokens for gradient in gradients])
        return {
            "loss": loss / target_tokens,
            "accuracy": correct / target_tokens,
            "tokens": source_tokens + target_tokens,
            "gradient_norm": norm,
            "learning_rate": rate,
        }

    def apply(self, gradients: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Clips the gradients of the whole batch, which include the optimizer's loss
        scale and are the same on every replica, and updates the network.

        Returns:
          The global norm before clipping, without the loss scale, and the learning
          rate.
        """
        optimizer, clip_norm = self.optimizer, self.training.clip_norm
        scale = tf.convert_to_tensor(optimizer.scale_loss(1.0))
        norm = tf.linalg.global_norm(gradients)
        if clip_norm:
            gradients, _ = tf.clip_by_global_norm(
                gradients, clip_norm * scale, use_norm=norm
            )
        rate = tf.convert_to_tensor(optimizer.learning_rate)
        # Keras sums the gradients over the replicas once more.
        replicas = self.strategy.num_replicas_in_sync
        shares = [gradient / replicas for gradient in gradients]
        variables = self.network.trainable_variables
        optimizer.apply_gradients(zip(shares, variables, strict=True))
        return norm / scale, rate

    def sum_over_pieces(self, batch: Batch) -> GradientSums:
        """The gradients and sums of all pieces of a batch.

        The pieces are computed in sequence, so that only the activations of one piece
        are in memory.
        """
        pieces = self.training.accumulate
        if pieces == 1:
            return self.sum_over_parts(batch)
        rows_of_pieces = {
            name: split_rows(rows, pieces) for name, rows in batch.items()
        }

        def add(
            piece: tf.Tensor, gradients: list[tf.Tensor], sums: Sums
        ) -> tuple[tf.Tensor, list[tf.Tensor], Sums]:
            rows = {name: rows[piece] for name, rows in rows_of_pieces.items()}
            more = self.sum_over_parts(rows)
            return piece + 1, *_add([(gradients, sums), more])

        variables = self.network.trainable_variables
        zero = tf.constant(0.0)
        _, gradients, sums = tf.while_loop(
            lambda piece, *_: piece < pieces,
            add,
            (
                tf.constant(0),
                [tf.zeros(weight.shape) for weight in variables],
                Sums(zero, zero, zero),
            ),
            parallel_iterations=1,
        )
        return gradients, sums

    def sum_over_parts(self, batch: Batch) -> GradientSums:
        """The gradients and sums of a piece, whose parts are computed in parallel."""
        is_wide = self.network.config.width >= _LEAST_WIDTH_OF_PARTS
        parts = _PARTS if is_wide and trains_on_cpu(self.strategy) else 1
        return _add(map(self.loss_gradients, _cut_rows(batch, parts)))

    def loss_gradients(self, batch: Batch) -> GradientSums:
        """The gradients of the summed loss of a batch, times the optimizer's loss
        scale, and the unscaled sums.
        """
        expected = batch["expected"]
        with tf.GradientTape() as tape:
            prediction = self.network.predict_next(
                batch["source"], batch["target"], training=True
            )
            sums = smoothed_cross_entropy(
                prediction,
                expected,
                pad_id=self.pad_id,
                smoothing=self.training.label_smoothing,
            )
            scaled = self.optimizer.scale_loss(sums.loss)
        variables = [weight.value for weight in self.network.trainable_variables]
        gradients = tape.gradient(scaled, variables)
        return [tf.convert_to_tensor(gradient) for gradient in gradients], sums


def _cut_rows(batch: Batch, parts: int) -> Iterator[Batch]:
    """Nearly equal parts of a batch; some are empty if there are too few rows."""
    if parts == 1:
        yield batch  # with its static shape
        return
    count = tf.shape(batch["source"])[0]
    for part in range(parts):
        rows = slice(count * part // parts, count * (part + 1) // parts)
        yield {name: values[rows] for name, values in batch.items()}


def _add(parts: Iterable[GradientSums]) -> GradientSums:
    """Adds up the gradients and the sums of parts of a batch."""
    gradients, sums = zip(*parts, strict=True)
    return (
        [tf.add_n(of_weight) for of_weight in zip(*gradients, strict=True)],
        Sums(*(tf.add_n(values) for values in zip(*sums, strict=True))),
    )
