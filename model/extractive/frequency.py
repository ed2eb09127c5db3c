"""Scores from how often words occur in the document."""

from collections.abc import Sequence

import numpy as np

from precis.model.extractive.terms import find_terms
from precis.model.extractive.threads import one_thread

_GAP_WORDS = 4
_CENTROID_SHARE = 0.3
_ALIKE = 1e-9  # averages that differ by a smaller share are equal
_LEAST_LOGARITHM = -1e100


def frequency(sentences: Sequence[str]) -> np.ndarray:
    """The summed weights of a sentence's words; a word's weight is its stem's frequency
    over the highest one in the document.

    Frequencies are summed as whole numbers and divided once, so that scores are exact:
    of eight words with weights 1, 2/3 (two of them) and 1/3 (five), the sum is 4.0.
    """
    terms = find_terms(sentences)
    return terms.sum_words(terms.frequencies) / terms.frequencies.max(initial=1)


def centroid(sentences: Sequence[str]) -> np.ndarray:
    """The centroid value of MEAD (Radev et al. 2004): the summed weights of a
    sentence's words in the document's centroid.

    A word's weight is its frequency in the document times its inverse sentence
    frequency; the centroid keeps the words that weigh at least 0.3 of the heaviest.
    MEAD takes inverse frequencies from a corpus; a document has only itself.
    """
    terms = find_terms(sentences)
    weights = terms.frequencies * terms.idf
    least = _CENTROID_SHARE * weights.max(initial=0.0)
    return terms.sum_words(np.where((weights > 0.0) & (weights >= least), weights, 0.0))


def luhn(sentences: Sequence[str]) -> np.ndarray:
    """Luhn (1958): the densest cluster of significant words, (significant words)^2 /
    (words from the first to the last).

    Significant are the words whose stem occurs at least twice in the document, without
    stop words. A cluster goes on while no more than four other words lie between two of
    them, as Luhn says; in sumy the fourth already ends it. And sumy gives a cluster of
    one word 0, where the formula gives 1.
    """
    terms = find_terms(sentences)
    scores = np.zeros(terms.sentences)
    places = terms.places[terms.frequencies[terms.terms] > 1]
    if not len(places):
        return scores
    rows = terms.rows[places]
    begins = np.flatnonzero(
        np.append(True, (np.diff(places) > _GAP_WORDS + 1) | (np.diff(rows) > 0))
    )
    ends = np.append(begins[1:], len(places)) - 1
    densities = (ends - begins + 1.0) ** 2 / (places[ends] - places[begins] + 1)
    np.maximum.at(scores, rows[begins], densities)
    return scores


def sumbasic(sentences: Sequence[str]) -> np.ndarray:
    """SumBasic (Nenkova and Vanderwende 2005): N for the sentence it takes first, N - 1
    for the next; 0 for sentences without a term.

    A word's probability is its share of all words. Taken is, among the sentences with
    the most probable word (of equal ones the first in the document), the one whose
    words are most probable on average; then the probability of each of its words is
    squared, as often as it stands there. sumy leaves the most probable word out of the
    rule and takes the best average of all sentences.
    """
    terms = find_terms(sentences)
    rows, columns, counts = terms.cells
    matrix = terms.matrix(counts)
    lengths = np.maximum(terms.lengths, 1)
    holders = np.split(
        rows, np.cumsum(terms.sentence_frequencies)[:-1]
    )  # of each term, the sentences that hold it
    of_row = np.split(
        np.argsort(rows, kind="stable"),
        np.cumsum(np.bincount(rows, minlength=terms.sentences))[:-1],
    )
    waiting = terms.sentence_frequencies.copy()  # how many of them are not taken
    logarithms = np.log(
        terms.frequencies / max(len(terms.terms), 1)
    )  # squaring doubles them exactly: equal words stay equal
    firsts = np.zeros(
        terms.vocabulary, np.int64
    )  # where each term stands for the first time
    firsts[terms.terms[::-1]] = np.arange(len(terms.terms))[::-1]
    by_place = np.argsort(firsts)
    scores = np.zeros(terms.sentences)
    with one_thread():
        for rank in range(int(np.count_nonzero(terms.lengths))):
            candidates = holders[by_place[np.argmax(logarithms[by_place])]]
            candidates = candidates[scores[candidates] == 0.0]
            averages = matrix[candidates] @ np.exp(logarithms) / lengths[candidates]
            taken = candidates[
                np.flatnonzero(averages >= averages.max() * (1 - _ALIKE))[0]
            ]
            scores[taken] = terms.sentences - rank
            cells = of_row[taken]
            used = columns[cells]
            logarithms[used] = np.maximum(
                logarithms[used] * np.exp2(np.minimum(counts[cells], 64)),
                _LEAST_LOGARITHM,
            )
            waiting[used] -= 1
            logarithms[
                used[waiting[used] == 0]
            ] = -np.inf  # in no sentence that can still be taken
    return scores
