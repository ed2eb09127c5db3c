"""References as a selector expects them: the probabilities of a document's words and of
its pairs of words.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.extractive.ngrams import Gram


class ExpectedReference(NamedTuple):
    """A prediction of the reference of a document.

    Attributes:
      words: the probability that the reference has a word, by word of the document.
      pairs: the probability that it has a pair of words, by pair.
      length: the expected number of words of the reference.
    """

    words: Mapping[Gram, float]
    pairs: Mapping[Gram, float]
    length: float

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability of each pair; 0 for one that is not in the document."""
        return [self.pairs.get(pair, 0.0) for pair in pairs]

    def members(self, options: Sequence[Sequence[str]]) -> "list[Members]":
        """The words and the pairs of words of options."""
        pairs = [list(itertools.pairwise(words)) for words in options]
        return [_members(options, self.words), _members(pairs, self.pairs)]


class NumberedReference(NamedTuple):
    """The same, for a document whose words are numbered together with those of others.

    Attributes:
      numbers: the number of each word; V in all.
      sentences: int64 arrays, the words of each sentence of the document.
      words: the distinct words of the document, and their probabilities.
      pairs: its pairs of words, as first x V + second, and their probabilities.
      length: the expected number of words of the reference.
    """

    numbers: Mapping[str, int]
    sentences: Sequence[np.ndarray]
    words: "Probabilities"
    pairs: "Probabilities"
    length: float

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """As of `ExpectedReference`."""
        numbers, size = self.numbers, len(self.numbers)
        keys = [
            numbers[first] * size + numbers[second]
            if first in numbers and second in numbers
            else -1
            for first, second in pairs
        ]
        return self.pairs.of(np.array(keys, np.int64)).tolist()

    def members(self, options: Sequence[np.ndarray]) -> "list[Members]":
        """As of `ExpectedReference`; an option is the numbers of its words."""
        size = len(self.numbers)
        pairs = [words[:-1] * size + words[1:] for words in options]
        return [self.words.members(options), self.pairs.members(pairs)]

    def named(self) -> ExpectedReference:
        """The prediction by words."""
        vocabulary = list(self.numbers)
        size = max(len(vocabulary), 1)
        words = map(vocabulary.__getitem__, self.words.keys.tolist())
        pairs = (
            (vocabulary[key // size], vocabulary[key % size])
            for key in self.pairs.keys.tolist()
        )
        return ExpectedReference(
            dict(zip(words, self.words.values.tolist(), strict=True)),
            dict(zip(pairs, self.pairs.values.tolist(), strict=True)),
            self.length,
        )


class Members(NamedTuple):
    """Which of O options have which of G n-grams.

    Attributes:
      has: float64 [O, G], 1 or 0.
      importance: float64 [G], the probability of each n-gram.
    """

    has: np.ndarray
    importance: np.ndarray


class Probabilities(NamedTuple):
    """The probabilities of n-grams.

    Attributes:
      keys: int64 [G], the n-grams, ascending.
      values: float64 [G].
    """

    keys: np.ndarray
    values: np.ndarray

    def of(self, keys: np.ndarray) -> np.ndarray:
        """The probability of each key, float64; 0 for one that is not there."""
        if not len(self.keys):
            return np.zeros(len(keys))
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.values[places], 0.0)

    def members(self, options: Sequence[np.ndarray]) -> Members:
        """The n-grams of options, in the order of their first occurrences."""
        rows = np.repeat(np.arange(len(options)), list(map(len, options)))
        keys = np.concatenate([*options, np.zeros(0, np.int64)])
        distinct, first, of_keys = np.unique(
            keys, return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        has = np.zeros((len(options), len(order)))
        has[rows, places[of_keys]] = 1.0
        return Members(has, self.of(distinct[order]))


def _members(
    options: Sequence[Sequence[Gram]], importance: Mapping[Gram, float]
) -> Members:
    """The n-grams of options, in the order of their first occurrences."""
    grams = dict.fromkeys(itertools.chain.from_iterable(options))
    numbers = dict(zip(grams, itertools.count()))
    members = np.zeros((len(options), len(numbers)))
    for row, of_option in zip(members, options, strict=True):
        row[list(map(numbers.__getitem__, of_option))] = 1.0
    return Members(members, np.array([importance.get(gram, 0.0) for gram in numbers]))


Reference = ExpectedReference | NumberedReference
