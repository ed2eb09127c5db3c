"""Scores from the frequencies of words in the document.

Every function maps the sentences of a document to one score per sentence, float64 [N].
"""

from collections.abc import Sequence

import numpy as np

from precis.model.extractive.terms import Terms, find_terms
from precis.model.extractive.threads import single_thread

_MAX_GAP_WORDS = 4
_MIN_CENTROID_SHARE = 0.3
_TIE_TOLERANCE = 1e-9  # averages whose relative difference is smaller are equal
_MIN_LOG_PROBABILITY = -1e100
_MAX_SQUARINGS = 64


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
    _, columns, counts = terms.cells
    matrix = terms.matrix(counts)
    lengths = np.maximum(terms.lengths, 1)
    sentences_by_term, cells_by_sentence = _split_cells(terms)
    open_sentences = terms.sentence_frequencies.copy()  # not yet selected, by term
    # In logarithms, squaring is an exact doubling: equal probabilities stay equal.
    log_probabilities = np.log(terms.frequencies / max(len(terms.content_terms), 1))
    document_order = np.argsort(_first_occurrences(terms))
    scores = np.zeros(terms.sentences)
    with single_thread():
        for rank in range(int(np.count_nonzero(terms.lengths))):
            best_term = document_order[np.argmax(log_probabilities[document_order])]
            candidates = sentences_by_term[best_term]
            candidates = candidates[scores[candidates] == 0.0]
            sums = matrix[candidates] @ np.exp(log_probabilities)
            averages = sums / lengths[candidates]
            is_best = averages >= averages.max() * (1 - _TIE_TOLERANCE)
            selected = candidates[np.flatnonzero(is_best)[0]]
            scores[selected] = terms.sentences - rank
            cells = cells_by_sentence[selected]
            used = columns[cells]
            factors = np.exp2(np.minimum(counts[cells], _MAX_SQUARINGS))
            log_probabilities[used] = np.maximum(
                log_probabilities[used] * factors, _MIN_LOG_PROBABILITY
            )
            open_sentences[used] -= 1
            # A term of selected sentences only cannot select another sentence.
            log_probabilities[used[open_sentences[used] == 0]] = -np.inf
    return scores


def _split_cells(terms: Terms) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The sentences of each term, and the indices of the cells of each sentence."""
    rows = terms.cells[0]
    ends_by_term = np.cumsum(terms.sentence_frequencies)
    ends_by_sentence = np.cumsum(np.bincount(rows, minlength=terms.sentences))
    return (
        np.split(rows, ends_by_term[:-1]),
        np.split(np.argsort(rows, kind="stable"), ends_by_sentence[:-1]),
    )


def _first_occurrences(terms: Terms) -> np.ndarray:
    """The first content word of each term, int64 [V]."""
    first = np.zeros(terms.vocabulary, np.int64)
    # Of repeated indices the last assignment remains, hence the reversed order.
    first[terms.content_terms[::-1]] = np.arange(len(terms.content_terms))[::-1]
    return first
