"""Scores from the graph of sentences: nodes are sentences, edges weigh how much two of
them share.

A small document's edges are a matrix [N, N]. Those of a long one are never formed: what
a method asks of them is a product with a vector, and that needs the sparse matrix [N,
V] of terms alone, so that time and memory grow with the words of the document.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg.lapack import dposv

from precis.model.extractive.terms import Terms, find_terms
from precis.model.extractive.threads import one_thread

# share of the walk that follows edges; both papers and Brin and Page (1998) take it
_DAMPING = 0.85
_TOLERANCE, _MOST_STEPS = (
    1e-13,
    250,
)  # 0.85^250 is below 1e-17: a walk has always settled by then
_LENGTHS_AT_ONCE = 32
_BACKWARD, _FORWARD = -1.0, 2.0


def lexrank(sentences: Sequence[str]) -> np.ndarray:
    """Continuous LexRank (Erkan and Radev 2004, equation 9): how often a random walk
    over similar sentences comes by.

    Two sentences are as similar as the cosine of their tf-idf vectors; the walk goes on
    with probability 0.85 along an edge drawn by its weight, else to any sentence. sumy
    keeps edges above 0.1 only and counts them as 1, does not damp the walk, and stops
    it after few steps (epsilon 0.1); the continuous form loses no weight and, having no
    threshold, needs no matrix of all pairs.
    """
    terms = find_terms(sentences)
    if terms.is_small:
        return _walk(terms.products(terms.unit_values))
    unit = terms.matrix(terms.unit_values)
    return _walk_by_steps(lambda x: unit @ (unit.T @ x), terms.sentences)


def textrank(sentences: Sequence[str]) -> np.ndarray:
    """TextRank (Mihalcea and Tarau 2004): a random walk as in LexRank, over edges of
    shared words.

    An edge weighs the number of words two sentences share, each as often as they pair
    up, over log |S_i| + log |S_j|; |S| counts words with a term. Between two sentences
    of one such word that sum is 0 and the edge weighs 1, as in sumy. Unlike sumy, no
    sentence has
    an edge to itself: it would favour long sentences with repeated words, and a
        sentence does not recommend itself.
    """
    terms = find_terms(sentences)
    counts = terms.cells[2]
    logarithms = np.log(np.maximum(terms.lengths, 1))
    if not terms.is_small:
        return _walk_by_steps(
            _shared_words(terms, terms.matrix(counts), logarithms), terms.sentences
        )
    edges = terms.products(counts)
    lengths = np.add.outer(logarithms, logarithms)
    lengths[lengths == 0.0] = 1.0
    edges /= lengths
    edges.flat[:: len(edges) + 1] = 0.0
    return _walk(edges)


def pacsum(sentences: Sequence[str]) -> np.ndarray:
    """Directed centrality with tf-idf (PacSum, Zheng and Lapata 2019, equation 5): 2 x
    similarity to what follows - to what went before.

    What a news story says early and takes up later matters; what repeats earlier
    sentences does not. Similarity is the cosine of LexRank; the threshold beta is 0, so
    that sums over pairs are sums over terms. The weights lambda1 = -1 and lambda2 = 2
    add up to 1, as in the paper; they were chosen on CNN/DailyMail training articles.
    """
    terms = find_terms(sentences)
    rows, columns, _ = (
        terms.cells
    )  # by term, and for a term from the first sentence to the last
    values = terms.unit_values
    if not len(values):
        return np.zeros(terms.sentences)
    totals = np.bincount(columns, values, terms.vocabulary)
    upto = np.cumsum(values)
    before = upto - values - (np.cumsum(totals) - totals)[columns]
    after = totals[columns] - before - values
    return np.bincount(
        rows, values * (_BACKWARD * before + _FORWARD * after), terms.sentences
    )


def _walk(edges: np.ndarray) -> np.ndarray:
    """The share of time a damped random walk spends at each node.

    With the degrees D of the edges W and p = D q, the definition p = 0.15 / N + 0.85 W
    D^-1 p is the linear system (D - 0.85 W) q = 0.15 / N, symmetric and positive
    definite.

    Args:
      edges: float64 [N, N], symmetric, at least 0, overwritten; a node without edges is
          only ever jumped to.
    """
    count = len(edges)
    if not count:
        return np.zeros(0)
    degrees = edges.sum(axis=0)
    degrees[degrees == 0.0] = 1.0
    system = edges
    system *= -_DAMPING
    system.flat[:: count + 1] += degrees
    with one_thread(count**3):
        _, solution, _ = dposv(
            system.T, np.full(count, (1.0 - _DAMPING) / count), overwrite_a=True
        )
    return degrees * solution


def _walk_by_steps(
    multiply: Callable[[np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """As `_walk`, step by step until nothing moves, for `multiply` the product of the
    edges with a vector [N].
    """
    outwards = _DAMPING * _inverse(multiply(np.ones(count)))
    shares = np.full(count, 1.0 / count)
    for _ in range(_MOST_STEPS):
        before = shares
        shares = multiply(outwards * shares) + (1.0 - _DAMPING) / count
        if np.abs(shares - before).sum() <= _TOLERANCE:
            break
    return shares


def _shared_words(
    terms: Terms, counts: "np.ndarray", logarithms: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """The product of TextRank's edges with a vector [N].

    The weight of an edge depends on its ends by two lengths, and a document has few
    different ones, L. So the sum over all other sentences
    is one over lengths: y_i = sum_l w(l_i, l) (B (B^T x restricted to length l))_i, in
        O(L) products with B = `counts`, 32 lengths at
    a time.
    """
    lengths, of_length = np.unique(logarithms, return_inverse=True)
    weights = _inverse(np.add.outer(lengths, lengths))  # [L, L]
    to_itself = (counts * counts).sum(axis=1) * weights.diagonal()[of_length]

    def multiply(x: np.ndarray) -> np.ndarray:
        y = -to_itself * x
        for first in range(0, len(lengths), _LENGTHS_AT_ONCE):
            here = np.flatnonzero(
                (of_length >= first) & (of_length < first + _LENGTHS_AT_ONCE)
            )
            columns = np.zeros(
                (terms.sentences, min(_LENGTHS_AT_ONCE, len(lengths) - first))
            )
            columns[here, of_length[here] - first] = x[here]
            shared = counts @ (counts.T @ columns)  # [N, up to 32]
            y += np.einsum(
                "nl,nl->n", shared, weights[of_length, first : first + columns.shape[1]]
            )
        return y

    return multiply


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 / x, and 1 where x is 0."""
    return 1.0 / np.where(values == 0.0, 1.0, values)
