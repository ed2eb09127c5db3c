"""Scores from latent semantic analysis."""

from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.terms import Terms
from precis.model.extractive.threads import single_thread

if TYPE_CHECKING:
    import scipy.sparse

_SMOOTHING = 0.4
_MIN_SINGULAR_SHARE = 0.5
_MAX_DIMENSIONS = 64
_SPARE_DIMENSIONS = 16
_ITERATIONS = 12


def lsa(terms: Terms) -> np.ndarray:
    """Steinberger and Jezek (2004): the length of each sentence's vector in the space
    of the main topics of the document; float64 [N].

    The length of the vector of sentence k is sqrt(sum_i v_ki^2 s_i^2), over the
    dimensions i whose singular value s_i is at least half the highest, 64 at most. The
    matrix holds the augmented frequencies 0.4 + 0.6 n / (highest n in the sentence) of
    the terms that a sentence has. sumy differs twice: it also gives 0.4 to the terms
    that a sentence does not have, and it keeps all dimensions, which makes the score
    the length of the sentence's column in the matrix.
    """
    if not terms.vocabulary:
        return np.zeros(terms.sentences)
    rows, _, counts = terms.cells
    highest = np.zeros(terms.sentences)
    np.maximum.at(highest, rows, counts)
    values = _SMOOTHING + (1 - _SMOOTHING) * counts / highest[rows]
    with single_thread():
        if terms.is_small:
            squares, vectors = _topics(terms.products(values))
        else:
            squares, vectors = _topics_by_iteration(terms.matrix(values))
        is_main = squares >= _MIN_SINGULAR_SHARE**2 * squares.max()
        return np.sqrt(vectors[:, is_main] ** 2 @ squares[is_main])


def _topics(products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The main topics of a matrix [N, V], from the inner products of its rows.

    Args:
      products: float64 [N, N].

    Returns:
      The squares of the R <= 64 largest singular values, float64 [R], and their left
      singular vectors, float64 [N, R].
    """
    squares, vectors = np.linalg.eigh(products)  # in ascending order
    return squares[-_MAX_DIMENSIONS:], vectors[:, -_MAX_DIMENSIONS:]


def _topics_by_iteration(
    matrix: "scipy.sparse.csr_array",
) -> tuple[np.ndarray, np.ndarray]:
    """As `_topics`, from the matrix itself, for documents with too many pairs of rows.

    This is orthogonal iteration (Golub and Van Loan, Matrix Computations, section 8.2):
    a few more directions than are needed are multiplied by the matrix and
    orthogonalised, repeatedly. They take the memory of [N + V, 80] numbers.

    Args:
      matrix: float64 [N, V].
    """
    start = np.random.default_rng(0).standard_normal(
        (matrix.shape[1], _MAX_DIMENSIONS + _SPARE_DIMENSIONS)  # pyright: ignore[reportOptionalSubscript]  # Set.
    )
    directions, _ = np.linalg.qr(matrix @ start)  # [N, R]
    for _ in range(_ITERATIONS):
        directions, _ = np.linalg.qr(matrix @ (matrix.T @ directions))
    left, values, _ = np.linalg.svd(directions.T @ matrix, full_matrices=False)
    return values[:_MAX_DIMENSIONS] ** 2, directions @ left[:, :_MAX_DIMENSIONS]
