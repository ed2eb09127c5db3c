"""Ranking: from one score a candidate to the best of a document, without those that a
better one contains.
"""

from collections.abc import Sequence

import numpy as np

from precis.model.errors import UsageError
from precis.model.keyphrases.candidates import Candidates, find_candidates


def best_candidates(
    candidates: Candidates, scores: np.ndarray, count: int
) -> list[int]:
    """The positions of the `count` best candidates, best first; of equal scores the
    earlier in the document, then the longer.

    A candidate whose words stand within a better one is left out, as it says no more.
    All, if there are fewer.

    Args:
      candidates: the document's.
      scores: float [C], higher is better.
      count: how many to take.

    Raises:
      UsageError: `count` is below 1.
    """
    if count < 1:
        raise UsageError(
            f"{count} keyphrases a document were asked for; at least 1 is needed"
        )
    names = candidates.normalised()
    chosen: list[int] = []
    taken: list[str] = []
    for index in np.lexsort((-candidates.length, candidates.start, -scores)).tolist():
        name = f" {names[index]} "
        if any(name in other for other in taken):
            continue
        chosen.append(index)
        taken.append(name)
        if len(chosen) == count:
            break
    return chosen


def frequent_keyphrases(sentences: Sequence[str], count: int) -> list[str]:
    """The baseline: the candidates that occur most often, best first.

    Raises:
      UsageError: `count` is below 1.
    """
    candidates = find_candidates(sentences)
    frequency = np.bincount(candidates.candidate, minlength=len(candidates.start))
    return [
        candidates.surface(index)
        for index in best_candidates(candidates, frequency, count)
    ]
