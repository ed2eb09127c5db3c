"""Oracle labels: which sentences of an article make the extractive summary that is
closest to its reference.

The greedy search of Nallapati et al. (2017) as Liu and Lapata (2019) use it: take the
sentence that raises ROUGE-1 F1 + ROUGE-2 F1 most, then the next, until none raises it
any more. Only n-grams of the reference count, and each only as often as it is still
left over:

    reference  "a flood hit the town"      n-grams   a flood hit the town | a-flood flood-hit hit-the the-town      left   1 each
    sentence   "the town saw the flood"    counts    0   1    0   2   1   |    0       0        0        1          gains  3 + 1

Counts that are not 0 are kept, so that a step of the search takes time and memory in
proportion to the words of the article.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.rouge import tokenize

_LEAST_GAIN = 1e-9  # a smaller gain is rounding


class Pick(NamedTuple):
    """A sentence of the oracle: its place in the document, and by how much it raised
    ROUGE-1 F1 + ROUGE-2 F1.
    """

    place: int
    gain: float


class _Counts(NamedTuple):
    """The n-grams of a reference, numbered, and how often each sentence has them.

    Attributes:
      left: int64 [G]; how often the reference has each of its n-grams besides those in
          sentences that are taken.
      rows, grams, counts: int64 [C] each; a sentence, an n-gram that it has, and how
          often.
      total: n-grams of the reference, with repetitions, at least 1.
    """

    left: np.ndarray
    rows: np.ndarray
    grams: np.ndarray
    counts: np.ndarray
    total: int

    def gains(self, sentences: int) -> np.ndarray:
        """How many n-grams more the summary would share with the reference, for each
        sentence; float64 [N].
        """
        return np.bincount(
            self.rows, np.minimum(self.counts, self.left[self.grams]), sentences
        )

    def take(self, sentence: int) -> None:
        """Takes a sentence into the summary."""
        own = np.flatnonzero(self.rows == sentence)
        self.left[self.grams[own]] -= np.minimum(
            self.counts[own], self.left[self.grams[own]]
        )  # each n-gram stands there once


def oracle_sentences(
    sentences: Sequence[str], reference: str, max_sentences: int
) -> list[Pick]:
    """The oracle of a document, in the order in which the search takes the sentences;
    of equal ones it takes the earlier.

    Pairs of words count within a sentence, not across the break between two, which is
    all that ROUGE-2 of the joined text has besides.

    Args:
      sentences: all of the document.
      reference: the summary to come close to.
      max_sentences: how many are taken at most.
    """
    tokens = [tokenize(sentence) for sentence in sentences]
    target = tokenize(reference)
    kinds = [_count(tokens, target), _count(list(map(_pairs, tokens)), _pairs(target))]
    lengths = np.array(
        [[len(own) for own in tokens], [max(len(own) - 1, 0) for own in tokens]],
        np.float64,
    )  # [2, N]
    totals = np.array([[kind.total] for kind in kinds], np.float64)
    hits, length = np.zeros((2, 1)), np.zeros((2, 1))  # of the sentences that are taken
    picks: list[Pick] = []
    best = 0.0
    is_open = np.ones(len(sentences), bool)
    while len(picks) < max_sentences and is_open.any():
        gains = np.stack([kind.gains(len(sentences)) for kind in kinds])
        values = np.where(
            is_open,
            (2 * (hits + gains) / (length + lengths + totals)).sum(axis=0),
            -1.0,
        )  # [N]
        place = int(np.argmax(values > values.max() - _LEAST_GAIN))
        if values[place] < best + _LEAST_GAIN:
            break
        picks.append(Pick(place, float(values[place] - best)))
        best = values[place]
        for kind in kinds:
            kind.take(place)
        hits, length = hits + gains[:, [place]], length + lengths[:, [place]]
        is_open[place] = False
    return picks


def _pairs(tokens: Sequence[str]) -> list[tuple[str, str]]:
    return list(itertools.pairwise(tokens))


def _count(
    sentences: Sequence[Sequence[object]], reference: Sequence[object]
) -> _Counts:
    """Counts the n-grams of the reference in each sentence."""
    numbers = {gram: number for number, gram in enumerate(dict.fromkeys(reference))}
    left = np.array(
        list(Counter(reference).values()), np.int64
    )  # in the order of `numbers`
    cells = Counter(
        (row, numbers[gram])
        for row, grams in enumerate(sentences)
        for gram in grams
        if gram in numbers
    )
    rows, grams = np.array(list(cells), np.int64).reshape(-1, 2).T
    return _Counts(
        left,
        rows,
        grams,
        np.array(list(cells.values()), np.int64),
        max(len(reference), 1),
    )
