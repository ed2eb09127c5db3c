"""Ranking: from one score per candidate to the best candidates of a document."""

from collections.abc import Sequence

import numpy as np

from precis.model.errors import UsageError
from precis.model.keyphrases.candidates import PhraseCandidates, find_candidates


def best_candidates(
    candidates: PhraseCandidates, scores: np.ndarray, count: int
) -> list[int]:
    """The indices of the `count` best candidates, best first.

    Of equal scores the candidate that is earlier in the document is better, then the
    longer one. A candidate whose words are part of a better one is left out. There are
    fewer than `count` if the document does not have enough candidates.

    Args:
      candidates: of the document.
      scores: float [C], higher is better.
      count: at least 1.

    Raises:
      UsageError: `count` is below 1.
    """
    if count < 1:
        raise UsageError(
            f"{count} keyphrases a document were asked for; at least 1 is needed"
        )
    names = candidates.normalised()
    best: list[int] = []
    best_names: list[str] = []
    for index in np.lexsort((-candidates.length, candidates.start, -scores)).tolist():
        name = f" {names[index]} "
        if any(name in better for better in best_names):
            continue
        best.append(index)
        best_names.append(name)
        if len(best) == count:
            break
    return best


def frequent_keyphrases(sentences: Sequence[str], count: int) -> list[str]:
    """The baseline: the most frequent candidates, best first.

    Raises:
      UsageError: `count` is below 1.
    """
    candidates = find_candidates(sentences)
    frequency = np.bincount(candidates.candidate, minlength=len(candidates.start))
    return [
        candidates.surface(index)
        for index in best_candidates(candidates, frequency, count)
    ]
