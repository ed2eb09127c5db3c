"""The prediction of a whole target, in the parts that a loss reads.

A loss computes its sums from the parts without joining them over the vocabulary.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.network.pointer import PointerOutput, mix_distributions


class Prediction(NamedTuple):
    """The next tokens of targets, teacher-forced.

    Attributes:
      logits: float32 [B, T, V] of the generator.
      pointer_output: the output of the pointer; None where the distribution of the
          generator is that of the network.
      coverage_loss: float32 [B, T] (See et al. 2017, equation 12), or None without
          coverage.
    """

    logits: Any
    pointer_output: PointerOutput | None
    coverage_loss: Any | None


def log_probs(prediction: Prediction) -> Any:
    """Unnormalised log-probabilities of a prediction, float32 [B, T, V]."""
    if prediction.pointer_output is None:
        return prediction.logits
    p_gen, copy_probabilities, source = prediction.pointer_output
    return mix_distributions(
        p_gen, ops.softmax(prediction.logits), copy_probabilities, source
    )
