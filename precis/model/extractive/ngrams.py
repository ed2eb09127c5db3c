"""The words and the pairs of words of a document, numbered, with their sentences.

sentences   the flood hit . the town
words       the flood hit town             in the order of first occurrence
cells       the in sentence 0, flood in 0, hit in 0, the in 1, town in 1
"""

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

Gram = Hashable  # a word, or a pair of words


class Ngrams(NamedTuple):
    """The G distinct n-grams of a document of N sentences.

    A cell is an n-gram in a sentence; there are C cells, in the order of the text.

    Attributes:
      grams: the distinct n-grams, in the order of first occurrence.
      counts: int64 [G], the number of occurrences of each n-gram.
      sentences: int64 [C], the sentence of each cell.
      members: int64 [C], the n-gram of each cell.
    """

    grams: list[Gram]
    counts: np.ndarray
    sentences: np.ndarray
    members: np.ndarray


def find_ngrams(sentences: Sequence[Sequence[Gram]]) -> Ngrams:
    """Numbers the n-grams of sentences; a sentence is the sequence of its n-grams."""
    counts = Counter(itertools.chain.from_iterable(sentences))
    numbers = {gram: number for number, gram in enumerate(counts)}
    different = list(map(dict.fromkeys, sentences))
    rows = np.repeat(np.arange(len(different)), list(map(len, different)))
    cells = map(numbers.__getitem__, itertools.chain.from_iterable(different))
    members = np.fromiter(cells, np.int64, len(rows))
    totals = np.fromiter(counts.values(), np.int64, len(counts))
    return Ngrams(list(counts), totals, rows, members)


def find_pairs(sentences: Sequence[Sequence[str]]) -> Ngrams:
    """Numbers the pairs of consecutive words within each tokenized sentence."""
    return find_ngrams([list(itertools.pairwise(sentence)) for sentence in sentences])
