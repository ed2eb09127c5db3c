"""Oracle labels: the sentences of an article that make the extractive summary closest
to its reference.

This is the greedy search of Nallapati et al. (2017) in the form of Liu and Lapata
(2019): take the sentence that raises ROUGE-1 F1 + ROUGE-2 F1 most, then the next one,
until no sentence raises it. Only n-grams of the reference count, each as often as the
reference has it beyond the sentences already taken:

    reference "a flood hit the town"

    n-grams    a  flood  hit  the  town   a-flood  flood-hit  hit-the  the-town
    remaining  1    1     1    1    1        1         1         1        1
    sentence "the town saw the flood"
    counts     0    1     0    2    1        0         0         0        1
    gains      0    1     0    1    1        0         0         0        1

Only counts above 0 are stored, so that a step of the search takes time and memory in
proportion to the words of the article.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.rouge import tokenize

_MIN_GAIN = 1e-9  # a smaller gain is a rounding error


class OracleSentence(NamedTuple):
    """A sentence of the oracle summary.

    Attributes:
      place: the index of the sentence in the document.
      gain: the increase of ROUGE-1 F1 + ROUGE-2 F1 when the search took it.
    """

    place: int
    gain: float


class _NgramCounts(NamedTuple):
    """The n-grams of a reference, numbered, and their counts in the sentences.

    Attributes:
      remaining: int64 [G]; the count of each n-gram in the reference, minus its count
          in the sentences already taken, at least 0. `take` changes it.
      rows: int64 [C]; a sentence.
      grams: int64 [C]; an n-gram that the sentence has.
      counts: int64 [C]; how often the sentence has it.
      total: the number of n-grams of the reference with repetitions, at least 1.
    """

    remaining: np.ndarray
    rows: np.ndarray
    grams: np.ndarray
    counts: np.ndarray
    total: int

    def gains(self, sentences: int) -> np.ndarray:
        """How many more n-grams the summary would share with the reference, for each
        sentence; float64 [N].
        """
        shared = np.minimum(self.counts, self.remaining[self.grams])
        return np.bincount(self.rows, shared, sentences)

    def take(self, sentence: int) -> None:
        """Adds a sentence to the summary."""
        # Each n-gram of the sentence is in one cell, so no index is repeated.
        cells = np.flatnonzero(self.rows == sentence)
        grams = self.grams[cells]
        self.remaining[grams] -= np.minimum(self.counts[cells], self.remaining[grams])


def oracle_sentences(
    sentences: Sequence[str], reference: str, max_sentences: int
) -> list[OracleSentence]:
    """The oracle summary of a document, in the order in which the search takes the
    sentences; of equally good sentences it takes the earlier.

    Pairs of words count within a sentence only. ROUGE-2 of the joined text also counts
    the pair at each break between two sentences; that is the only difference.

    Args:
      sentences: all sentences of the document.
      reference: the reference summary.
      max_sentences: how many sentences are taken at most.
    """
    tokens = [tokenize(sentence) for sentence in sentences]
    reference_tokens = tokenize(reference)
    by_size = [
        _count_ngrams(tokens, reference_tokens),
        _count_ngrams(list(map(_pairs, tokens)), _pairs(reference_tokens)),
    ]
    word_counts = [len(words) for words in tokens]
    pair_counts = [max(count - 1, 0) for count in word_counts]
    lengths = np.array([word_counts, pair_counts], np.float64)  # [2, N]
    totals = np.array([[counts.total] for counts in by_size], np.float64)  # [2, 1]
    hits = np.zeros((2, 1))  # n-grams that the taken sentences share with the reference
    length = np.zeros((2, 1))  # n-grams of the taken sentences
    oracle: list[OracleSentence] = []
    best = 0.0
    is_open = np.ones(len(sentences), bool)
    while len(oracle) < max_sentences and is_open.any():
        gains = np.stack([counts.gains(len(sentences)) for counts in by_size])
        f1 = 2 * (hits + gains) / (length + lengths + totals)  # [2, N]
        values = np.where(is_open, f1.sum(axis=0), -1.0)  # [N]
        place = int(np.argmax(values > values.max() - _MIN_GAIN))
        if values[place] < best + _MIN_GAIN:
            break
        oracle.append(OracleSentence(place, float(values[place] - best)))
        best = values[place]
        for counts in by_size:
            counts.take(place)
        hits = hits + gains[:, [place]]
        length = length + lengths[:, [place]]
        is_open[place] = False
    return oracle


def _pairs(tokens: Sequence[str]) -> list[tuple[str, str]]:
    return list(itertools.pairwise(tokens))


def _count_ngrams(
    sentences: Sequence[Sequence[object]], reference: Sequence[object]
) -> _NgramCounts:
    """Counts the n-grams of the reference in each sentence."""
    numbers = {gram: number for number, gram in enumerate(dict.fromkeys(reference))}
    # A `Counter` has the keys in the order of `numbers`.
    remaining = np.array(list(Counter(reference).values()), np.int64)
    cells = Counter(
        (row, numbers[gram])
        for row, grams in enumerate(sentences)
        for gram in grams
        if gram in numbers
    )
    rows, grams = np.array(list(cells), np.int64).reshape(-1, 2).T
    counts = np.array(list(cells.values()), np.int64)
    return _NgramCounts(remaining, rows, grams, counts, max(len(reference), 1))
