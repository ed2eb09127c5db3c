"""The terms of a document: the stems of its words, without stop words and numbers.

A word that has a term is called a content word. The arrays of three sentences:

    sentences           "The flood reached it."   "Floods, in 2014!"   "Why?"
    words                the flood reached it      floods in 2014       why
    rows                   0     0       0  0           1  1    1         2
    content_positions            1       2              4
    content_terms                0       1              0
    cells               flood in sentences 0 and 1, reached in 0, once each
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from precis.model.extractive.threads import SINGLE_THREAD_MULTIPLICATIONS
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words

# The matrices of a document up to this size are dense, at most 8 MB each, and every
# sentence is compared with every other. Larger documents have sparse matrices.
_SMALL_SENTENCES = 128
_SMALL_CELLS = 1_000_000
_CACHED_CHUNKS = 200_000
_CACHED_CHUNK_CHARACTERS = 40
_CACHED_DOCUMENTS = 4
# A separator between the sentences of a document, so that its text is split in one
# call. It is never part of a word.
_SEPARATOR = "\0"
_SEPARATOR_NUMBER = 1
_SEPARATOR_HASH = np.int64(_SEPARATOR_NUMBER).tobytes()
_NO_TERM = np.int64(0).tobytes()


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """The terms of N sentences.

    The V different terms are numbered from 0, in the order of the hashes of their
    stems.

    Attributes:
      sentences: N.
      vocabulary: V.
      rows: int64 [words], the sentence of each word.
      content_positions: int64 [content words], the index of each content word in
          `rows`.
      content_terms: int64 [content words], the term of each content word.
      cells: every pair of a sentence and a term that occurs in it, with the number of
          occurrences: int64, int64 and float64 [cells], ordered by term, then
          sentence.
    """

    sentences: int
    vocabulary: int
    rows: np.ndarray
    content_positions: np.ndarray
    content_terms: np.ndarray
    cells: tuple[np.ndarray, np.ndarray, np.ndarray]

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """The number of content words in each sentence, int64 [N]."""
        return np.bincount(self.rows[self.content_positions], minlength=self.sentences)

    @functools.cached_property
    def frequencies(self) -> np.ndarray:
        """The number of occurrences of each term in the document, int64 [V]."""
        return np.bincount(self.content_terms, minlength=self.vocabulary)

    @functools.cached_property
    def sentence_frequencies(self) -> np.ndarray:
        """The number of sentences with each term, int64 [V]."""
        return np.bincount(self.cells[1], minlength=self.vocabulary)

    @functools.cached_property
    def idf(self) -> np.ndarray:
        """The inverse sentence frequency of each term, float64 [V].

        It is log(N / (1 + n)) for a term of n sentences, as in sumy: 0 if all
        sentences but one have the term, and negative if all have it. A cosine squares
        it.
        """
        return np.log(self.sentences / (1.0 + self.sentence_frequencies))

    @functools.cached_property
    def unit_values(self) -> np.ndarray:
        """The tf-idf of each cell, with every sentence scaled to length 1; float64
        [cells].

        The inner product of two such sentence vectors is the cosine of Erkan and Radev
        (2004), equation 1.
        """
        rows, terms, counts = self.cells
        values = counts * self.idf[terms]
        norms = np.sqrt(np.bincount(rows, values * values, self.sentences))
        norms[norms == 0.0] = 1.0
        return values / norms[rows]

    def sum_words(self, weights: np.ndarray) -> np.ndarray:
        """The sum of the weights of each sentence's words, float64 [N].

        Args:
          weights: of the terms, [V].
        """
        sums = np.bincount(
            self.rows[self.content_positions],
            weights[self.content_terms],
            self.sentences,
        )
        # `bincount` returns integers for a document without content words.
        return sums.astype(np.float64)

    @property
    def is_small(self) -> bool:
        """Whether matrices are dense and all pairs of sentences are compared."""
        return (
            self.sentences <= _SMALL_SENTENCES
            and self.sentences * self.vocabulary <= _SMALL_CELLS
        )

    def matrix(self, values: np.ndarray) -> "np.ndarray | scipy.sparse.csr_array":
        """The matrix of the cells, float64 [N, V]: dense for a small document, else
        sparse.

        Args:
          values: of the cells.
        """
        rows, terms, _ = self.cells
        if self.is_small:
            dense = np.zeros((self.sentences, self.vocabulary))
            dense[rows, terms] = values
            return dense
        return scipy.sparse.csr_array(
            (values, (rows, terms)), shape=(self.sentences, self.vocabulary)
        )

    def products(self, values: np.ndarray) -> np.ndarray:
        """The inner products of all pairs of sentences, float64 [N, N]; for small
        documents.

        Most terms occur in a single sentence. They change only the product of this
        sentence with itself, so the matrix product leaves them out.

        Args:
          values: of the cells.
        """
        rows, terms, _ = self.cells
        is_shared = self.sentence_frequencies > 1
        columns = np.cumsum(is_shared) - 1
        is_shared_cell = is_shared[terms]
        shared = np.zeros((self.sentences, int(np.count_nonzero(is_shared))))
        shared_rows = rows[is_shared_cell]
        shared_columns = columns[terms[is_shared_cell]]
        shared[shared_rows, shared_columns] = values[is_shared_cell]
        step = max(1, SINGLE_THREAD_MULTIPLICATIONS // max(self.sentences, 1) ** 2)
        products = shared[:, :step] @ shared[:, :step].T
        for first in range(step, shared.shape[1], step):
            block = shared[:, first : first + step]
            products += block @ block.T
        products.flat[:: self.sentences + 1] = np.bincount(
            rows, values * values, self.sentences
        )
        return products


class _ChunkCache(dict[str, bytes]):
    """The hashes of the words in a chunk of text without white space.

    A value holds eight bytes per word, those of `_hash_term`. A full cache is emptied.
    Threads share it: each change is a single operation of the interpreter, and the
    words of a chunk are the same in every thread.
    """

    def __missing__(self, chunk: str) -> bytes:
        is_separator = chunk == _SEPARATOR
        hashes = _SEPARATOR_HASH
        if not is_separator:
            hashes = b"".join(map(_hash_term, words(chunk)))
        if len(chunk) <= _CACHED_CHUNK_CHARACTERS:
            if len(self) >= _CACHED_CHUNKS:
                self.clear()
            self[chunk] = hashes
        return hashes


_chunk_cache = _ChunkCache()


def find_terms(sentences: Sequence[str]) -> Terms:
    """The terms of a document.

    The result is cached, because several methods score one document in succession.
    """
    return _find_terms(tuple(sentences))


@functools.lru_cache(maxsize=_CACHED_DOCUMENTS)
def _find_terms(sentences: tuple[str, ...]) -> Terms:
    hashes, rows = _hash_words(sentences)
    positions = np.flatnonzero(hashes)
    # Sorting by hash brings the occurrences of a term together; the sort is stable, so
    # those of one sentence stay together too.
    order = np.argsort(hashes[positions], kind="stable")
    sorted_hashes = hashes[positions][order]
    sorted_rows = rows[positions][order]
    is_new_term = np.ones(len(order), bool)
    is_new_term[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    is_new_cell = is_new_term.copy()
    is_new_cell[1:] |= sorted_rows[1:] != sorted_rows[:-1]
    sorted_terms = np.cumsum(is_new_term) - 1
    terms = np.empty_like(sorted_terms)
    terms[order] = sorted_terms
    cells = np.flatnonzero(is_new_cell)
    counts = (np.append(cells[1:], len(order)) - cells).astype(np.float64)
    return Terms(
        sentences=len(sentences),
        vocabulary=int(sorted_terms[-1]) + 1 if len(sorted_terms) else 0,
        rows=rows,
        content_positions=positions,
        content_terms=terms,
        cells=(sorted_rows[cells], sorted_terms[cells], counts),
    )


def _hash_words(sentences: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The hash of the term of every word, 0 for none, and the sentence of every word;
    both int64 [words].
    """
    text = f" {_SEPARATOR} ".join(sentences)
    if text.count(_SEPARATOR) >= max(len(sentences), 1):
        # The sentences contain the separator too.
        text = f" {_SEPARATOR} ".join(
            sentence.replace(_SEPARATOR, " ") for sentence in sentences
        )
    chunks = map(_chunk_cache.__getitem__, text.split())
    hashes = np.frombuffer(b"".join(chunks), np.int64)
    is_separator = hashes == _SEPARATOR_NUMBER
    rows = np.cumsum(is_separator)
    if len(sentences) > 1:
        is_word = ~is_separator
        return hashes[is_word], rows[is_word]
    return hashes, rows


@functools.lru_cache(maxsize=_CACHED_CHUNKS)
def _hash_term(word: str) -> bytes:
    """The hash of a word's stem, the bytes of an int64.

    It is 0 for a word that has no term: a stop word, a fragment of one from tokenised
    text, a number (`12`, `4.5m`, `5th`).

    Consecutive numbers would depend on the documents seen before; a hash depends on the
    word alone. The probability that two of 100,000 stems have the same hash is less
    than 1 in 10^9.
    """
    if word in STOP_WORDS or word in TOKENISED_FRAGMENTS or word[0].isdigit():
        return _NO_TERM
    return hashlib.blake2b(
        stem(word.removesuffix("'s")).encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
