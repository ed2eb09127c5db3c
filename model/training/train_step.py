"""One compiled optimizer step. Its result does not depend on the number of replicas: it
is that of one device with the whole batch.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from precis.model.network.config import SOURCE_PADDING
from precis.model.network.generator import Generator
from precis.model.training.config import TrainingConfig
from precis.model.training.loss import Sums, masked_sum, smoothed_cross_entropy
from precis.model.training.strategy import trains_on_cpu

# On a CPU, two parts of a batch are worked at the same time, which keeps its cores
# busier than a sequence of operations does. The graph becomes twice as large, which
# does not pay for a narrower network.
_PARTS = 2
_LEAST_WIDTH_OF_PARTS = 256


def make_train_step(
    network: Generator,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    *,
    training: TrainingConfig,
    target_pad_id: int,
    batch_spec: Any,
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """A compiled step: a distributed batch in, its figures out; weights are updated.

    The figures are float32 scalars over the whole batch: `loss`, the mean smoothed loss
    of a target token; `accuracy`, the share of the target tokens to which the network
    gave the highest probability; `tokens` of sources and targets, without padding;
    `gradient_norm`, the global norm before clipping; `learning_rate` of this step.

    Gradients are summed over pieces and replicas, divided by the number of target
    tokens in the whole batch, and only then clipped, so that neither the number of
    devices nor the number of pieces changes the step.

    Args:
      network: the network, with the optimizer built for its trainable weights.
      optimizer: as Keras makes it; it may scale the loss.
      strategy: the devices.
      training: smoothing, coverage weight, pieces and clipping.
      target_pad_id: fills targets up.
      batch_spec: the types and shapes of a distributed batch.
    """
    parts = _count_parts(network, strategy)

    def piece_sums(batch: dict[str, tf.Tensor]) -> tuple[list[tf.Tensor], Sums]:
        return _add(
            _loss_gradients(network, optimizer, training, target_pad_id, part)
            for part in _split_rows(batch, parts)
        )

    def replica_step(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        gradients, sums = _sum_over_pieces(
            piece_sums, batch, training.accumulate, network
        )
        source_tokens = tf.math.count_nonzero(
            tf.not_equal(batch["source"], SOURCE_PADDING), dtype=tf.float32
        )
        context = tf.distribute.get_replica_context()
        loss, correct, target_tokens, source_tokens = context.all_reduce(
            tf.distribute.ReduceOp.SUM, [*sums, source_tokens]
        )
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients = [gradient / target_tokens for gradient in gradients]
        norm, rate = _apply_gradients(
            network, optimizer, strategy, gradients, clip_norm=training.clip_norm
        )
        return {
            "loss": loss / target_tokens,
            "accuracy": correct / target_tokens,
            "tokens": source_tokens + target_tokens,
            "gradient_norm": norm,
            "learning_rate": rate,
        }

    @tf.function(input_signature=[batch_spec], autograph=False)
    def train_step(batch: Any) -> dict[str, tf.Tensor]:
        figures = strategy.run(replica_step, args=(batch,))
        return {
            name: strategy.experimental_local_results(value)[0]
            for name, value in figures.items()
        }

    return train_step


def _loss_gradients(
    network: Generator,
    optimizer: keras.optimizers.Optimizer,
    training: TrainingConfig,
    pad_id: int,
    batch: dict[str, tf.Tensor],
) -> tuple[list[tf.Tensor], Sums]:
    """The gradients of the summed loss of a batch, in the optimizer's loss scale, and
    the sums themselves, which are not scaled.
    """
    with tf.GradientTape() as tape:
        prediction = network.predict_next(
            batch["source"], batch["target"], training=True
        )
        sums = smoothed_cross_entropy(
            prediction,
            batch["expected"],
            pad_id=pad_id,
            smoothing=training.label_smoothing,
        )
        if prediction.coverage_loss is not None:
            coverage_loss = masked_sum(
                prediction.coverage_loss, batch["expected"], pad_id=pad_id
            )
            sums = sums._replace(
                loss=sums.loss + training.coverage_weight * coverage_loss
            )
        scaled = optimizer.scale_loss(sums.loss)
    gradients = tape.gradient(
        scaled, [weight.value for weight in network.trainable_variables]
    )
    return [tf.convert_to_tensor(gradient) for gradient in gradients], sums


def _count_parts(network: Generator, strategy: tf.distribute.Strategy) -> int:
    """How many parts of a batch are worked at the same time."""
    is_wide = network.config.width >= _LEAST_WIDTH_OF_PARTS
    return _PARTS if is_wide and trains_on_cpu(strategy) else 1


def _split_rows(
    batch: dict[str, tf.Tensor], parts: int
) -> Iterator[dict[str, tf.Tensor]]:
    """Nearly equal parts of a batch; some are empty where it has fewer rows."""
    if parts == 1:
        yield batch  # with its static shape
        return
    count = tf.shape(batch["source"])[0]
    for part in range(parts):
        rows = slice(count * part // parts, count * (part + 1) // parts)
        yield {name: values[rows] for name, values in batch.items()}


def _add(
    parts: Iterable[tuple[list[tf.Tensor], Sums]],
) -> tuple[list[tf.Tensor], Sums]:
    """The gradients and the sums of some parts of a batch together."""
    gradients, sums = zip(*parts, strict=True)
    if len(gradients) == 1:
        return gradients[0], sums[0]
    return (
        [tf.add_n(of_weight) for of_weight in zip(*gradients, strict=True)],
        Sums(*(tf.add_n(values) for values in zip(*sums, strict=True))),
    )


def _apply_gradients(
    network: Generator,
    optimizer: keras.optimizers.Optimizer,
    strategy: tf.distribute.Strategy,
    gradients: list[tf.Tensor],
    *,
    clip_norm: float,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Clips the gradients of the whole batch and updates the network with them.

    Args:
      network: has the trainable variables.
      optimizer: whose loss scale the gradients have.
      strategy: the devices.
      gradients: the same on every replica.
      clip_norm: the largest global norm, without the loss scale; 0 does not clip.

    Returns:
      The global norm before clipping, without the loss scale, and the learning rate.
    """
    scale = tf.convert_to_tensor(optimizer.scale_loss(1.0))
    norm = tf.linalg.global_norm(gradients)
    if clip_norm:
        gradients, _ = tf.clip_by_global_norm(
            gradients, clip_norm * scale, use_norm=norm
        )
    rate = tf.convert_to_tensor(optimizer.learning_rate)
    # Keras sums the gradients over the replicas once more.
    shares = [gradient / strategy.num_replicas_in_sync for gradient in gradients]
    optimizer.apply_gradients(zip(shares, network.trainable_variables, strict=True))
    return norm / scale, rate


