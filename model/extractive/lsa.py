"""Scores from latent semantic analysis."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from precis.model.extractive.terms import find_terms
from precis.model.extractive.threads import one_thread

_SMOOTHING = 0.4
_LEAST_SHARE = 0.5
_MOST_DIMENSIONS, _SPARE_DIMENSIONS, _ROUNDS = 64, 16, 12


def lsa(sentences: Sequence[str]) -> np.ndarray:
    """Steinberger and Jezek (2004): the length of each sentence's vector in the space
    of the document's main topics.

    sqrt(sum_i v_ki^2 s_i^2) over the dimensions i whose singular value s_i is at least
    half the highest, 64 at most. The matrix holds augmented frequencies, 0.4 + 0.6 n /
    (highest n of the sentence), for the terms that a sentence has. sumy differs in two
    ways: it gives 0.4 to the terms that a sentence does not have, too, and it keeps all
        dimensions, which makes the score the plain length of the column.
    """
    terms = find_terms(sentences)
    if not terms.vocabulary:
        return np.zeros(terms.sentences)
    rows, _, counts = terms.cells
    highest = np.zeros(terms.sentences)
    np.maximum.at(highest, rows, counts)
    values = _SMOOTHING + (1 - _SMOOTHING) * counts / highest[rows]
    with one_thread():
        squares, vectors = (
            _topics(terms.products(values))
            if terms.is_small
            else _topics_by_iteration(terms.matrix(values))
        )
        kept = squares >= _LEAST_SHARE**2 * squares.max()
        return np.sqrt(vectors[:, kept] ** 2 @ squares[kept])


def _topics(products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The squares of the 64 largest singular values of a matrix [N, V], float64 [R],
    and their left vectors, float64 [N, R].

    Args:
      products: float64 [N, N], of its rows.
    """
    squares, vectors = np.linalg.eigh(products)  # from the smallest on
    return squares[-_MOST_DIMENSIONS:], vectors[:, -_MOST_DIMENSIONS:]


def _topics_by_iteration(
    matrix: scipy.sparse.csr_array,
) -> tuple[np.ndarray, np.ndarray]:
    """As `_topics`, for the matrix itself where it is too large to compare all rows.

    Orthogonal iteration: a few more directions than are asked for are multiplied by the
        matrix and made orthogonal, over and over.
    Memory is that of the directions, [N + V, 80].
    """
    start = np.random.default_rng(0).standard_normal(
        (matrix.shape[1], _MOST_DIMENSIONS + _SPARE_DIMENSIONS)
    )
    directions, _ = np.linalg.qr(matrix @ start)  # [N, R]
    for _ in range(_ROUNDS):
        directions, _ = np.linalg.qr(matrix @ (matrix.T @ directions))
    left, values, _ = np.linalg.svd(directions.T @ matrix, full_matrices=False)
    return values[:_MOST_DIMENSIONS] ** 2, directions @ left[:, :_MOST_DIMENSIONS]
