"""Scores from the graph of sentences: the weight of an edge is the similarity of its
two sentences.

Every method maps the terms of a document to one score per sentence, float64 [N].

The edges of a small document are a matrix [N, N]. For a long document only products of
the edges with a vector are computed, from the sparse matrix [N, V] of terms. So time
and memory grow with the number of words of the document.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from precis.model.extractive.terms import Terms
from precis.model.extractive.threads import single_thread

# The share of the steps that follow edges, in both papers as in Brin and Page (1998).
_DAMPING = 0.85
_TOLERANCE = 1e-13
# Enough for every random walk to converge: 0.85^250 is below 1e-17.
_MAX_STEPS = 250
_LENGTHS_PER_BLOCK = 32
# lambda1 and lambda2 of PacSum.
_BACKWARD_WEIGHT = -1.0
_FORWARD_WEIGHT = 2.0


def lexrank(terms: Terms) -> np.ndarray:
    """Continuous LexRank (Erkan and Radev 2004, equation 9): the stationary
    distribution of a random walk over similar sentences.

    The similarity of two sentences is the cosine of their tf-idf vectors. With
    probability 0.85 a step follows an edge, drawn by its weight; else it goes to any
    sentence. The continuous form keeps all weights; without a threshold it needs no
    matrix of all pairs. sumy keeps only edges above 0.1 and counts each as 1, does not
    damp the walk and stops it after few steps (epsilon 0.1).
    """
    if terms.is_small:
        return _walk(terms.products(terms.unit_values))
    unit = terms.matrix(terms.unit_values)
    return _walk_by_steps(lambda x: unit @ (unit.T @ x), terms.sentences)


def textrank(terms: Terms) -> np.ndarray:
    """TextRank (Mihalcea and Tarau 2004): a random walk as in LexRank, over edges of
    shared words.

    The weight of an edge is the number of pairs of equal words, one of each sentence,
    over log |S_i| + log |S_j|, where |S| is the number of content words. Between two
    sentences of one content word this sum is 0 and the weight is 1, as in sumy. Unlike
    in sumy, no sentence has an edge to itself: such an edge favours long sentences with
    repeated words.
    """
    counts = terms.cells[2]
    log_lengths = np.log(np.maximum(terms.lengths, 1))
    if not terms.is_small:
        multiply = _shared_word_edges(terms, terms.matrix(counts), log_lengths)
        return _walk_by_steps(multiply, terms.sentences)
    edges = terms.products(counts)
    sums = np.add.outer(log_lengths, log_lengths)
    sums[sums == 0.0] = 1.0
    edges /= sums
    edges.flat[:: len(edges) + 1] = 0.0
    return _walk(edges)


def pacsum(terms: Terms) -> np.ndarray:
    """Directed centrality with tf-idf (PacSum, Zheng and Lapata 2019, equation 5):
    2 x similarity to later sentences - similarity to earlier sentences.

    A sentence of a news story matters if later sentences return to its content, and
    less if it repeats earlier sentences. The similarity is the cosine of LexRank. The
    threshold beta is 0, so that sums over pairs of sentences are sums over terms. The
    weights lambda1 = -1 and lambda2 = 2 add up to 1, as in the paper; they were chosen
    on training articles of CNN/DailyMail.
    """
    # The cells of a term are in the order of the sentences.
    rows, columns, _ = terms.cells
    values = terms.unit_values
    if not len(values):
        return np.zeros(terms.sentences)
    totals = np.bincount(columns, values, terms.vocabulary)
    term_starts = (np.cumsum(totals) - totals)[columns]
    earlier = np.cumsum(values) - values - term_starts
    later = totals[columns] - earlier - values
    centralities = values * (_BACKWARD_WEIGHT * earlier + _FORWARD_WEIGHT * later)
    return np.bincount(rows, centralities, terms.sentences)


def _walk(edges: np.ndarray) -> np.ndarray:
    """The stationary distribution of a damped random walk, float64 [N].

    With the degrees D of the edges W and p = D q, the definition p = 0.15 / N + 0.85 W
    D^-1 p is the linear system (D - 0.85 W) q = 0.15 / N, which is symmetric and
    positive definite.

    Args:
      edges: float64 [N, N], symmetric, not negative, overwritten. A node without edges
          is reached only by the steps that follow no edge.
    """
    from scipy.linalg.lapack import dposv  # pyright: ignore[reportAttributeAccessIssue]  # Made by f2py; 0.3 s that most jobs do without.

    count = len(edges)
    if not count:
        return np.zeros(0)
    degrees = edges.sum(axis=0)
    degrees[degrees == 0.0] = 1.0
    edges *= -_DAMPING
    edges.flat[:: count + 1] += degrees
    constants = np.full(count, (1.0 - _DAMPING) / count)
    with single_thread(count**3):
        _, solution, _ = dposv(edges.T, constants, overwrite_a=True)
    return degrees * solution


def _walk_by_steps(
    multiply: Callable[[np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """Computes `_walk` by repeated steps until the distribution converges.

    Args:
      multiply: the product of the edges with a vector [N].
      count: N.
    """
    damped_inverse_degrees = _DAMPING * _inverse(multiply(np.ones(count)))
    shares = np.full(count, 1.0 / count)
    for _ in range(_MAX_STEPS):
        before = shares
        shares = multiply(damped_inverse_degrees * shares) + (1.0 - _DAMPING) / count
        if np.abs(shares - before).sum() <= _TOLERANCE:
            break
    return shares


def _shared_word_edges(
    terms: Terms, counts: Any, log_lengths: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The product of the edges of TextRank with a vector [N].

    The weight of an edge depends on the lengths of its two sentences, and a document
    has only L distinct lengths. With B = `counts` and w(l, m) the weight for the
    lengths l and m, the product is a sum over lengths,

        y_i = sum_l w(l_i, l) (B (B^T x restricted to the sentences of length l))_i,

    which takes O(L) products with B. They are computed for 32 lengths at a time.

    Args:
      terms: the terms of the document.
      counts: the occurrences of terms in sentences, sparse float64 [N, V].
      log_lengths: the logarithms of the numbers of content words, float64 [N].
    """
    lengths, length_index = np.unique(log_lengths, return_inverse=True)
    weights = _inverse(np.add.outer(lengths, lengths))  # [L, L]
    loops = (counts * counts).sum(axis=1) * weights.diagonal()[length_index]

    def multiply(x: np.ndarray) -> np.ndarray:
        y = -loops * x
        for first in range(0, len(lengths), _LENGTHS_PER_BLOCK):
            width = min(_LENGTHS_PER_BLOCK, len(lengths) - first)
            in_block = (length_index >= first) & (length_index < first + width)
            rows = np.flatnonzero(in_block)
            columns = np.zeros((terms.sentences, width))
            columns[rows, length_index[rows] - first] = x[rows]
            shared = counts @ (counts.T @ columns)  # [N, width]
            block_weights = weights[length_index, first : first + width]
            y += np.einsum("nl,nl->n", shared, block_weights)
        return y

    return multiply


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 / x for each x, and 1 where x is 0."""
    return 1.0 / np.where(values == 0.0, 1.0, values)
