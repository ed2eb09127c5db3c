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
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.threads import single_thread
from precis.model.text.language import ENGLISH
from precis.model.text.porter import stem
from precis.model.text.stems import bare_words, stem_words
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS, stop_words
from precis.model.text.words import ChunkCache, TextWords, read_words, sums_before

if TYPE_CHECKING:  # slow to import, and only long documents need it
    import scipy.sparse

# Up to this size the matrices of a document are dense, at most 8 MB each, and all pairs
# of sentences are compared. Larger documents have sparse matrices.
_SMALL_SENTENCES = 128
_SMALL_CELLS = 1_000_000
# Documents whose words are read together; more would take memory without saving time.
# The last bit of a score may depend on it.
READ_TOGETHER = 256
_NO_TERMS = STOP_WORDS | TOKENISED_FRAGMENTS
_NO_TERM_HASH = bytes(8)
# The capital of ı is I, not İ.
_DOTLESS = ("az", "tr")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Terms:
    """The terms of N sentences.

    The V distinct terms are numbered from 0, in the order of the hashes of their stems.

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

        It is log(N / (1 + n)) for a term in n sentences, as in sumy: 0 if all sentences
        but one have the term, and negative if all have it.
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
          weights: the weights of the terms, [V].
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

    def matrix(self, values: np.ndarray) -> "scipy.sparse.csr_array":
        """The sparse matrix of the cells with these `values`, float64 [N, V]."""
        import scipy.sparse

        rows, terms, _ = self.cells
        return scipy.sparse.csr_array(
            (values, (rows, terms)), shape=(self.sentences, self.vocabulary)
        )

    def products(self, values: np.ndarray) -> np.ndarray:
        """The inner products of all pairs of sentences, float64 [N, N], for small
        documents.

        Most terms occur in a single sentence. They change only the product of this
        sentence with itself, so the matrix product leaves them out.

        Args:
          values: the values of the cells.
        """
        rows, terms, _ = self.cells
        is_shared = self.sentence_frequencies > 1
        columns = np.cumsum(is_shared) - 1
        is_shared_cell = is_shared[terms]
        shared = np.zeros((self.sentences, np.count_nonzero(is_shared)))
        places = rows[is_shared_cell], columns[terms[is_shared_cell]]
        shared[places] = values[is_shared_cell]
        with single_thread(shared.size * self.sentences):
            products = shared @ shared.T
        products.flat[:: self.sentences + 1] = np.bincount(
            rows, values * values, self.sentences
        )
        return products


def find_terms(
    documents: Sequence[Sequence[str]],
    *,
    languages: Sequence[str | None] | None = None,
    words: TextWords | None = None,
) -> list[Terms]:
    """Finds the terms of documents; many at once take less time.

    Args:
      documents: the sentences of each document.
      languages: the language of each document, whose stop words are left out and whose
          stems are the terms. An unknown language, None, is read as English; by default
          all documents are English.
      words: the words of texts that begin with these sentences, in order; text without
          words may follow a sentence. None reads the sentences.
    """
    of_language: dict[str, list[int]] = {}
    for place, language in enumerate(languages or ()):
        of_language.setdefault(language or ENGLISH, []).append(place)
    if of_language.keys() <= {ENGLISH}:
        return _find_terms(documents, ENGLISH, words)
    found: list[Terms] = []
    if ENGLISH in of_language:
        found = _find_terms(documents, ENGLISH, words)
    terms = dict(enumerate(found))
    for language, places in of_language.items():
        if language != ENGLISH:
            others = _find_terms([documents[n] for n in places], language, None)
            terms.update(zip(places, others, strict=True))
    return [terms[n] for n in range(len(documents))]


def _find_terms(
    documents: Sequence[Sequence[str]], language: str, words: TextWords | None
) -> list[Terms]:
    """The terms of documents of one language; the arguments are as for `find_terms`."""
    sizes = list(map(len, documents))
    if words is None:
        texts = list(itertools.chain.from_iterable(documents))
        if language in _DOTLESS:
            texts = [text.replace("I", "ı") for text in texts]
        words = read_words(texts)
    first_rows = sums_before(np.array(sizes, np.int64))
    ranks, word_counts = _rank_words(words, int(first_rows[-1]), language)
    words_before = sums_before(word_counts)[first_rows]
    rows = np.repeat(np.arange(len(word_counts)), word_counts)
    positions = np.flatnonzero(ranks >= 0)
    content_before = np.searchsorted(positions, words_before)
    document_of = np.repeat(
        np.arange(len(sizes)), content_before[1:] - content_before[:-1]
    )
    # Sorting by document, rank and position brings together the occurrences of a term,
    # and within them of a sentence. One number holds all three, so that numpy is fast.
    shift = len(positions).bit_length()
    keys = document_of * (ranks.max(initial=0) + 1) + ranks[positions]
    keys = np.sort(keys << shift | np.arange(len(positions)))
    order = keys & ((1 << shift) - 1)
    keys >>= shift
    sorted_rows = rows[positions][order]
    is_new_term = np.ones(len(order), bool)
    is_new_term[1:] = keys[1:] != keys[:-1]
    is_new_cell = is_new_term.copy()
    is_new_cell[1:] |= sorted_rows[1:] != sorted_rows[:-1]
    terms_before = sums_before(is_new_term)
    # Below, sentences, words and terms are numbered within their document.
    sorted_terms = terms_before[1:] - 1 - terms_before[content_before][document_of]
    terms = np.empty_like(sorted_terms)
    terms[order] = sorted_terms
    cells = np.flatnonzero(is_new_cell)
    counts = np.diff(cells, append=len(order)).astype(np.float64)
    cell_rows = sorted_rows[cells] - first_rows[document_of[cells]]
    cell_terms = sorted_terms[cells]
    rows -= np.repeat(first_rows[:-1], words_before[1:] - words_before[:-1])
    positions -= words_before[document_of]
    of_words = _ranges(words_before)
    of_content = _ranges(content_before)
    of_cells = _ranges(np.searchsorted(cells, content_before))
    of_terms = _ranges(terms_before[content_before])
    return [
        Terms(
            sentences=size,
            vocabulary=of_terms[document].stop - of_terms[document].start,
            rows=rows[of_words[document]],
            content_positions=positions[of_content[document]],
            content_terms=terms[of_content[document]],
            cells=(
                cell_rows[of_cells[document]],
                cell_terms[of_cells[document]],
                counts[of_cells[document]],
            ),
        )
        for document, size in enumerate(sizes)
    ]


def _rank_words(
    words: TextWords, texts: int, language: str
) -> tuple[np.ndarray, np.ndarray]:
    """Ranks the words of the first `texts` texts of `words`.

    Returns:
      The rank of the hash of each word's term, or -1 if it has none, int64 [words]; and
      the number of words of each text, int64 [texts].
    """
    if language == ENGLISH:
        cached = _ENGLISH_HASHES.values_of(words.distinct)
    else:
        keys = [f"{language} {word}" for word in words.distinct]
        cached = _OTHER_HASHES.values_of(keys)
    hashes = np.frombuffer(b"".join(cached), np.int64)
    ranks = np.unique(hashes, return_inverse=True)[1]
    ranks[hashes == 0] = -1
    offsets = words.offsets[: texts + 1]
    return ranks[words.numbers[: offsets[-1]]], np.diff(offsets)


def _ranges(starts: np.ndarray) -> list[slice]:
    """The range from each start to the next start."""
    return [slice(start, end) for start, end in itertools.pairwise(starts.tolist())]


def _hash_terms(words: Sequence[str], language: str) -> list[bytes]:
    """The hash of the term of each word, as the bytes of an int64.

    A term is the stem of a word, or the word itself if its language has no stemmer. The
    hash is 0 for a word without a term: a stop word, a fragment of a stop word from
    tokenised text, a number (`12`, `4.5m`, `5th`); in other languages than English also
    for a single letter or Chinese character.

    Consecutive numbers would depend on the documents seen before; a hash depends only
    on the word. The probability that two of 100,000 stems have the same hash is less
    than 1 in 10^9.

    Args:
      words: distinct words.
      language: the language of the words.
    """
    content = [word for word in words if not word[0].isdigit()]
    if language == ENGLISH:
        content = [word for word in content if word not in _NO_TERMS]
        terms = list(map(stem, [word.removesuffix("'s") for word in content]))
    else:
        stops = stop_words(language)
        bare = dict(zip(content, bare_words(content, language), strict=True))
        content = [
            word
            for word in content
            if len(bare[word]) > 1 and stops.isdisjoint((word, bare[word]))
        ]
        terms = stem_words([bare[word] for word in content], language)
    hashes = {
        word: hashlib.blake2b(term.encode(), digest_size=8).digest()
        for word, term in zip(content, terms, strict=True)
    }
    return [hashes.get(word, _NO_TERM_HASH) for word in words]


def _hash_keys(keys: Sequence[str]) -> list[bytes]:
    """Calls `_hash_terms` for keys of a language code and a word: `de brücke`."""
    language = keys[0].partition(" ")[0] if keys else ""
    return _hash_terms([key.partition(" ")[2] for key in keys], language)


_ENGLISH_HASHES = ChunkCache(functools.partial(_hash_terms, language=ENGLISH))
_OTHER_HASHES = ChunkCache(_hash_keys)
