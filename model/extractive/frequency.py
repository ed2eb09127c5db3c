"""Scores from the frequencies of words in the document.

Every function maps the sentences of a document to one score per sentence, float64 [N].
"""

import heapq
import math
from collections.abc import Sequence

import numpy as np

from precis.model.extractive.terms import Terms, find_terms

_MAX_GAP_WORDS = 4
_MIN_CENTROID_SHARE = 0.3
_TIE_TOLERANCE = 1e-9  # averages whose relative difference is smaller are equal
_MIN_LOG_PROBABILITY = -1e100
_MAX_SQUARINGS = 64

# A term of a sentence that another one has too: its number, its occurrences in the
# sentence, and the factor of its logarithm when the sentence is selected.
_SharedTerm = tuple[int, float, float]


def frequency(sentences: Sequence[str]) -> np.ndarray:
    """Weighted word frequency: the sum of the weights of a sentence's words.

    The weight of a word is the frequency of its stem over the highest frequency in the
    document. Frequencies are summed as integers and divided once, so that scores are
    exact: eight words with the weights 1, 2/3 (two words) and 1/3 (five words) have the
    sum 4.0.
    """
    terms = find_terms(sentences)
    return terms.sum_words(terms.frequencies) / terms.frequencies.max(initial=1)


def centroid(sentences: Sequence[str]) -> np.ndarray:
    """The centroid value of MEAD (Radev et al. 2004): the sum of the weights of a
    sentence's words in the centroid of the document.

    The weight of a word is its frequency in the document times its inverse sentence
    frequency. The centroid contains the words with at least 0.3 of the highest weight.
    MEAD takes inverse document frequencies from a corpus; here only the document is
    known.
    """
    terms = find_terms(sentences)
    weights = terms.frequencies * terms.idf
    threshold = _MIN_CENTROID_SHARE * weights.max(initial=0.0)
    is_in_centroid = (weights > 0.0) & (weights >= threshold)
    return terms.sum_words(np.where(is_in_centroid, weights, 0.0))


def luhn(sentences: Sequence[str]) -> np.ndarray:
    """Luhn (1958): the score of a sentence's densest cluster of significant words,
    (number of significant words)^2 / (words from the first to the last).

    A word is significant if its stem occurs at least twice in the document and it is no
    stop word. At most four other words lie between two significant words of a cluster,
    as in the paper; in sumy four words already end the cluster. sumy gives a cluster of
    one word the score 0, where the formula gives 1.
    """
    terms = find_terms(sentences)
    scores = np.zeros(terms.sentences)
    is_significant = terms.frequencies[terms.content_terms] > 1
    positions = terms.content_positions[is_significant]
    if not len(positions):
        return scores
    rows = terms.rows[positions]
    has_wide_gap = np.diff(positions) > _MAX_GAP_WORDS + 1
    starts_sentence = np.diff(rows) > 0
    first = np.flatnonzero(np.append(True, has_wide_gap | starts_sentence))
    last = np.append(first[1:], len(positions)) - 1
    words = positions[last] - positions[first] + 1
    np.maximum.at(scores, rows[first], (last - first + 1.0) ** 2 / words)
    return scores


