"""Documents for the tests of the extractive methods."""

import random
from collections.abc import Sequence

import numpy as np

from precis.model.extractive.methods import score_sentences
from precis.model.extractive.terms import Terms, find_terms
from precis.model.text.article import Article

# Written for these tests. Content words by stem: marta 3; bridge, flood, village and
# repair 2 each; eighteen others 1 each.
PARAGRAPH = (
    "Marta measured the cracked bridge before the flooding reached its wooden legs. "
    "The villages paid for repairs after an earlier flood. "
    "Marta repaired the bridge with oak planks, iron nails and 12 borrowed ropes. "
    "Nobody in the village thanked Marta until winter came quietly."
)


# By name.
ODD_DOCUMENTS = {
    "empty": [],
    "one": ["One."],
    "no terms": ["The.", "", "It was.", "12 of them.", "!?"],
    "the same": ["Boats sail."] * 3,
    "long and the same": ["Boats sail."] * 300,
    "long without terms": ["The."] * 300,
    "long and all different": [
        f"{stem}{letter}k"
        for stem in ("mar", "tol", "vim", "sax", "bel", "dor")
        for letter in map(chr, range(0x3B1, 0x3E1))
    ],
    "a very frequent word": ["Boats " * 3000, "Sails and boats."],
    "other scripts": ["東京は雨。", "На улице дождь", "\ud800 \x00"],
}


def sentences_of(text: str) -> list[str]:
    return [sentence.text for sentence in Article.from_text(text).sentences]


def long_document(count: int, *, seed: int = 5, vocabulary: int = 900) -> list[str]:
    """Sentences of 1 to 14 invented words that Porter's algorithm does not change, some
    of them repeated.
    """
    generator = random.Random(seed)
    stems = [
        f"{first}{second}{third}"
        for first in "bdfgklmnprtv"
        for second in ("ax", "ox", "uk", "am", "on")
        for third in ("ab", "ob", "uk", "am", "ix", "um", "ak")
    ]
    words = [stem + ending for stem in stems for ending in ("", "tab", "dok")]
    words = words[:vocabulary]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    return [
        " ".join(generator.choices(words, weights, k=generator.randint(1, 14))) + "."
        for _ in range(count)
    ]


def count_words(texts: list[str]) -> np.ndarray:
    """The counts of a `long_document`, word by word, float64 [N, V]."""
    split = [text.lower().removesuffix(".").split() for text in texts]
    vocabulary = sorted({word for words in split for word in words})
    counts = [[words.count(word) for word in vocabulary] for words in split]
    return np.array(counts, np.float64)


def terms_of(texts: Sequence[str]) -> Terms:
    return find_terms([texts])[0]


def scores_of(method: str, texts: Sequence[str]) -> np.ndarray:
    return score_sentences(method, texts, terms_of(texts))
