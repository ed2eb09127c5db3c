"""The loss that training minimises, and the sums that it reports.

The distribution of a pointer-generator is a mixture of generating and copying. The loss
is computed from the parts of the mixture, without storing the mixed distribution over
the vocabulary.
"""

from typing import Any, NamedTuple

from precis.model.backend import ops
from precis.model.logits import reduce_logits
from precis.model.network.pointer import (
    LOWEST_PROBABILITY,
    PointerOutput,
    Prediction,
    scatter_to_vocabulary,
)


class Sums(NamedTuple):
    """Sums over the target tokens of a batch, without padding; float32 scalars.

    Totals over batches, divided by the total of `tokens`, are means.

    Attributes:
      loss: the sum of the smoothed loss.
      correct: the number of tokens to which the network gave the highest probability.
      tokens: the number of tokens.
    """

    loss: Any
    correct: Any
    tokens: Any


def smoothed_cross_entropy(
    prediction: Prediction, targets: Any, *, pad_id: int, smoothing: float
) -> Sums:
    """Masked, label-smoothed cross entropy (Szegedy et al. 2016, section 7).

    The target distribution is (1 - e) at the target token plus e / V everywhere. The
    loss of a token is

        -(1 - e) log p(target) - e mean over V of log p

    Args:
      prediction: the prediction for B targets.
      targets: int32 [B, T]; padding is ignored.
      pad_id: the padding id of targets.
      smoothing: e, a share from 0 to below 1.
    """
    tokens = ops.cast(targets, "int32")
    if prediction.pointer_output is None:
        right, mean, _, _, likeliest = _read_logits(prediction.logits, tokens, None)
    else:
        right, mean, likeliest = _mixed_scores(
            prediction.logits, prediction.pointer_output, tokens
        )
    loss = -(1.0 - smoothing) * right[..., 0] - smoothing * mean[..., 0]
    correct = ops.cast(ops.equal(likeliest, tokens), "float32")
    counts = ops.cast(ops.not_equal(targets, pad_id), "float32")  # [B, T]
    return Sums(ops.sum(loss * counts), ops.sum(correct * counts), ops.sum(counts))


def _mixed_scores(
    logits: Any, pointer_output: PointerOutput, targets: Any
) -> tuple[Any, Any, Any]:
    """The scores of the mixture that `pointer.log_probs` describes.

    The mixture P differs from p_gen P_vocab only at the tokens of the source, so log P
    is computed only for these:

        mean over V of log P
            = log p_gen + mean over V of log P_vocab
              + 1/V sum over the source's tokens of (log P - log(p_gen P_vocab))

    Args:
      logits: the generator's logits, float32 [B, T, V].
      pointer_output: the output of the pointer.
      targets: int32 [B, T].

    Returns:
      The log-probability of the target token and the mean of all V tokens, float32
      [B, T, 1] each, and the most likely token, int32 [B, T].
    """
    source = ops.cast(pointer_output.source, "int32")  # [B, S]
    right, mean, largest, of_source, likeliest = _read_logits(logits, targets, source)
    is_same = ops.equal(source[:, :, None], source[:, None])  # [B, S, S]
    is_right = ops.equal(targets[..., None], source[:, None])  # [B, T, S]
    # A token has the mass of all its positions, and counts only at the first one.
    positions = ops.arange(ops.shape(source)[1], dtype="int32")
    is_first = ops.equal(ops.argmax(is_same, axis=-1), positions)  # [B, S]
    mass = (1.0 - pointer_output.p_gen) * pointer_output.copy_probabilities  # [B, T, S]
    generate = ops.maximum(pointer_output.p_gen, LOWEST_PROBABILITY)
    log_generate = ops.log(generate)  # [B, T, 1]

    def mixed(generated: Any, copied: Any) -> Any:
        return ops.log(ops.maximum(ops.exp(generated) + copied, LOWEST_PROBABILITY))

    generated = log_generate + of_source  # [B, T, S]
    source_logs = mixed(generated, ops.matmul(mass, ops.cast(is_same, "float32")))
    right_mass = ops.sum(ops.where(is_right, mass, 0.0), axis=-1, keepdims=True)
    right = mixed(log_generate + right, right_mass)  # [B, T, 1]
    gain = ops.where(is_first[:, None], source_logs - generated, 0.0)  # [B, T, S]
    mean_gain = ops.sum(gain, axis=-1, keepdims=True) / logits.shape[-1]
    mean = log_generate + mean + mean_gain  # [B, T, 1]

    most_generated = (log_generate + largest)[..., 0]  # [B, T]
    is_copied = ops.max(source_logs, axis=-1) > most_generated
    most_copied = ops.argmax(source_logs, axis=-1)
    copied_token = ops.take_along_axis(source, most_copied, axis=1)  # [B, T]
    return right, mean, ops.where(is_copied, copied_token, likeliest)


def _read_logits(
    logits: Any, targets: Any, source: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Log-probabilities of the targets and of the tokens of a source.

    With a custom gradient, there are few passes over the vocabulary; otherwise the
    gradient of each part would be an array [B, T, V], mostly of zeros.

    Args:
      logits: float32 [B, T, V].
      targets: int32 [B, T].
      source: int32 [B, S], or None.

    Returns:
      Log-probabilities, float32: of the target token, [B, T, 1]; the mean over all
      tokens, [B, T, 1]; of the most likely token, [B, T, 1], without gradient; of the
      source's tokens, [B, T, S], or None. Finally the most likely token, int32 [B, T].
    """
    targets = targets[..., None]
    top_values, top_tokens = ops.top_k(logits, 1)
    largest = ops.stop_gradient(top_values)  # [B, T, 1]
    likeliest = ops.stop_gradient(top_tokens)  # [B, T, 1]

    @ops.custom_gradient
    def read(logits: Any) -> tuple[Any, Any]:
        softmax = ops.softmax(logits, axis=-1)
        # The largest probability is at least 1/V, so its logarithm is finite.
        best = ops.log(ops.take_along_axis(softmax, likeliest, axis=-1))
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
            d_right, d_mean, _, *d_source = upstream
            d_norm = d_right + d_mean
            if d_source:
                d_norm = d_norm + ops.sum(d_source[0], axis=-1, keepdims=True)
            d_logits = d_mean / logits.shape[-1] - softmax * d_norm
            if d_source:
                size = logits.shape[-1]
                d_logits = d_logits + scatter_to_vocabulary(d_source[0], source, size)
            return reduce_logits(d_logits, targets, d_right, "add")

        return tuple(parts), gradient

    right, mean, best, *of_source = read(logits)
    likeliest = ops.cast(likeliest[..., 0], "int32")
    return right, mean, best, of_source[0] if of_source else None, likeliest
