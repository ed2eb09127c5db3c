"""How likely a line is right that was written of a sentence: complete, grammatical and
true to it.

It is the logistic regression of three numbers: the log-probability of the least likely
token of the line, its words that the sentence has less often, and how many words fewer
it has than the sentence.

    sentence     The fraternity said then that it would expel the three students.
    line         The fraternity says it would expel the three students.
    numbers      -1.0, 1 (`says`), 2      ->  0.69

The weights are those of 671 lines by one summarizer of news that were read one by one
against their sentences, of which 69 % were right; every summarizer has them. How the
probabilities agree with readers of later lines stands in docs/QUALITY.md.
"""

import math
from collections import Counter
from collections.abc import Sequence

_LEAST_WEIGHT = 0.84
_NEW_WEIGHT = -1.11
_SHORTER_WEIGHT = -0.046
_BIAS = 2.86


def line_confidence(
    min_log_prob: float, line: Sequence[str], sentence: Sequence[str]
) -> float:
    """The probability that a line is right, from 0 to 1.

    Args:
      min_log_prob: the log-probability of its least likely token.
      line: its words, as ROUGE reads them.
      sentence: those of the sentence.
    """
    new = (Counter(line) - Counter(sentence)).total()
    shorter = len(sentence) - len(line)
    logit = (
        _BIAS
        + _LEAST_WEIGHT * min_log_prob
        + _NEW_WEIGHT * new
        + _SHORTER_WEIGHT * shorter
    )
    return 0.5 * (1.0 + math.tanh(0.5 * logit))  # which does not overflow
