"""The summary of several documents: sentences of all of them, each chosen once.

The candidates are the sentences that were chosen of each document. Nearly equal ones
(wire copies, quotations) count as one candidate, which weighs more. What remains is
scored, and sentences are chosen by maximal marginal relevance (Carbonell and Goldstein
1998):

    centrality   LexRank over the candidates (Erkan and Radev 2004), up to twice as much
                 for the beginning of a document, as MEAD weighs positions (Radev et al.
                 2004)
    salience     with a selector: centrality times its score of the sentence, a
                 product of the relevance in the document and the centrality in the
                 group
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import best_sentences
from precis.model.extractive.graph import lexrank
from precis.model.extractive.headlines import find_headline
from precis.model.extractive.terms import Terms, find_terms
from precis.model.text.length_limit import line_size

CENTRALITY = "centrality"
SALIENCE = "salience"
# Two sentences of which the cosine of their sets of terms is so high say the same.
_NEARLY_EQUAL = 0.8
# Behind so many characters, the beginning of a document weighs less by a factor of e.
_BEGINNING = 300.0
# The weight of relevance beside that of novelty.
_RELEVANCE = 0.7


class Candidate(NamedTuple):
    """A sentence that the summary of a group may have.

    Attributes:
      text: the sentence.
      start: its first character in its document.
      score: of the selector; None if another method chose it.
      copies: the documents that have it.
      moment: what orders the documents; None where its document has none.
    """

    text: str
    start: int
    score: float | None
    copies: int
    moment: int | None = None


class GroupChoice(NamedTuple):
    """A sentence of the summary of a group.

    Attributes:
      place: among the candidates.
      score: its centrality or salience, 1 for the highest of the candidates.
      copies: the documents that have it or nearly the same, by their candidates.
      line: the headline that it gives; empty of other summaries.
    """

    place: int
    score: float
    copies: int
    line: str = ""


def choose_of_group(
    candidates: Sequence[Candidate],
    *,
    selection: SelectionConfig,
    is_english: bool = True,
    method: str = CENTRALITY,
) -> list[GroupChoice]:
    """The sentences of a group's summary.

    The sentences come in the order of the moments of their documents, those without one
    last, and then of their places in them; equal places by score.

    Args:
      candidates: in an order that depends on nothing but the group, best first.
      selection: how many sentences and words, at most.
      is_english: whether English stop words and stems are known.
      method: `SALIENCE` where the selector scored the candidates.
    """
    texts = [each.text for each in candidates]
    (terms,) = find_terms([texts], is_english=is_english)
    firsts, copies = _merge(candidates, terms)
    kept = [candidates[place] for place in firsts]
    texts = [each.text for each in kept]
    weights = 1.0 + np.log(copies)
    if len(texts) < len(candidates):
        (terms,) = find_terms([texts], is_english=is_english)
    starts = np.array([each.start for each in kept])
    positions = 1.0 + np.exp(-starts / _BEGINNING)
    scores = lexrank(terms) * positions * weights
    if method == SALIENCE:
        scores *= np.array([each.score for each in kept], np.float64)
    # In units of the largest, to nine digits.
    scores = np.round(scores / (scores.max(initial=0.0) or 1.0), 9)
    if selection.is_headline and is_english:
        found = find_headline(texts, scores, limit=selection.limit, is_text=False)
        chosen, line = ([found.place], found.line) if found else ([], "")
    else:
        chosen, line = _select_marginal(texts, scores, terms, selection, is_english), ""
    choices = [
        GroupChoice(firsts[n], float(scores[n]), int(copies[n]), line) for n in chosen
    ]

    def place_in_time(choice: GroupChoice) -> tuple[float, ...]:
        candidate = candidates[choice.place]
        moment = math.inf if candidate.moment is None else candidate.moment
        return moment, candidate.start, -choice.score

    return sorted(choices, key=place_in_time)


def _merge(
    candidates: Sequence[Candidate], terms: Terms
) -> tuple[list[int], np.ndarray]:
    """The places of the candidates that are like none before them, and the documents
    that have each of them or one like it, int64.
    """
    is_left = np.ones(len(candidates), bool)
    firsts, copies = [], []
    counts = np.array([each.copies for each in candidates], np.int64)
    for place in range(len(candidates)):
        if is_left[place]:
            like = is_left & (_cosines(terms, place) >= _NEARLY_EQUAL)
            like[place] = True
            is_left &= ~like
            firsts.append(place)
            copies.append(counts[like].sum())
    return firsts, np.array(copies, np.int64)


def _cosines(terms: Terms, place: int) -> np.ndarray:
    """The cosines of the sets of terms of all sentences with that of one, float64
    [N].
    """
    rows, columns, _ = terms.cells
    sizes = np.maximum(np.bincount(rows, minlength=terms.sentences), 1)
    is_shared = np.zeros(terms.vocabulary)
    is_shared[columns[rows == place]] = 1.0
    shared = np.bincount(rows, is_shared[columns], terms.sentences)
    # A rounding error must not decide what is nearly equal.
    return np.round(shared / np.sqrt(sizes * sizes[place]), 9)


def _select_marginal(
    texts: Sequence[str],
    scores: np.ndarray,
    terms: Terms,
    selection: SelectionConfig,
    is_english: bool,
) -> list[int]:
    """The sentences with the highest marginal relevance, the first choice first.

    Each step takes the sentence with the highest 0.7 relevance - 0.3 similarity, where
    similarity is the highest cosine with a sentence that was taken before. Of equal
    ones it takes the first.
    """
    left = best_sentences(
        texts, scores, count=len(texts), limit=selection.limit, is_english=is_english
    )
    similarities = np.zeros(len(texts))
    sizes = [line_size(each) for each in texts]
    chosen: list[int] = []
    while left and len(chosen) < selection.count:
        values = _RELEVANCE * scores[left] - (1 - _RELEVANCE) * similarities[left]
        place = left[int(np.round(values, 9).argmax())]
        chosen.append(place)
        similarities = np.maximum(similarities, _cosines(terms, place))
        left = [
            n
            for n in left
            if n != place
            and selection.limit.holds(sizes[each] for each in (*chosen, n))
        ]
    return chosen
