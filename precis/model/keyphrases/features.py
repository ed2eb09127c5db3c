"""The features of candidates: the numbers that the classifier reads."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from precis.model.keyphrases.candidates import (
    BREAK,
    LINK,
    MAX_WORDS,
    NUMBER,
    TOPIC,
    PhraseCandidates,
)

# The columns, in order. A frequency is a number of occurrences in the document; a
# position is a number of tokens.
FEATURES = (
    "words",  # length in words
    "links",  # number of link words
    "characters",  # length in characters, without spaces
    "frequency",
    "relative_frequency",  # frequency / frequency of the most frequent candidate
    "word_frequency",  # of the most frequent of its words
    "relative_word_frequency",  # word_frequency / the highest in the document
    "rarest_word_frequency",  # of the least frequent of its words
    "position",  # of the first occurrence
    "spread",  # share of the document between the first and the last occurrence
    # Share of the occurrences whose words are all capitalised, without the first word
    # of a sentence.
    "capitalised",
    "idf",  # inverse document frequency, mean of the words
    "first_word_idf",
    "last_word_idf",
    "open_left",  # share of the occurrences after a break
    "open_right",  # share of the occurrences before a break
    "whole",  # share of the occurrences between two breaks
    # Share of the occurrences within the longer candidate that has most of them (after
    # C-value, Frantzi et al. 2000).
    "nested",
)


class DocumentFrequencies(NamedTuple):
    """The document frequencies of the more common words of a corpus.

    Attributes:
      documents: the number of documents in the corpus.
      counts: the number of documents by stem; missing stems count as 0.
    """

    documents: int
    counts: Mapping[str, int]

    def idf(self, stems: list[str]) -> np.ndarray:
        """The smoothed inverse document frequency (Sparck Jones 1972) of each stem:
        log((N + 1) / (n + 1)) for n of N documents; float64 [len(stems)].
        """
        counts = np.array([self.counts.get(stem, 0) for stem in stems], np.float64)
        return np.log((self.documents + 1) / (counts + 1))


def candidate_features(
    candidates: PhraseCandidates, frequencies: DocumentFrequencies
) -> np.ndarray:
    """The features of a document's candidates, float64 [C, len(FEATURES)]."""
    if not len(candidates.start):
        return np.zeros((0, len(FEATURES)))
    columns = _word_columns(candidates, frequencies) | _occurrence_columns(candidates)
    return np.stack([columns[name] for name in FEATURES], axis=1).astype(np.float64)


def _word_columns(
    candidates: PhraseCandidates, frequencies: DocumentFrequencies
) -> dict[str, np.ndarray]:
    """The features of the words of each candidate, [C] by name."""
    tokens = candidates.tokens
    start = candidates.start
    length = candidates.length
    count = len(tokens.surface)
    # The words of the first occurrence, [C, MAX_WORDS].
    offset = np.arange(MAX_WORDS)
    position = np.minimum(start[:, None] + offset, count - 1)
    is_word = offset < length[:, None]
    is_content = is_word & (tokens.kind[position] >= NUMBER)
    word_counts = np.bincount(
        tokens.stem[tokens.kind >= NUMBER], minlength=len(tokens.stems)
    )
    word_frequency = word_counts[tokens.stem[position]]
    highest = np.max(word_frequency, axis=1, where=is_content, initial=0)
    lowest = np.min(word_frequency, axis=1, where=is_content, initial=count)
    idf = frequencies.idf(tokens.stems)[tokens.stem]
    idf_sum = np.where(is_content, idf[position], 0).sum(axis=1)
    characters = np.array([len(word) for word in tokens.surface])
    return {
        "words": length,
        "links": (is_word & (tokens.kind[position] == LINK)).sum(axis=1),
        "characters": np.where(is_word, characters[position], 0).sum(axis=1),
        "word_frequency": highest,
        "relative_word_frequency": highest / word_counts.max(),
        "rarest_word_frequency": lowest,
        "idf": idf_sum / is_content.sum(axis=1),
        "first_word_idf": idf[start],
        "last_word_idf": idf[start + length - 1],
    }


def _occurrence_columns(candidates: PhraseCandidates) -> dict[str, np.ndarray]:
    """The features of the occurrences of each candidate, [C] by name."""
    tokens = candidates.tokens
    start = candidates.start
    first = candidates.occurrence
    candidate = candidates.candidate
    end = first + candidates.length[candidate]
    frequency = np.bincount(candidate)
    last = np.zeros(len(start), np.int64)
    np.maximum.at(last, candidate, first)

    def share(holds: np.ndarray) -> np.ndarray:  # of the occurrences, [O] -> [C]
        return np.bincount(candidate, weights=holds) / frequency

    is_plain = (tokens.kind == TOPIC) & ~tokens.capital
    plain_before = np.concatenate([[0], np.cumsum(is_plain)])
    open_left = (first == 0) | (tokens.kind[first - 1] == BREAK)
    open_right = tokens.kind[end] == BREAK
    return {
        "frequency": frequency,
        "relative_frequency": frequency / frequency.max(),
        "position": start,
        "spread": (last - start) / len(tokens.surface),
        "capitalised": share(plain_before[end] == plain_before[first]),
        "open_left": share(open_left),
        "open_right": share(open_right),
        "whole": share(open_left & open_right),
        "nested": _nested(candidates, frequency) / frequency,
    }


def _nested(candidates: PhraseCandidates, frequency: np.ndarray) -> np.ndarray:
    """For each candidate the highest frequency of a longer candidate that contains it,
    int64 [C]; 0 if none does.
    """
    start = candidates.start
    length = candidates.length
    count = len(candidates.tokens.surface)
    # The candidate of each length that begins at each token; -1 if there is none.
    starting = np.full((MAX_WORDS + 1, count), -1)
    starting[length[candidates.candidate], candidates.occurrence] = candidates.candidate
    highest = np.zeros(len(start), np.int64)
    for longer in range(2, MAX_WORDS + 1):
        (containing,) = np.nonzero(length == longer)
        for shorter in range(1, longer):
            for offset in range(longer - shorter + 1):
                inner = starting[shorter, start[containing] + offset]
                is_candidate = inner >= 0
                np.maximum.at(
                    highest, inner[is_candidate], frequency[containing][is_candidate]
                )
    return highest
