"""Selection: from one score a sentence to the sentences of the summary."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model.errors import UsageError
from model.extractive.methods import METHODS
from model.text import Sentence


class Extract(NamedTuple):
    """A sentence of an extractive summary; rank 1 is the one with the best score."""

    rank: int
    score: float
    sentence: Sentence


def extract(sentences: Sequence[Sentence], *, method: str, count: int) -> list[Extract]:
    """The extractive summary of a document: its best sentences by that method, in document order.

    Raises:
      UsageError: there is no such method, or `count` is below 1.
    """
    if method not in METHODS:
        raise UsageError(f"unknown extractive method {method!r}; known are {', '.join(sorted(METHODS))}")
    scores = METHODS[method]([sentence.text for sentence in sentences])
    ranks = {index: rank for rank, index in enumerate(select(scores, count=count), start=1)}
    return [Extract(ranks[index], float(scores[index]), sentences[index]) for index in sorted(ranks)]


def select(scores: np.ndarray, *, count: int) -> list[int]:
    """The positions of the `count` best scores, best first; of equal scores the earlier comes first. All, if there are fewer.

    Raises:
      UsageError: `count` is below 1.
    """
    if count < 1:
        raise UsageError(f"an extractive summary of {count} sentences was asked for; it needs at least 1")
    return np.argsort(-np.asarray(scores), kind="stable")[:count].tolist()
