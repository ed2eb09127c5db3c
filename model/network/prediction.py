"""What a network says of the next tokens of a whole target, in parts, so that a loss
need not join them over the vocabulary.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.network.pointer import Reading, mix


class Prediction(NamedTuple):
    """The next tokens of targets, teacher-forced.

    Attributes:
      logits: float32 [B, T, V] of the generator.
      reading: what the pointer read, or None: the generator's distribution is the
          network's.
      coverage_loss: float32 [B, T], what the pointer read again (See et al. 2017,
          equation 12), or None without coverage.
    """

    logits: Any
    reading: Reading | None
    coverage_loss: Any | None


def log_probs(prediction: Prediction) -> Any:
    """Unnormalised log-probabilities of a prediction, float32 [B, T, V]."""
    if prediction.reading is None:
        return prediction.logits
    generate, copy, source = prediction.reading
    return mix(generate, ops.softmax(prediction.logits), copy, source)
