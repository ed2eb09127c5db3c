"""References as a selector expects them: the probabilities of a document's words and of
its pairs of words.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Pair = tuple[str, str]


class ExpectedReference(NamedTuple):
    """A prediction of the reference of a document.

    Its words may be numbered together with the words of other documents.

    Attributes:
      numbers: the number of each word; V in all.
      sentences: int64 arrays, the words of each sentence of the document.
      words: the distinct words of the document, and the probability that the reference
          has each.
      pairs: its pairs of words, as first x V + second, and their probabilities.
      length: the expected number of words of the reference.
    """

    numbers: Mapping[str, int]
    sentences: Sequence[np.ndarray]
    words: "Probabilities"
    pairs: "Probabilities"
    length: float

    @classmethod
    def of(
        cls, words: Mapping[str, float], pairs: Mapping[Pair, float], length: float
    ) -> "ExpectedReference":
        """Makes a prediction from the probabilities of words and of pairs of them."""
        numbers = dict(zip(words, itertools.count()))
        keys = np.array(
            [
                numbers[first] * len(numbers) + numbers[second]
                for first, second in pairs
            ],
            np.int64,
        )
        order = np.argsort(keys)
        return cls(
            numbers,
            (),
            Probabilities(np.arange(len(words)), np.array([*words.values()], float)),
            Probabilities(keys[order], np.array([*pairs.values()], float)[order]),
            length,
        )

    def number(self, words: Iterable[str]) -> np.ndarray:
        """The numbers of words, int64; -1 for a word that no document has."""
        return np.array([self.numbers.get(word, -1) for word in words], np.int64)

    def of_words(self, words: Iterable[str], other: float = 0.0) -> list[float]:
        """The probability of each word; `other` if it is not in the document."""
        return self.words.of(self.number(words), other).tolist()

    def of_pairs(self, pairs: Iterable[Pair], other: float = 0.0) -> list[float]:
        """The probability of each pair; `other` if it is not in the document."""
        numbers = self.number(itertools.chain.from_iterable(pairs)).reshape(-1, 2)
        keys = numbers[:, 0] * len(self.numbers) + numbers[:, 1]
        keys[(numbers < 0).any(axis=1)] = -1
        return self.pairs.of(keys, other).tolist()

    def members(self, options: Sequence[np.ndarray]) -> "list[Members]":
        """The words and the pairs of options, given by numbers, none of them -1."""
        size = len(self.numbers)
        pairs = [words[:-1] * size + words[1:] for words in options]
        return [self.words.members(options), self.pairs.members(pairs)]


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

    def of(self, keys: np.ndarray, other: float = 0.0) -> np.ndarray:
        """The probability of each key, float64; `other` for one that is not there."""
        if not len(self.keys):
            return np.full(len(keys), other)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.values[places], other)

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
