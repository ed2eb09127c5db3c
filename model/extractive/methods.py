"""The extractive methods by name.

Each method gives one score per sentence of a document, float64 [N]; higher is better.
The score depends on nothing but the document: on its sentences, or on their terms.
"""

import hashlib
import random as random_numbers
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from precis.model.extractive.frequency import centroid, frequency, luhn, sumbasic
from precis.model.extractive.graph import lexrank, pacsum, textrank
from precis.model.extractive.lsa import lsa
from precis.model.extractive.terms import Terms


def lead(sentences: Sequence[str]) -> np.ndarray:
    """The first sentences: a baseline that is hard to beat on news.

    The scores fall from N to 1.
    """
    return np.arange(len(sentences), 0, -1, dtype=np.float64)


def random(sentences: Sequence[str]) -> np.ndarray:
    """The lower baseline: random numbers between 0 and 1.

    The seed is the sha256 of the text, so that every run draws the same numbers.
    """
    text = "\n".join(sentences).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(text).digest()
    draw = random_numbers.Random(int.from_bytes(digest, "big")).random
    return np.array([draw() for _ in sentences], np.float64)


TEXT_METHODS: Mapping[str, Callable[[Sequence[str]], np.ndarray]] = {
    "lead": lead,
    "random": random,
}
TERM_METHODS: Mapping[str, Callable[[Terms], np.ndarray]] = {
    "frequency": frequency,
    "lexrank": lexrank,
    "textrank": textrank,
    "lsa": lsa,
    "luhn": luhn,
    "sumbasic": sumbasic,
    "centroid": centroid,
    "pacsum": pacsum,
}
METHODS = (*TEXT_METHODS, *TERM_METHODS)


def score_sentences(
    method: str, sentences: Sequence[str], terms: Terms | None
) -> np.ndarray:
    """The scores of a document by one of METHODS, float64 [N].

    Args:
      method: its name.
      sentences: of the document.
      terms: of the sentences; None where no method reads terms.
    """
    if method in TEXT_METHODS:
        return TEXT_METHODS[method](sentences)
    assert terms is not None
    return TERM_METHODS[method](terms)
