"""Features: what a classifier reads of a candidate, one number each."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from precis.model.keyphrases.candidates import (
    BREAK,
    LINK,
    MAX_WORDS,
    NUMBER,
    TOPIC,
    Candidates,
)

# In the order of the columns. A frequency is a number of occurrences in the document, a
# position the number of tokens before it.
FEATURES = (
    "words",  # length in words
    "links",  # how many of them are links
    "characters",  # length in characters, without spaces
    "frequency",
    "relative_frequency",  # over that of the document's most frequent candidate
    "word_frequency",  # of its most recurring word
    "relative_word_frequency",  # over that of the document's most frequent word
    "rarest_word_frequency",  # of its least recurring word
    "position",  # of the first occurrence
    # the part of the document between the first and the last occurrence, 0 to 1
    "spread",
    # share of the occurrences whose words are all capitalised, none of them opening a
    # sentence
    "capitalised",
    "idf",  # inverse document frequency, mean of the words
    "first_word_idf",
    "last_word_idf",
    "open_left",  # share of the occurrences with a break before them
    "open_right",  # share with a break behind them
    "whole",  # share with both
    # share that lie within the longer candidate that has most of them (after C-value,
    # Frantzi et al. 2000)
    "nested",
)


class DocumentFrequencies(NamedTuple):
    """In how many documents of a corpus its more common words stand.

    Attributes:
      documents: how many the corpus has.
      counts: documents by stem; a word that is not listed counts as one of no document.
    """

    documents: int
    counts: Mapping[str, int]

    def idf(self, stems: list[str]) -> np.ndarray:
        """Inverse document frequency, float64 [len(stems)]: log((N + 1) / (n + 1)) of N
        documents (Sparck Jones 1972), smoothed.
        """
        counts = np.array([self.counts.get(stem, 0) for stem in stems], np.float64)
        return np.log((self.documents + 1) / (counts + 1))


def describe(candidates: Candidates, frequencies: DocumentFrequencies) -> np.ndarray:
    """The features of a document's candidates, float64 [C, len(FEATURES)]."""
    tokens, start, length, candidate = (
        candidates.tokens,
        candidates.start,
        candidates.length,
        candidates.candidate,
    )
    if not len(start):
        return np.zeros((0, len(FEATURES)))
    count = len(tokens.surface)
    occurrence, occurrence_end = (
        candidates.occurrence,
        candidates.occurrence + length[candidate],
    )
    frequency = np.bincount(candidate)
    last = np.zeros(len(start), np.int64)
    np.maximum.at(last, candidate, occurrence)

    # The words of the first occurrence, [C, MAX_WORDS].
    offset = np.arange(MAX_WORDS)
    position = np.minimum(start[:, None] + offset, count - 1)
    within = offset < length[:, None]
    content = within & (tokens.kind[position] >= NUMBER)
    word_counts = np.bincount(
        tokens.stem[tokens.kind >= NUMBER], minlength=len(tokens.stems)
    )
    word_frequency = word_counts[tokens.stem[position]]
    idf = frequencies.idf(tokens.stems)[tokens.stem]
    characters = np.array([len(word) for word in tokens.surface])

    def share(claim: np.ndarray) -> np.ndarray:  # of the occurrences, [O] -> [C]
        return np.bincount(candidate, weights=claim) / frequency

    plain = np.concatenate([[0], np.cumsum((tokens.kind == TOPIC) & ~tokens.capital)])
    open_left = (occurrence == 0) | (tokens.kind[occurrence - 1] == BREAK)
    open_right = tokens.kind[occurrence_end] == BREAK
    most_frequent_word = np.max(word_frequency, axis=1, where=content, initial=0)
    columns = {
        "words": length,
        "links": (within & (tokens.kind[position] == LINK)).sum(axis=1),
        "characters": np.where(within, characters[position], 0).sum(axis=1),
        "frequency": frequency,
        "relative_frequency": frequency / frequency.max(),
        "word_frequency": most_frequent_word,
        "relative_word_frequency": most_frequent_word / word_counts.max(),
        "rarest_word_frequency": np.min(
            word_frequency, axis=1, where=content, initial=count
        ),
        "position": start,
        "spread": (last - start) / count,
        "capitalised": share(plain[occurrence_end] == plain[occurrence]),
        "idf": np.where(content, idf[position], 0).sum(axis=1) / content.sum(axis=1),
        "first_word_idf": idf[start],
        "last_word_idf": idf[start + length - 1],
        "open_left": share(open_left),
        "open_right": share(open_right),
        "whole": share(open_left & open_right),
        "nested": _nested(candidates, frequency) / frequency,
    }
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float64)


def _nested(candidates: Candidates, frequency: np.ndarray) -> np.ndarray:
    """For each candidate the highest frequency among the longer ones that contain it,
    int64 [C]; 0 where none does.
    """
    start, length = candidates.start, candidates.length
    count = len(candidates.tokens.surface)
    at = np.full(
        (MAX_WORDS + 1, count), -1
    )  # the candidate of so many words that begins at a token
    at[length[candidates.candidate], candidates.occurrence] = candidates.candidate
    highest = np.zeros(len(start), np.int64)
    for longer in range(2, MAX_WORDS + 1):
        (containing,) = np.nonzero(length == longer)
        for shorter in range(1, longer):
            for offset in range(longer - shorter + 1):
                inner = at[shorter, start[containing] + offset]
                np.maximum.at(
                    highest, inner[inner >= 0], frequency[containing][inner >= 0]
                )
    return highest