def sumbasic(sentences: Sequence[str]) -> np.ndarray:
    """SumBasic (Nenkova and Vanderwende 2005), as ranks: N for the sentence that it
    selects first, N - 1 for the second, and 0 for sentences without a term.

    The probability of a word is its share of all words of the document. Each step

    1. takes the most probable word, of equally probable words the first in the
       document,
    2. selects, of the sentences that contain it, the one whose words have the highest
       average probability,
    3. squares the probability of every word of this sentence, once per occurrence.

    sumy omits step 1 and compares all sentences.
    """
    terms = find_terms(sentences)
    if not len(terms.content_terms):
        return np.zeros(terms.sentences)
    probabilities = (terms.frequencies / len(terms.content_terms)).tolist()
    # In logarithms, squaring is an exact doubling: equal probabilities stay equal.
    logs = np.log(terms.frequencies / len(terms.content_terms)).tolist()
    first = _first_occurrences(terms).tolist()
    lengths = terms.lengths.tolist()
    own_sums, shared = _split_cells(terms)
    candidates_of = _candidates_by_term(terms, shared)
    # The first is the most probable term, or one that was before it was squared.
    queue = [(-logs[term], first[term], term) for term in candidates_of]
    heapq.heapify(queue)
    ranks = [0.0] * terms.sentences
    open_sentences = int(np.count_nonzero(terms.lengths))
    rank = float(terms.sentences)
    while open_sentences:
        cost, place, term = queue[0]
        if cost != -logs[term]:
            heapq.heapreplace(queue, (-logs[term], place, term))
            continue
        candidates = [row for row in candidates_of[term] if not ranks[row]]
        if not candidates:
            heapq.heappop(queue)
            continue
        selected = candidates[0]
        if len(candidates) > 1:
            averages = [
                (own_sums[row] + sum([probabilities[t] * n for t, n, _ in shared[row]]))
                / lengths[row]
                for row in candidates
            ]
            least = max(averages) * (1 - _TIE_TOLERANCE)
            selected = next(
                row
                for row, average in zip(candidates, averages, strict=True)
                if average >= least
            )
        ranks[selected] = rank
        rank -= 1
        open_sentences -= 1
        for used, _, factor in shared[selected]:
            logs[used] = max(logs[used] * factor, _MIN_LOG_PROBABILITY)
            probabilities[used] = math.exp(logs[used])
    return np.array(ranks)


def _split_cells(terms: Terms) -> tuple[list[float], list[list[_SharedTerm]]]:
    """The terms of each sentence: the sum of the probabilities of those that it has
    alone, which stays the same until it is selected, and the others.
    """
    rows, columns, counts = terms.cells
    is_shared = (terms.sentence_frequencies > 1)[columns]
    own = columns[~is_shared]
    own_sums = np.bincount(
        rows[~is_shared],
        terms.frequencies[own] / len(terms.content_terms) * counts[~is_shared],
        terms.sentences,
    )
    shared: list[list[_SharedTerm]] = [[] for _ in range(terms.sentences)]
    counts = counts[is_shared]
    factors = np.exp2(np.minimum(counts, _MAX_SQUARINGS))
    cells = zip(
        columns[is_shared].tolist(), counts.tolist(), factors.tolist(), strict=True
    )
    for row, cell in zip(rows[is_shared].tolist(), cells, strict=True):
        shared[row].append(cell)
    return own_sums.tolist(), shared


def _candidates_by_term(
    terms: Terms, shared: list[list[_SharedTerm]]
) -> dict[int, list[int]]:
    """The sentences of each term that can select one.

    Of the terms that a sentence has alone, only the most probable can, and of equal
    ones the first.
    """
    rows, columns, _ = terms.cells
    candidates: dict[int, list[int]] = {}
    for row, of_sentence in enumerate(shared):
        for term, _, _ in of_sentence:
            candidates.setdefault(term, []).append(row)
    is_own = (terms.sentence_frequencies == 1)[columns]
    rows, columns = rows[is_own], columns[is_own]
    first = _first_occurrences(terms)[columns]
    best_last = np.lexsort((-first, terms.frequencies[columns]))
    best = dict(zip(rows[best_last].tolist(), columns[best_last].tolist(), strict=True))
    return candidates | {term: [row] for row, term in best.items()}


def _first_occurrences(terms: Terms) -> np.ndarray:
    """The first content word of each term, int64 [V]."""
    first = np.zeros(terms.vocabulary, np.int64)
    # Of repeated indices the last assignment remains, hence the reversed order.
    first[terms.content_terms[::-1]] = np.arange(len(terms.content_terms))[::-1]
    return first
