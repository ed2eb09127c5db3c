"""Oracle labels: the sentences of an article that match its reference best.

This is the greedy search of Nallapati et al. (2017) in the form of Liu and Lapata
(2019): take the sentence that raises ROUGE-1 F1 + ROUGE-2 F1 most, and repeat until no
sentence raises it. Only n-grams of the reference count, each as often as the reference
has it beyond the sentences already taken:

    reference "a flood hit the town"

    n-grams    a  flood  hit  the  town   a-flood  flood-hit  hit-the  the-town
    remaining  1    1     1    1    1        1         1         1        1
    sentence "the town saw the flood"
    counts     0    1     0    2    1        0         0         0        1
    gains      0    1     0    1    1        0         0         0        1

Only counts above 0 are stored, as cells, so that the time and memory of a step are
proportional to the length of the article.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.rouge import tokenizer

_MIN_GAIN = 1e-9  # a smaller gain is a rounding error


class OracleSentence(NamedTuple):
    """A sentence of the oracle summary.

    Attributes:
      place: the index of the sentence in the document.
      gain: the increase of ROUGE-1 F1 + ROUGE-2 F1 when the search took it.
    """

    place: int
    gain: float


def oracle_sentences(
    sentences: Sequence[str],
    reference: str,
    max_sentences: int,
    language: str | None = None,
) -> list[OracleSentence]:
    """The oracle summary of a document, in the order in which the search takes the
    sentences. If sentences are equally good, it takes the earlier.

    Pairs of words count only within a sentence. ROUGE-2 of the joined text would also
    count the pair at each break between two sentences.

    Args:
      sentences: all sentences of the document.
      reference: the reference.
      max_sentences: the maximum number of sentences.
      language: the language of the document, which decides how ROUGE tokenizes.
    """
    tokenize = tokenizer(language, reference)
    tokens = list(map(tokenize, sentences))
    wanted = Counter(_words_and_pairs(tokenize(reference)))
    numbers = {gram: number for number, gram in enumerate(wanted)}
    # How often the reference has each n-gram beyond the sentences already taken.
    remaining = np.array(list(wanted.values()), np.int64)  # [G]
    is_pair = np.array([isinstance(gram, tuple) for gram in wanted], np.int64)  # [G]
    cells = Counter(
        (row, numbers[gram])
        for row, words in enumerate(tokens)
        for gram in _words_and_pairs(words)
        if gram in numbers
    )
    rows, grams = np.array(list(cells), np.int64).reshape(-1, 2).T  # [C] each
    counts = np.array(list(cells.values()), np.int64)  # [C]
    # Words and pairs are two rows of one table of the sentences.
    places = is_pair[grams] * len(tokens) + rows  # [C]
    words = np.array([len(words) for words in tokens], np.float64)
    lengths = np.stack([words, np.maximum(words - 1, 0)])  # [2, N]
    of_reference = np.bincount(is_pair, remaining, 2)[:, None]  # [2, 1]
    totals = np.maximum(of_reference, 1)
    hits = np.zeros((2, 1))  # n-grams that the taken sentences share with the reference
    length = np.zeros((2, 1))  # n-grams of the taken sentences
    oracle: list[OracleSentence] = []
    best = 0.0
    is_open = np.ones(len(sentences), bool)
    while len(oracle) < max_sentences and is_open.any():
        shared = np.minimum(counts, remaining[grams])
        gains = np.bincount(places, shared, 2 * len(tokens)).reshape(2, -1)  # [2, N]
        f1 = 2 * (hits + gains) / (length + lengths + totals)  # [2, N]
        values = np.where(is_open, f1.sum(axis=0), -1.0)  # [N]
        place = int(np.argmax(values > values.max() - _MIN_GAIN))
        if values[place] < best + _MIN_GAIN:
            break
        oracle.append(OracleSentence(place, float(values[place] - best)))
        best = values[place]
        # Each n-gram of the sentence is in one cell, so no index is repeated.
        taken = np.flatnonzero(rows == place)
        remaining[grams[taken]] -= shared[taken]
        hits = hits + gains[:, [place]]
        length = length + lengths[:, [place]]
        is_open[place] = False
    return oracle


def _words_and_pairs(words: Sequence[str]) -> Iterator[object]:
    return itertools.chain(words, itertools.pairwise(words))
