"""The extractive methods by name.

Each method maps the sentences of a document to one score per sentence, float64 [N];
higher is better. The score depends on nothing but the document. The methods that read
words share the cached result of `terms.find_terms`.
"""

import hashlib
import random as random_numbers
from collections.abc import Callable, Sequence

import numpy as np

from precis.model.extractive.config import BASELINES as BASELINES
from precis.model.extractive.frequency import centroid, frequency, luhn, sumbasic
from precis.model.extractive.graph import lexrank, pacsum, textrank
from precis.model.extractive.lsa import lsa


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


METHODS: dict[str, Callable[[Sequence[str]], np.ndarray]] = {
    "lead": lead,
    "random": random,
    "frequency": frequency,
    "lexrank": lexrank,
    "textrank": textrank,
    "lsa": lsa,
    "luhn": luhn,
    "sumbasic": sumbasic,
    "centroid": centroid,
    "pacsum": pacsum,
}
