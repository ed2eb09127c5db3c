"""Extractive methods: each gives the sentences of a document one score each, higher is better.

score(sentences) -> float64 [N]
"""

import functools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import snowballstemmer

from model.extractive.stopwords import STOP_WORDS, TOKENISED_FRAGMENTS
from model.text import words


def lead(sentences: Sequence[str]) -> np.ndarray:
    """The earlier the better: what a news story opens with, the baseline that is hard to beat on news."""
    return np.arange(len(sentences), 0, -1, dtype=np.float64)


def frequency(sentences: Sequence[str]) -> np.ndarray:
    """The summed weights of a sentence's words; a word's weight is its stem's frequency over the highest one in the document.

    Frequencies are summed as whole numbers and divided once, so that scores are exact: of eight words with weights 1, 2/3 (two of
    them) and 1/3 (five), the sum is 4.0.
    """
    stems = [[_stem(word) for word in words(sentence) if _is_content(word)] for sentence in sentences]
    counts = Counter(stem for sentence in stems for stem in sentence)
    highest = max(counts.values(), default=1)
    return np.array([sum(counts[stem] for stem in sentence) for sentence in stems], np.float64) / highest


METHODS: dict[str, Callable[[Sequence[str]], np.ndarray]] = {"lead": lead, "frequency": frequency}


def _is_content(word: str) -> bool:
    """Whether a word counts: no stop word, no rest of one, no number (`12`, `4.5m`, `5th`)."""
    return word not in STOP_WORDS and word not in TOKENISED_FRAGMENTS and not word[0].isdigit()


@functools.lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    """The stem of a word by Porter's algorithm (Porter 1980), of a possessive that of its owner.

    A new stemmer each time: one holds the word it works on, and pipelines call from several threads.
    """
    return snowballstemmer.stemmer("porter").stemWord(word.removesuffix("'s"))
