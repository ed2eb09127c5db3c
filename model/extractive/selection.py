"""Selection: from one score a sentence to the sentences of the summary."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.terms import find_terms
from precis.model.extractive.threads import one_thread
from precis.model.text.page_sentences import is_boilerplate
from precis.model.text.sentences import Sentence
from precis.model.text.words import words

_DIGITS = 9


class Extract(NamedTuple):
    """A sentence of an extractive summary; rank 1 is the one that was chosen first."""

    rank: int
    score: float
    sentence: Sentence


def extract(
    sentences: Sequence[Sentence],
    scores: np.ndarray,
    *,
    selection: SelectionConfig,
    skip_boilerplate: bool = True,
) -> list[Extract]:
    """The extractive summary of a document, in document order.

    Args:
      sentences: all of the document.
      scores: float64 [N], of one of `methods.METHODS` or of a network; higher is
          better.
      selection: how many sentences, and what counts as redundant.
      skip_boilerplate: leaves out sentences that speak of the page, unless the document
          has no others.

    Raises:
      ValueError: not one finite score a sentence.
    """
    texts = [sentence.text for sentence in sentences]
    chosen = select(
        texts, scores, selection=selection, skip_boilerplate=skip_boilerplate
    )
    ranks = {index: rank for rank, index in enumerate(chosen, start=1)}
    return [
        Extract(ranks[index], float(scores[index]), sentences[index])
        for index in sorted(ranks)
    ]


def select(
    sentences: Sequence[str],
    scores: np.ndarray,
    *,
    selection: SelectionConfig,
    skip_boilerplate: bool = True,
) -> list[int]:
    """The positions of the sentences to take, the first choice first; the arguments are
    those of `extract`.

    Of equal scores the earlier sentence is the better one, and scores that differ by
    less than a billionth of the largest are equal. Which sentences are taken depends on
    the document alone.

    Raises:
      ValueError: not one finite score a sentence.
    """
    scores = np.asarray(scores, np.float64)
    if scores.shape != (len(sentences),):
        raise ValueError(
            f"{len(sentences)} sentences need one score each, not scores of shape {scores.shape}"
        )
    largest = np.abs(scores).max(initial=0.0)
    if not np.isfinite(largest):
        raise ValueError(
            f"the score of sentence {int(np.argmin(np.isfinite(scores)))} is not a finite number; no order can be made of it"
        )
    scores = np.round(scores / (largest or 1.0), _DIGITS)
    take = _take_diverse if selection.redundancy == "mmr" else _take_best
    chosen = take(
        sentences, scores, selection, is_boilerplate if skip_boilerplate else _never
    )
    if not chosen and skip_boilerplate and all(map(is_boilerplate, sentences)):
        return take(sentences, scores, selection, _never)
    return chosen


def _never(sentence: str) -> bool:
    return False


def _take_best(
    sentences: Sequence[str],
    scores: np.ndarray,
    selection: SelectionConfig,
    skips: Callable[[str], bool],
) -> list[int]:
    """The best sentences that fit; with trigram blocking (Paulus et al. 2018) none that
    shares three words in a row with one before.

    As in Liu and Lapata (2019), what is blocked does not come back, even if fewer
    sentences are left than were asked for.
    """
    blocks = selection.redundancy == "trigrams"
    chosen: list[int] = []
    seen: set[tuple[str, ...]] = set()
    words_left = selection.max_words
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) == selection.sentences:
            break
        if skips(sentences[index]):
            continue
        if blocks or selection.max_words:
            own = words(sentences[index])
            trigrams = (
                set(zip(own, own[1:], own[2:], strict=False)) if blocks else set()
            )
            if (selection.max_words and len(own) > words_left) or not seen.isdisjoint(
                trigrams
            ):
                continue
            seen |= trigrams
            words_left -= len(own)
        chosen.append(index)
    return chosen


def _take_diverse(
    sentences: Sequence[str],
    scores: np.ndarray,
    selection: SelectionConfig,
    skips: Callable[[str], bool],
) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein 1998): lambda x relevance -
    (1 - lambda) x similarity to what is chosen.

    Relevance is the score, scaled so that the best and the worst are 1 apart;
    similarity the highest cosine of tf-idf vectors with a sentence chosen before.
    """
    if not len(scores):
        return []
    terms = find_terms(sentences)
    vectors = terms.matrix(terms.unit_values)
    relevance = scores / (np.ptp(scores) or 1.0)
    similarity = np.zeros(len(scores))
    is_open = np.ones(len(scores), bool)
    chosen: list[int] = []
    words_left = selection.max_words
    while len(chosen) < selection.sentences and is_open.any():
        marginal = (
            selection.mmr_lambda * relevance - (1 - selection.mmr_lambda) * similarity
        )
        index = int(np.argmax(np.where(is_open, np.round(marginal, _DIGITS), -np.inf)))
        is_open[index] = False
        length = len(words(sentences[index])) if selection.max_words else 0
        if skips(sentences[index]) or length > words_left:
            continue
        words_left -= length
        chosen.append(index)
        with one_thread():
            similarity = np.maximum(similarity, vectors @ _row(vectors, index))
    return chosen


def _row(vectors: "np.ndarray | scipy.sparse.csr_array", index: int) -> np.ndarray:
    """One row of a plain or sparse matrix [N, V], float64 [V]."""
    return (
        vectors[index]
        if isinstance(vectors, np.ndarray)
        else vectors[[index]].toarray()[0]
    )
