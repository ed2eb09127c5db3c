"""Selection: from one score per sentence to the sentences of the summary."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import ExpectedReference, select_expected
from precis.model.extractive.terms import find_terms
from precis.model.extractive.threads import single_thread
from precis.model.isolation import NotFiniteError
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.sentences import Sentence
from precis.model.text.words import words

# Scores are rounded to so many digits, in units of the largest.
_DIGITS = 9


class Extract(NamedTuple):
    """A sentence of an extractive summary; rank 1 is the first choice."""

    rank: int
    score: float
    sentence: Sentence


def extract(
    sentences: Sequence[Sentence],
    scores: np.ndarray,
    *,
    selection: SelectionConfig,
    skip_boilerplate: bool = True,
    expected: ExpectedReference | None = None,
) -> list[Extract]:
    """The extractive summary of a document, in document order.

    Args:
      sentences: all sentences of the document.
      scores: float64 [N], of one of `methods.METHODS` or of a network; higher is
          better.
      selection: how many sentences are selected, and how repetitions are avoided.
      skip_boilerplate: leave out sentences about the web page, unless the document has
          no others.
      expected: of the reference of the document; the sentences are then chosen
          together, by the expected ROUGE of the summary. None takes the best ones.

    Raises:
      ValueError: the scores are not one number per sentence.
      NotFiniteError: a score is not finite.
    """
    texts = [sentence.text for sentence in sentences]
    selected = select(
        texts, scores, selection=selection, skip_boilerplate=skip_boilerplate
    )
    if expected is not None:
        together = select_expected(texts, scores, expected, selection=selection)
        selected = together or selected
    ranks = {index: rank for rank, index in enumerate(selected, start=1)}
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
    """The indices of the selected sentences, the first choice first.

    Of equal scores the earlier sentence is better. Scores are equal if they differ by
    less than a billionth of the largest. The selection depends on nothing but the
    document.

    Args:
      sentences, scores, selection, skip_boilerplate: as for `extract`.

    Raises:
      ValueError: the scores are not one number per sentence.
      NotFiniteError: a score is not finite.
    """
    scores = np.asarray(scores, np.float64)
    if scores.shape != (len(sentences),):
        raise ValueError(
            f"{len(sentences)} sentences need one score each, "
            f"not scores of shape {scores.shape}"
        )
    largest = np.abs(scores).max(initial=0.0)
    if not np.isfinite(largest):
        index = int(np.argmin(np.isfinite(scores)))
        raise NotFiniteError(
            f"the score of sentence {index} is not a finite number; "
            "no order can be made of it"
        )
    scores = np.round(scores / (largest or 1.0), _DIGITS)
    strategy = _select_diverse if selection.redundancy == "mmr" else _select_best
    skips = is_page_sentence if skip_boilerplate else _skips_nothing
    selected = strategy(sentences, scores, selection, skips)
    if not selected and skip_boilerplate and all(map(is_page_sentence, sentences)):
        return strategy(sentences, scores, selection, _skips_nothing)
    return selected


def _skips_nothing(sentence: str) -> bool:
    return False


def _select_best(
    sentences: Sequence[str],
    scores: np.ndarray,
    selection: SelectionConfig,
    skips: Callable[[str], bool],
) -> list[int]:
    """The best sentences within the word limit.

    With trigram blocking (Paulus et al. 2018), no selected sentence shares three words
    in a row with a better one. As in Liu and Lapata (2019), a blocked sentence is not
    reconsidered, even if fewer sentences than asked for are left.
    """
    blocks_trigrams = selection.redundancy == "trigrams"
    selected: list[int] = []
    used_trigrams: set[tuple[str, ...]] = set()
    words_left = selection.max_words
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(selected) == selection.count:
            break
        if skips(sentences[index]):
            continue
        if blocks_trigrams or selection.max_words:
            sentence = words(sentences[index])
            if selection.max_words and len(sentence) > words_left:
                continue
            if blocks_trigrams:
                trigrams = set(zip(sentence, sentence[1:], sentence[2:], strict=False))
                if not used_trigrams.isdisjoint(trigrams):
                    continue
                used_trigrams |= trigrams
            words_left -= len(sentence)
        selected.append(index)
    return selected


def _select_diverse(
    sentences: Sequence[str],
    scores: np.ndarray,
    selection: SelectionConfig,
    skips: Callable[[str], bool],
) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein 1998): each step selects the
    sentence with the highest

        lambda x relevance - (1 - lambda) x similarity.

    The relevance is the score, scaled so that the best and the worst differ by 1. The
    similarity is the highest cosine of tf-idf vectors with a sentence selected before.
    """
    if not len(scores):
        return []
    terms = find_terms(sentences)
    vectors = terms.matrix(terms.unit_values)
    weight = selection.mmr_lambda
    relevance = scores / (np.ptp(scores) or 1.0)
    similarity = np.zeros(len(scores))
    is_open = np.ones(len(scores), bool)
    selected: list[int] = []
    words_left = selection.max_words
    while len(selected) < selection.count and is_open.any():
        marginal = np.round(weight * relevance - (1 - weight) * similarity, _DIGITS)
        index = int(np.argmax(np.where(is_open, marginal, -np.inf)))
        is_open[index] = False
        length = len(words(sentences[index])) if selection.max_words else 0
        if skips(sentences[index]) or length > words_left:
            continue
        words_left -= length
        selected.append(index)
        with single_thread():
            similarity = np.maximum(similarity, vectors @ _row(vectors, index))
    return selected


def _row(vectors: "np.ndarray | scipy.sparse.csr_array", index: int) -> np.ndarray:
    """A row of a dense or sparse matrix [N, V], float64 [V]."""
    if isinstance(vectors, np.ndarray):
        return vectors[index]
    return vectors[[index]].toarray()[0]
