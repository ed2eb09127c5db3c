"""The prediction of a whole target, in the parts that a loss reads.

A loss computes its sums from the parts without joining them over the vocabulary.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.network.pointer import Reading, mix


class Prediction(NamedTuple):
    """The next tokens of targets, teacher-forced.

    Attributes:
      logits: float32 [B, T, V] of the generator.
      reading: the output of the pointer; None where the distribution of the
          generator is that of the network.
      coverage_loss: float32 [B, T] (See et al. 2017, equation 12), or None without
          coverage.
    """

    logits: Any
    reading: Reading | None
    coverage_loss: Any | None


def log_probs(prediction: Prediction) -> Any:
    """Unnormalised log-probabilities of a prediction, float32 [B, T, V]."""
    if prediction.reading is None:
        return prediction.logits
    p_gen, copy_probabilities, source = prediction.reading
    return mix(p_gen, ops.softmax(prediction.logits), copy_probabilities, source)
