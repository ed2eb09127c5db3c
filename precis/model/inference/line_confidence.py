"""How likely a line is right that was written of a sentence: complete, grammatical and
true to it.

It is a logistic regression on six numbers: the log-probability of the least likely
token of the line, how many words it puts side by side that stand apart in the sentence
or are not there, how likely it tells something by itself (`text.sentence_confidence`),
whether it has a relative clause, whether it ends where the sentence ends, and the
logarithm of the words of the sentence.

    sentence     The fraternity said then that it would expel the three students.
    line         The fraternity would expel the three students.
    numbers      -1.0, 1 (`fraternity would`), 0.63, 0, 1, 2.4

The weights are those of 665 lines by one summarizer of news that were read one by one
against their sentences, of which 73 % were right; every summarizer has them. How the
probabilities agree with readers stands in docs/METHODS.md.
"""

import itertools
import math
from collections.abc import Sequence

from precis.model.rouge import tokenize
from precis.model.text.sentence_confidence import logistic

# That of a sentence without some of its clauses, where what is left tells something:
# two readings found 3 and 6 of 150 wrong.
CUT_CONFIDENCE = 0.95
# Of 1 and the six numbers.
_WEIGHTS = (2.96, 0.55, -0.45, 2.31, -0.54, -0.43, -0.98)
_RELATIVE = frozenset(tokenize("who which that whose"))


def line_confidence(
    min_log_prob: float, telling: float, line: Sequence[str], sentence: Sequence[str]
) -> float:
    """The probability that a line is right, from 0 to 1.

    Args:
      min_log_prob: the log-probability of its least likely token.
      telling: how likely it tells something by itself.
      line: its words, as ROUGE reads them.
      sentence: those of the sentence.
    """
    beside = frozenset(itertools.pairwise(sentence))
    numbers = (
        1.0,
        min_log_prob,
        sum(pair not in beside for pair in itertools.pairwise(line)),
        telling,
        not _RELATIVE.isdisjoint(line),
        line[-1:] == sentence[-1:],
        math.log(max(len(sentence), 1)),
    )
    return logistic(_WEIGHTS, numbers)
