"""Line confidence: the probability that a line written from a sentence is right, which
means complete, grammatical and true to the sentence.

It is a logistic regression on six numbers:
- the log-probability of the least likely token of the line,
- the number of word pairs of the line that the sentence does not have,
- the probability that the line can stand alone (`text.sentence_confidence`),
- whether it has a relative clause, and whether it ends where the sentence ends,
- the logarithm of the number of words of the sentence.

    sentence     The fraternity said then that it would expel the three students.
    line         The fraternity would expel the three students.
    numbers      -1.0, 1 (`fraternity would`), 0.63, 0, 1, 2.4

The weights were fitted to 665 lines of one news summarizer, each checked by hand, and
are the same for every summarizer. docs/METHODS.md compares the probabilities with
human judgement.
"""

import itertools
import math
from collections.abc import Sequence

from precis.model.rouge import tokenize
from precis.model.text.sentence_confidence import logistic

# The confidence of a sentence without some of its clauses, if the rest can stand alone:
# two readers found 3 and 6 of 150 wrong.
CUT_CONFIDENCE = 0.95
# The intercept, then the weights of the six numbers.
_WEIGHTS = (2.96, 0.55, -0.45, 2.31, -0.54, -0.43, -0.98)
_RELATIVE = frozenset(tokenize("who which that whose"))


def line_confidence(
    min_log_prob: float, telling: float, line: Sequence[str], sentence: Sequence[str]
) -> float:
    """The probability that a line is right, from 0 to 1.

    Args:
      min_log_prob: the log-probability of its least likely token.
      telling: the probability that it can stand alone, of `sentence_confidence`.
      line: its words, as ROUGE tokenizes them.
      sentence: the words of its sentence.
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
