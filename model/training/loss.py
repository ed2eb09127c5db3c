"""What training makes small and what it reports."""

from typing import Any, NamedTuple

from keras import ops


class Sums(NamedTuple):
    """Sums over the tokens of a batch that are no padding, float32 scalars: add them up over batches, then divide by `tokens`."""

    loss: Any
    correct: Any
    tokens: Any


def smoothed_cross_entropy(logits: Any, targets: Any, *, pad_id: int, smoothing: float) -> Sums:
    """Masked, label-smoothed cross entropy (Szegedy et al. 2016, section 7).

    The target distribution is (1 - e) at the right token plus e / V everywhere, so the loss of a token is
    -(1 - e) log p(right) - e mean over V of log p.

    Args:
      logits: float32 [B, T, V].
      targets: int32 [B, T]; padding does not count.
      pad_id: the padding id.
      smoothing: e, a share from 0 to below 1.
    """
    log_probs = ops.log_softmax(logits, axis=-1)
    right = ops.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]  # [B, T]
    loss = -(1.0 - smoothing) * right
    if smoothing:
        loss = loss - smoothing * ops.mean(log_probs, axis=-1)
    counts = ops.cast(ops.not_equal(targets, pad_id), "float32")  # [B, T]
    correct = ops.cast(ops.equal(ops.cast(ops.argmax(logits, axis=-1), targets.dtype), targets), "float32")
    return Sums(ops.sum(loss * counts), ops.sum(correct * counts), ops.sum(counts))
