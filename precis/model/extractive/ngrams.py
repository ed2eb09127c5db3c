"""The words of many documents as numbers, and their n-grams with their sentences.

documents       the flood hit . the town | a flood
vocabulary      the flood hit town a
words            0   1    2      0   3     4   1
sentences        0   0    0      1   1     2   2

The words of the first document are `the` (twice, in the sentences 0 and 1), `flood`,
`hit` and `town`; its pairs are `the flood`, `flood hit` and `the town`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.text.words import sums_before

Gram = str | tuple[str, ...]  # a word, or a pair of words


class NumberedWords(NamedTuple):
    """The words of D documents with N sentences.

    Attributes:
      vocabulary: the number of each of the V distinct words, in their order.
      words: int64 [W], the number of each word.
      sentences: int64 [W], the sentence of each word, numbered over all documents.
      first_sentences: int64 [D + 1], where the sentences of each document begin.
    """

    vocabulary: Mapping[str, int]
    words: np.ndarray
    sentences: np.ndarray
    first_sentences: np.ndarray

    @property
    def documents(self) -> np.ndarray:
        """The document of each sentence, int64 [N]."""
        sizes = np.diff(self.first_sentences)
        return np.repeat(np.arange(len(sizes)), sizes)

    def by_sentence(self) -> list[list[np.ndarray]]:
        """The words of each sentence of each document."""
        lengths = np.bincount(self.sentences, minlength=int(self.first_sentences[-1]))
        borders = itertools.pairwise(sums_before(lengths).tolist())
        rows = iter([self.words[start:end] for start, end in borders])
        sizes = np.diff(self.first_sentences).tolist()
        return [list(itertools.islice(rows, size)) for size in sizes]

    @property
    def counts(self) -> np.ndarray:
        """The number of words of each document, int64 [D]."""
        of_words = self.documents[self.sentences]
        return np.bincount(of_words, minlength=len(self.first_sentences) - 1)


class Ngrams(NamedTuple):
    """The G distinct n-grams of each document; documents share K kinds of n-grams.

    N-grams are in the order of their documents, then of their kinds. A cell is an
    n-gram in a sentence; there are C cells, in the order of n-grams, then sentences.

    Attributes:
      kinds: int64 [K, n], the numbers of the words of each kind.
      documents, kind_of: int64 [G], the document and the kind of each n-gram.
      counts: int64 [G], how often the document has it.
      cells: int64 [C], the sentence of each cell, numbered over all documents.
      starts: int64 [G], the first cell of each n-gram.
      by_first: int64 [G], the n-grams in the order of their first occurrences.
    """

    kinds: np.ndarray
    documents: np.ndarray
    kind_of: np.ndarray
    counts: np.ndarray
    cells: np.ndarray
    starts: np.ndarray
    by_first: np.ndarray

    @property
    def size(self) -> int:
        """The number of words of an n-gram."""
        return self.kinds.shape[1]

    def kind_names(self, vocabulary: Iterable[str]) -> list[Gram]:
        """The n-gram of each kind."""
        words = list(vocabulary)
        first, *second = self.kinds.T.tolist()
        if not second:
            return [words[each] for each in first]
        return [(words[a], words[b]) for a, b in zip(first, *second, strict=True)]

    def names(self, vocabulary: Iterable[str]) -> list[Gram]:
        """The n-grams in the order of their first occurrences."""
        kinds = self.kind_names(vocabulary)
        return [kinds[kind] for kind in self.kind_of[self.by_first].tolist()]


def number_words(documents: Sequence[Sequence[Sequence[str]]]) -> NumberedWords:
    """Numbers the words of documents; a sentence is the sequence of its words."""
    sentences = list(itertools.chain.from_iterable(documents))
    words = list(itertools.chain.from_iterable(sentences))
    numbers = dict(zip(dict.fromkeys(words), itertools.count()))
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    return NumberedWords(
        numbers,
        np.fromiter(map(numbers.__getitem__, words), np.int64, len(words)),
        np.repeat(np.arange(len(sentences)), lengths),
        sums_before(np.fromiter(map(len, documents), np.int64, len(documents))),
    )


def find_ngrams(words: NumberedWords, size: int) -> Ngrams:
    """Finds the words (size 1) or the pairs of consecutive words within each sentence
    (size 2) of documents.
    """
    rows, of_kinds = words.sentences, words.words
    kinds = np.arange(len(words.vocabulary))[:, None]
    if size > 1:
        places = np.flatnonzero(rows[1:] == rows[:-1])
        rows, total = rows[places], max(len(kinds), 1)
        keys = of_kinds[places] * total + of_kinds[places + 1]
        keys, of_kinds = np.unique(keys, return_inverse=True)
        kinds = np.stack(np.divmod(keys, total), axis=1)
    # One number holds the n-gram and the place, so that numpy sorts fast.
    shift = len(rows).bit_length()
    keys = words.documents[rows] * len(kinds) + of_kinds
    keys = np.sort(keys << shift | np.arange(len(rows)))
    places = keys & ((1 << shift) - 1)
    keys >>= shift
    rows = rows[places]
    is_first = np.diff(keys, prepend=-1) > 0
    is_cell = is_first | (np.diff(rows, prepend=-1) != 0)
    starts = np.flatnonzero(is_first)
    documents, kind_of = np.divmod(keys[starts], max(len(kinds), 1))
    return Ngrams(
        kinds,
        documents,
        kind_of,
        counts=np.diff(starts, append=len(rows)),
        cells=rows[is_cell],
        starts=np.flatnonzero(is_first[is_cell]),
        by_first=np.argsort(places[starts]),
    )
