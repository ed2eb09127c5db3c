"""The terms of a document: the stems of its words without stop words and numbers, and
in which sentences they stand.

sentences   "The flood reached it."   "Floods, in 2014!"   "Why?"
words        the flood reached it      floods in 2014       why
rows           0     0       0  0           1  1    1         2
places               1       2              4
terms                0       1              0
cells        flood in 0 and 1, reached in 0, once each
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from precis.model.extractive.threads import NEVER_SPLIT
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words

# Up to here a document's matrices are plain ones, at most 8 MB each, and sentences are
# compared each with each; beyond, they are sparse.
_SMALL_SENTENCES, _SMALL_CELLS = 128, 1_000_000
_REMEMBERED_CHUNKS, _REMEMBERED_CHARACTERS = 200_000, 40
_REMEMBERED_DOCUMENTS = 4
# What stands between two sentences while a document is split in one piece; never part
# of a word.
_END = "\0"
_END_NUMBER = 1
_END_HASH, _NO_TERM = np.int64(_END_NUMBER).tobytes(), np.int64(0).tobytes()


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """The words of N sentences; V different terms are numbered from 0 on, by the hash
    of the stem.
    """

    sentences: int  # N
    vocabulary: int  # V
    rows: np.ndarray  # int64 [words], the sentence of each word
    places: np.ndarray  # int64 [content words], which of the words have a term
    terms: np.ndarray  # int64 [content words], the terms they have
    # Each pair of a sentence and a term it holds, and how often it does: int64, int64
    # and float64 [cells], ordered by term, then sentence.
    cells: tuple[np.ndarray, np.ndarray, np.ndarray]

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """How many words with a term each sentence has; int64 [N]."""
        return np.bincount(self.rows[self.places], minlength=self.sentences)

    @functools.cached_property
    def frequencies(self) -> np.ndarray:
        """How often each term occurs in the document; int64 [V]."""
        return np.bincount(self.terms, minlength=self.vocabulary)

    @functools.cached_property
    def sentence_frequencies(self) -> np.ndarray:
        """How many sentences hold each term; int64 [V]."""
        return np.bincount(self.cells[1], minlength=self.vocabulary)

    @functools.cached_property
    def idf(self) -> np.ndarray:
        """The inverse frequency log(N / (1 + n)) of a term that n of the N sentences
        hold, as sumy has it; float64 [V].

        It is 0 for a term of all sentences but one and negative for one of all
        sentences: cosines square it.
        """
        return np.log(self.sentences / (1.0 + self.sentence_frequencies))

    @functools.cached_property
    def unit_values(self) -> np.ndarray:
        """Term frequency times inverse frequency, each sentence scaled to length 1;
        float64 [cells].

        A product of two of these sentence vectors is the cosine of Erkan and Radev
        (2004), equation 1.
        """
        rows, terms, counts = self.cells
        values = counts * self.idf[terms]
        norms = np.sqrt(np.bincount(rows, values * values, self.sentences))
        norms[norms == 0.0] = 1.0
        return values / norms[rows]

    def sum_words(self, weights: np.ndarray) -> np.ndarray:
        """The summed weights of each sentence's words, for the weights [V] of the
        terms; float64 [N].
        """
        sums = np.bincount(self.rows[self.places], weights[self.terms], self.sentences)
        return sums.astype(np.float64)  # of no words at all it makes whole numbers

    @property
    def is_small(self) -> bool:
        """Whether matrices are plain, and sentences may be compared each with each."""
        return (
            self.sentences <= _SMALL_SENTENCES
            and self.sentences * self.vocabulary <= _SMALL_CELLS
        )

    def matrix(self, values: np.ndarray) -> "np.ndarray | scipy.sparse.csr_array":
        """The values of the cells as float64 [N, V]: a plain matrix for a small
        document, else a sparse one.
        """
        rows, terms, _ = self.cells
        if self.is_small:
            full = np.zeros((self.sentences, self.vocabulary))
            full[rows, terms] = values
            return full
        return scipy.sparse.csr_array(
            (values, (rows, terms)), shape=(self.sentences, self.vocabulary)
        )

    def products(self, values: np.ndarray) -> np.ndarray:
        """The inner products of sentences, each with each, by the values of their
        cells; float64 [N, N]. For small documents.

        Most terms stand in one sentence alone. They matter to its product with itself
        only.
        """
        rows, terms, _ = self.cells
        are_shared = self.sentence_frequencies > 1
        columns = np.cumsum(are_shared) - 1
        kept = are_shared[terms]
        shared = np.zeros((self.sentences, int(np.count_nonzero(are_shared))))
        shared[rows[kept], columns[terms[kept]]] = values[kept]
        step = max(1, NEVER_SPLIT // max(self.sentences, 1) ** 2)
        products = shared[:, :step] @ shared[:, :step].T
        for first in range(step, shared.shape[1], step):
            products += (
                shared[:, first : first + step] @ shared[:, first : first + step].T
            )
        products.flat[:: self.sentences + 1] = np.bincount(
            rows, values * values, self.sentences
        )
        return products


class _Chunks(dict[str, bytes]):
    """Remembers the words in a chunk of text without white space: for each, eight bytes
    of its `_term`.

    A full memory is emptied. Threads share it: each change is one operation of the
    interpreter, and a chunk has the same words for all.
    """

    def __missing__(self, chunk: str) -> bytes:
        if chunk == _END:
            return _END_HASH
        found = b"".join(map(_term, words(chunk)))
        if len(chunk) <= _REMEMBERED_CHARACTERS:
            if len(self) >= _REMEMBERED_CHUNKS:
                self.clear()
            self[chunk] = found
        return found


_chunks = _Chunks()


def find_terms(sentences: Sequence[str]) -> Terms:
    """The terms of a document, found once for all the methods that ask for them one
    after the other.
    """
    return _find_terms(tuple(sentences))


@functools.lru_cache(maxsize=_REMEMBERED_DOCUMENTS)
def _find_terms(sentences: tuple[str, ...]) -> Terms:
    text = f" {_END} ".join(sentences)
    if text.count(_END) >= max(len(sentences), 1):  # the text has it, too
        text = f" {_END} ".join(sentence.replace(_END, " ") for sentence in sentences)
    hashes = np.frombuffer(b"".join(map(_chunks.__getitem__, text.split())), np.int64)
    is_end = hashes == _END_NUMBER
    rows = np.cumsum(is_end)
    if len(sentences) > 1:
        is_word = ~is_end
        rows, hashes = rows[is_word], hashes[is_word]
    places = np.flatnonzero(hashes)
    # Equal words lie side by side in the order of their hashes, those of one sentence
    # too.
    order = np.argsort(hashes[places], kind="stable")
    ordered, ordered_rows = hashes[places][order], rows[places][order]
    is_new_term = np.ones(len(order), bool)
    is_new_term[1:] = ordered[1:] != ordered[:-1]
    is_new_cell = is_new_term.copy()
    is_new_cell[1:] |= ordered_rows[1:] != ordered_rows[:-1]
    numbers = np.cumsum(is_new_term) - 1
    terms = np.empty_like(numbers)
    terms[order] = numbers
    cells = np.flatnonzero(is_new_cell)
    counts = (np.append(cells[1:], len(order)) - cells).astype(np.float64)
    return Terms(
        sentences=len(sentences),
        vocabulary=int(numbers[-1]) + 1 if len(numbers) else 0,
        rows=rows,
        places=places,
        terms=terms,
        cells=(ordered_rows[cells], numbers[cells], counts),
    )


@functools.lru_cache(maxsize=_REMEMBERED_CHUNKS)
def _term(word: str) -> bytes:
    """A hash of a word's stem as int64; zeros for a word that does not count: a stop
    word, the rest of one, a number (`12`, `4.5m`, `5th`).

    Hashes, not numbers given out in turn, so that no result depends on the documents
    seen before; that two of 100,000 stems share one is less likely than 1 in 10^9.
    """
    if word in STOP_WORDS or word in TOKENISED_FRAGMENTS or word[0].isdigit():
        return _NO_TERM
    return hashlib.blake2b(
        stem(word.removesuffix("'s")).encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
