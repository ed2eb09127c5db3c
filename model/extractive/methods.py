"""Extractive methods by name: each gives the sentences of a document one score each,
higher is better.

score(sentences) -> float64 [N]

A score is a function of the document alone. Methods that read words share
`terms.find_terms`.
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
    """The earlier the better: what a news story opens with, the baseline that is hard
    to beat on news.
    """
    return np.arange(len(sentences), 0, -1, dtype=np.float64)


def random(sentences: Sequence[str]) -> np.ndarray:
    """Numbers between 0 and 1, drawn with the sha256 of the text as the seed: the lower
    baseline, the same in every run.
    """
    digest = hashlib.sha256(
        "\n".join(sentences).encode("utf-8", "surrogatepass")
    ).digest()
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
