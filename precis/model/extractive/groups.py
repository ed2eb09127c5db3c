"""The summary of several documents.

The candidates are the sentences that were chosen from each document. Nearly equal
sentences (wire copies, quotations) are merged into one candidate with more weight. Then
candidates are scored and chosen by maximal marginal relevance (Carbonell and Goldstein
1998):

    centrality   LexRank over the candidates (Erkan and Radev 2004), up to doubled at
                 the beginning of a document, as in MEAD (Radev et al. 2004)
    salience     with a selector: the centrality in the group times the selector's
                 score, the relevance in the document
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import best_sentences
from precis.model.extractive.graph import lexrank
from precis.model.extractive.terms import Terms, find_terms
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.length_limit import line_size

CENTRALITY = "centrality"
SALIENCE = "salience"
_NEARLY_EQUAL = 0.8  # cosine of the sets of terms of two sentences
_BEGINNING = 300.0  # characters in which the bonus for a beginning falls to 1/e
_RELEVANCE = 0.7  # the weight of relevance; the rest is the weight of novelty


class Candidate(NamedTuple):
    """A sentence that the summary of a group may have.

    Attributes:
      text: the sentence.
      start: the index of its first character in its document.
      score: the selector's score; None if another method chose the sentence.
      copies: the number of documents that have the sentence.
      moment: the time that orders the documents; None if the document has no time.
    """

    text: str
    start: int
    score: float | None
    copies: int
    moment: int | None = None


class GroupChoice(NamedTuple):
    """A sentence of the summary of a group.

    Attributes:
      place: the index of the candidate.
      score: the centrality or salience, scaled to 1 for the best candidate.
      copies: the number of documents with this or a nearly equal sentence.
      line: the headline; empty for other summaries.
    """

    place: int
    score: float
    copies: int
    line: str = ""


def choose_of_group(
    candidates: Sequence[Candidate],
    *,
    selection: SelectionConfig,
    language: str | None = ENGLISH,
    method: str = CENTRALITY,
) -> list[GroupChoice]:
    """Chooses the sentences of a group's summary.

    They are sorted by the moments of their documents, with no moment last, then by
    their positions in the documents, then by score.

    Args:
      candidates: best first, in an order that depends only on the group.
      selection: the number of sentences, the length limit and the form.
      language: the language of the candidates.
      method: `SALIENCE` if the selector scored the candidates, else `CENTRALITY`.
    """
    texts = [each.text for each in candidates]
    (terms,) = find_terms([texts], languages=[language])
    firsts, copies = _merge(candidates, terms)
    kept = [candidates[place] for place in firsts]
    texts = [each.text for each in kept]
    weights = 1.0 + np.log(copies)
    if len(texts) < len(candidates):
        (terms,) = find_terms([texts], languages=[language])
    starts = np.array([each.start for each in kept])
    positions = 1.0 + np.exp(-starts / _BEGINNING)
    scores = lexrank(terms) * positions * weights
    if method == SALIENCE:
        scores *= np.array([each.score for each in kept], np.float64)
    # Relative to the largest, with nine digits.
    scores = np.round(scores / (scores.max(initial=0.0) or 1.0), 9)
    if selection.is_headline and is_english(language):
        from precis.model.extractive.headlines import find_headline

        found = find_headline(texts, scores, limit=selection.limit, is_text=False)
        chosen, line = ([found.place], found.line) if found else ([], "")
    else:
        chosen, line = _select_marginal(texts, scores, terms, selection, language), ""
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
    """Merges nearly equal candidates. Returns the indices of the first of each, and how
    many documents have it or a nearly equal sentence, int64.
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
    """The cosines of the sets of terms of all sentences with the sentence at `place`,
    float64 [N].
    """
    rows, columns, _ = terms.cells
    sizes = np.maximum(np.bincount(rows, minlength=terms.sentences), 1)
    is_shared = np.zeros(terms.vocabulary)
    is_shared[columns[rows == place]] = 1.0
    shared = np.bincount(rows, is_shared[columns], terms.sentences)
    # So that no rounding error decides what is nearly equal.
    return np.round(shared / np.sqrt(sizes * sizes[place]), 9)


def _select_marginal(
    texts: Sequence[str],
    scores: np.ndarray,
    terms: Terms,
    selection: SelectionConfig,
    language: str | None,
) -> list[int]:
    """Selects the sentences with the highest marginal relevance, first choice first.

    Each step takes the sentence with the highest 0.7 relevance - 0.3 similarity, where
    similarity is the highest cosine with a sentence taken before. If values are equal,
    it takes the first.
    """
    left = best_sentences(
        texts, scores, count=len(texts), limit=selection.limit, language=language
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
