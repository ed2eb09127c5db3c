"""How hypotheses and their next tokens are scored."""

from typing import Any, NamedTuple

from keras import ops

from precis.model.search.config import SearchConfig

# The log-probability of a forbidden token. Finite, so that sums stay free of NaN; far
# below every real log-probability.
LOWEST_SCORE = -1e9


class NextTokenScores(NamedTuple):
    """Log-probabilities of the next tokens, log P(v) = logits[v] - norm; the difference
    is not computed for the whole vocabulary.

    Attributes:
      logits: float32 [B, K, V], LOWEST_SCORE or below for forbidden tokens.
      norm: float32 [B, K, 1], log(sum(exp(logits))) before any constraint.
    """

    logits: Any
    norm: Any


def is_possible(log_probs: Any) -> Any:
    """Whether hypotheses hold no forbidden token, bool of the same shape."""
    return log_probs > LOWEST_SCORE / 2


def length_penalty(length: Any, config: SearchConfig) -> Any:
    """The divisor of a hypothesis's log-probability.

    wu ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14); average n^alpha, the
    convention of Hugging Face; none 1.

    Args:
      length: n, the number of tokens including the end token.
      config: alpha and the form.
    """
    length = ops.cast(length, "float32")
    if config.length_penalty_form == "none":
        return ops.ones_like(length)
    if config.length_penalty_form == "wu":
        length = (5.0 + length) / 6.0
    return ops.power(length, config.length_penalty)