def _sum_over_pieces(
    piece_sums: Callable[[dict[str, tf.Tensor]], tuple[list[tf.Tensor], Sums]],
    batch: dict[str, tf.Tensor],
    pieces: int,
    network: Generator,
) -> tuple[list[tf.Tensor], Sums]:
    """The gradients and sums of all pieces of a batch.

    The pieces are worked one after the other, so that only the activations of one piece
    are in memory.
    """
    if pieces == 1:
        return piece_sums(batch)
    rows_of_pieces = {
        name: tf.reshape(
            rows,
            tf.concat([[pieces, tf.shape(rows)[0] // pieces], tf.shape(rows)[1:]], 0),
        )
        for name, rows in batch.items()
    }

    def add(
        piece: tf.Tensor, gradients: list[tf.Tensor], sums: Sums
    ) -> tuple[tf.Tensor, list[tf.Tensor], Sums]:
        more = piece_sums({name: rows[piece] for name, rows in rows_of_pieces.items()})
        return piece + 1, *_add([(gradients, sums), more])

    zero_gradients = [tf.zeros(weight.shape) for weight in network.trainable_variables]
    zero = tf.constant(0.0)
    _, gradients, sums = tf.while_loop(
        lambda piece, *_: piece < pieces,
        add,
        (tf.constant(0), zero_gradients, Sums(zero, zero, zero)),
        parallel_iterations=1,
    )
    return gradients, sums
