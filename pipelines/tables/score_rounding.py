"""How the scores in the rows are rounded.

The last bits of a network's score depend on the documents that were computed beside it
and on the processor. Rounded scores are equal but for those few that lie at a border of
two rounded values. What is decided by a score is decided by the rounded one, so that
the columns of a row agree with each other.
"""

# A network's scores differ by some 1e-6 of their size from batch to batch. One
# significant digit more would make ten times as many rounded scores differ.
SCORE_DIGITS = 4
# A margin is the difference of two scores, so its error does not shrink with it.
MARGIN_DECIMALS = 3


def round_score(score: float) -> float:
    """A score with SCORE_DIGITS significant digits."""
    return float(f"{score:.{SCORE_DIGITS - 1}e}")


def round_margin(margin: float | None) -> float | None:
    """A difference of two scores with MARGIN_DECIMALS decimals; None stays None."""
    return None if margin is None else round(margin, MARGIN_DECIMALS)
