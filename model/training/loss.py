"""What training makes small and what it reports."""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.logits import places
from precis.model.network.pointer import LOWEST_PROBABILITY, Reading, spread
from precis.model.network.prediction import Prediction


class Sums(NamedTuple):
    """Sums over the tokens of a batch that are no padding, float32 scalars: add them up
    over batches, then divide by `tokens`.
    """

    loss: Any
    correct: Any
    tokens: Any


class Scores(NamedTuple):
    """What the loss needs of the distributions over the vocabulary, without the
    distributions.

    Attributes:
      right: float32 [B, T], log-probability of the right token.
      mean: float32 [B, T], mean log-probability of all V tokens.
      likeliest: int32 [B, T], the most likely token.
    """

    right: Any
    mean: Any
    likeliest: Any


def smoothed_cross_entropy(
    prediction: Prediction, targets: Any, *, pad_id: int, smoothing: float
) -> Sums:
    """Masked, label-smoothed cross entropy (Szegedy et al. 2016, section 7).

    The target distribution is (1 - e) at the right token plus e / V everywhere, so the
    loss of a token is -(1 - e) log p(right) - e mean over V of log p.

    Args:
      prediction: of B targets.
      targets: int32 [B, T]; padding does not count.
      pad_id: the padding id.
      smoothing: e, a share from 0 to below 1.
    """
    if prediction.reading is None:
        scores = _generated_scores(prediction.logits, targets)
    else:
        scores = _mixed_scores(prediction.logits, prediction.reading, targets)
    loss = -(1.0 - smoothing) * scores.right - smoothing * scores.mean
    correct = ops.cast(
        ops.equal(scores.likeliest, ops.cast(targets, "int32")), "float32"
    )
    counts = ops.cast(ops.not_equal(targets, pad_id), "float32")  # [B, T]
    return Sums(ops.sum(loss * counts), ops.sum(correct * counts), ops.sum(counts))


def masked_sum(values: Any, targets: Any, *, pad_id: int) -> Any:
    """The sum of values [B, T] over the targets that are no padding, float32."""
    return ops.sum(values * ops.cast(ops.not_equal(targets, pad_id), "float32"))


def _generated_scores(logits: Any, targets: Any) -> Scores:
    """Of logits [B, T, V] and targets [B, T]."""
    read = _read_logits(logits, ops.cast(targets, "int32"), None)
    return Scores(read.right[..., 0], read.mean[..., 0], read.likeliest)


def _mixed_scores(logits: Any, reading: Reading, targets: Any) -> Scores:
    """Of the mixture that `pointer.mix` describes.

    The mixture differs from p_gen P_vocab only at the tokens of the source, so that is
    where log P is worked out:

        mean over V of log P = log p_gen + mean over V of log P_vocab + 1/V sum over the
        source's tokens of log P - log(p_gen P_vocab)

    Args:
      logits: float32 [B, T, V] of the generator.
      reading: what the pointer read.
      targets: [B, T].
    """
    source, targets = ops.cast(reading.source, "int32"), ops.cast(targets, "int32")
    read = _read_logits(logits, targets, source)
    is_same = ops.equal(source[:, :, None], source[:, None])  # [B, S, S]
    is_right = ops.equal(targets[..., None], source[:, None])  # [B, T, S]
    # A token has the mass of all positions that hold it, and is counted at the first of
    # them.
    is_first = ops.equal(
        ops.argmax(is_same, axis=-1), ops.arange(ops.shape(source)[1], dtype="int32")
    )  # [B, S]
    mass = (1.0 - reading.generate) * reading.copy  # [B, T, S]
    log_generate = ops.log(
        ops.maximum(reading.generate, LOWEST_PROBABILITY)
    )  # [B, T, 1]

    def mixed(generated: Any, copied: Any) -> Any:
        return ops.log(ops.maximum(ops.exp(generated) + copied, LOWEST_PROBABILITY))

    generated = log_generate + read.source  # [B, T, S]
    of_source = mixed(generated, ops.matmul(mass, ops.cast(is_same, "float32")))
    right = mixed(
        log_generate + read.right,
        ops.sum(ops.where(is_right, mass, 0.0), axis=-1, keepdims=True),
    )
    more = ops.sum(
        ops.where(is_first[:, None], of_source - generated, 0.0), axis=-1, keepdims=True
    )
    mean = log_generate + read.mean + more / logits.shape[-1]

    is_copied = ops.max(of_source, axis=-1) > (log_generate + read.largest)[..., 0]
    copied_token = ops.take_along_axis(
        source, ops.argmax(of_source, axis=-1), axis=1
    )  # [B, T]
    return Scores(
        right[..., 0], mean[..., 0], ops.where(is_copied, copied_token, read.likeliest)
    )


class LogitsRead(NamedTuple):
    """What was read of logits [B, T, V]: log-probabilities, float32.

    Attributes:
      right: of the right token, [B, T, 1].
      mean: of all tokens, [B, T, 1].
      largest: of the most likely token, [B, T, 1]; no gradient flows through it.
      source: of the tokens of the source, [B, T, S]; None where none were asked for.
      likeliest: int32 [B, T], the most likely token.
    """

    right: Any
    mean: Any
    largest: Any
    source: Any
    likeliest: Any


def _read_logits(logits: Any, targets: Any, source: Any) -> LogitsRead:
    """Reads logits [B, T, V] at targets, int32 [B, T], and at a source, int32 [B, S] or
    None, in few passes over the vocabulary.

    Backwards too: a gradient written down for each part would fill an array of [B, T,
        V] for each, most of them with zeros.
    """
    targets = targets[..., None]
    largest, likeliest = (
        ops.stop_gradient(part) for part in ops.top_k(logits, 1)
    )  # [B, T, 1]

    @ops.custom_gradient
    def read(logits: Any) -> tuple[Any, Any]:
        softmax = ops.softmax(logits, axis=-1)
        best = ops.log(
            ops.take_along_axis(softmax, likeliest, axis=-1)
        )  # at least -log V, so no logarithm of zero
        norm = largest - best
        parts = [
            ops.take_along_axis(logits, targets, axis=-1) - norm,
            ops.mean(logits, axis=-1, keepdims=True) - norm,
            best,
        ]
        if source is not None:
            tokens = ops.broadcast_to(
                source[:, None], (*ops.shape(logits)[:2], ops.shape(source)[1])
            )
            parts.append(ops.take_along_axis(logits, tokens, axis=-1) - norm)

        def gradient(*upstream: Any) -> Any:
            of_right, of_mean, _, *of_source = keras.tree.flatten(
                upstream
            )  # an argument for each, or on JAX one of all
            of_norm = of_right + of_mean
            if of_source:
                of_norm = of_norm + ops.sum(of_source[0], axis=-1, keepdims=True)
            of_logits = of_mean / logits.shape[-1] - softmax * of_norm
            if of_source:
                of_logits = of_logits + spread(of_source[0], source, logits.shape[-1])
            return ops.scatter_update(
                of_logits,
                places(targets),
                ops.reshape(of_right, (-1,)),
                reduction="add",
            )

        return tuple(parts), gradient

    right, mean, best, *of_source = read(logits)
    return LogitsRead(
        right,
        mean,
        best,
        of_source[0] if of_source else None,
        ops.cast(likeliest[..., 0], "int32"),
    )
