"""The extractive methods by name. Baselines and scores from word frequencies or topics
are here; scores from the graph of sentences are in `graph`.

Each method returns one score per sentence of a document, float64 [N]; higher is better.
The scores depend only on the sentences of the document, or on their terms.
"""

import hashlib
import random as random_numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model.extractive.graph import lexrank, pacsum, textrank
from precis.model.extractive.terms import Terms
from precis.model.extractive.threads import single_thread

_MAX_GAP_WORDS = 4
_MIN_CENTROID_SHARE = 0.3
_TIE_TOLERANCE = 1e-9  # averages whose relative difference is smaller are equal
_MIN_LOG_PROBABILITY = -1e100
_MAX_SQUARINGS = 64
_LSA_SMOOTHING = 0.4
_MIN_SINGULAR_SHARE = 0.5
_MAX_TOPICS = 64
_SPARE_TOPICS = 16
_ITERATIONS = 12


def lead(sentences: Sequence[str]) -> np.ndarray:
    """Takes the first sentences, a strong baseline on news: scores from N down to 1."""
    return np.arange(len(sentences), 0, -1, dtype=np.float64)


def random(sentences: Sequence[str]) -> np.ndarray:
    """The lower baseline: random numbers between 0 and 1.

    The seed is the sha256 of the text, so that all runs draw the same numbers.
    """
    text = "\n".join(sentences).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(text).digest()
    draw = random_numbers.Random(int.from_bytes(digest, "big")).random
    return np.array([draw() for _ in sentences], np.float64)


def frequency(terms: Terms) -> np.ndarray:
    """Weighted word frequency: the sum of the weights of a sentence's words.

    The weight of a word is the frequency of its stem over the highest frequency in the
    document. Frequencies are summed as integers and divided once, so that equal sums
    are equal scores.
    """
    return terms.sum_words(terms.frequencies) / terms.frequencies.max(initial=1)


def centroid(terms: Terms) -> np.ndarray:
    """The centroid value of MEAD (Radev et al. 2004): the sum of the weights of a
    sentence's words in the centroid of the document.

    The weight of a word is its frequency in the document times its inverse sentence
    frequency. The centroid contains the words with at least 0.3 of the highest weight.
    MEAD takes inverse document frequencies from a corpus; here only the document is
    known.
    """
    weights = terms.frequencies * terms.idf
    threshold = _MIN_CENTROID_SHARE * weights.max(initial=0.0)
    is_in_centroid = (weights > 0.0) & (weights >= threshold)
    return terms.sum_words(np.where(is_in_centroid, weights, 0.0))


def luhn(terms: Terms) -> np.ndarray:
    """Luhn (1958): the score of a sentence's densest cluster of significant words,
    (number of significant words)^2 / (words from the first to the last).

    A word is significant if it is not a stop word and its stem occurs at least twice in
    the document. At most four other words lie between two significant words of a
    cluster, as in the paper; in sumy four words end the cluster. sumy scores a cluster
    of one word 0, where the formula gives 1.
    """
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


def sumbasic(terms: Terms) -> np.ndarray:
    """SumBasic (Nenkova and Vanderwende 2005), as ranks: N for the sentence selected
    first, N - 1 for the second, and 0 for sentences without a term.

    The probability of a word is its share of all words of the document. Each step

    1. takes the most probable word; if several are equal, the first in the document,
    2. selects, among the sentences with this word, the sentence whose words have the
       highest average probability,
    3. squares the probability of each word of this sentence, once per occurrence.

    sumy omits step 1 and compares all sentences.
    """
    rows, columns, counts = terms.cells
    _, first_words = np.unique(terms.content_terms, return_index=True)
    in_text_order = np.argsort(first_words)
    probabilities = terms.frequencies / max(len(terms.content_terms), 1)
    # In logarithms, squaring is an exact doubling: equal probabilities stay equal.
    logs = np.log(probabilities)
    open_sentences = terms.sentence_frequencies.copy()  # with each term
    ranks = np.zeros(terms.sentences)
    for step in range(np.count_nonzero(terms.lengths)):
        of_open = np.where(open_sentences > 0, logs, -np.inf)
        term = in_text_order[np.argmax(of_open[in_text_order])]
        candidates = rows[(columns == term) & (ranks[rows] == 0.0)]
        sums = np.bincount(rows, probabilities[columns] * counts)
        averages = sums[candidates] / terms.lengths[candidates]
        is_best = averages >= averages.max() * (1 - _TIE_TOLERANCE)
        selected = candidates[np.argmax(is_best)]
        ranks[selected] = terms.sentences - step
        is_used = rows == selected
        used = columns[is_used]
        open_sentences[used] -= 1
        factors = np.exp2(np.minimum(counts[is_used], _MAX_SQUARINGS))
        logs[used] = np.maximum(logs[used] * factors, _MIN_LOG_PROBABILITY)
        probabilities[used] = np.exp(logs[used])
    return ranks


def lsa(terms: Terms) -> np.ndarray:
    """Latent semantic analysis (Steinberger and Jezek 2004): the length of each
    sentence's vector in the space of the document's main topics.

    The length of the vector of sentence k is sqrt(sum_i v_ki^2 s_i^2), over the at most
    64 dimensions i whose singular value s_i is at least half the highest. The matrix
    holds the augmented frequency 0.4 + 0.6 n / (highest n in the sentence) of each term
    that a sentence has. sumy also gives 0.4 to the terms that a sentence lacks, and
    keeps all dimensions, so that its score is the length of the sentence's column.
    """
    if not terms.vocabulary:
        return np.zeros(terms.sentences)
    rows, _, counts = terms.cells
    highest = np.zeros(terms.sentences)
    np.maximum.at(highest, rows, counts)
    values = _LSA_SMOOTHING + (1 - _LSA_SMOOTHING) * counts / highest[rows]
    with single_thread():
        if terms.is_small:
            # In ascending order.
            squares, vectors = np.linalg.eigh(terms.products(values))
            squares, vectors = squares[-_MAX_TOPICS:], vectors[:, -_MAX_TOPICS:]
        else:
            squares, vectors = _topics_by_iteration(terms.matrix(values))
        is_main = squares >= _MIN_SINGULAR_SHARE**2 * squares.max()
        return np.sqrt(vectors[:, is_main] ** 2 @ squares[is_main])


def _topics_by_iteration(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """The main topics of a document with too many pairs of sentences.

    This is orthogonal iteration (Golub and Van Loan, Matrix Computations, section 8.2):
    80 directions, more than are needed, are repeatedly multiplied by the matrix and
    orthogonalised. They take the memory of [N + V, 80] numbers.

    Args:
      matrix: sparse float64 [N, V].

    Returns:
      The squares of the R <= 64 largest singular values, float64 [R], and their left
      singular vectors, float64 [N, R].
    """
    start = np.random.default_rng(0).standard_normal(
        (matrix.shape[1], _MAX_TOPICS + _SPARE_TOPICS)
    )
    directions, _ = np.linalg.qr(matrix @ start)  # [N, R]
    for _ in range(_ITERATIONS):
        directions, _ = np.linalg.qr(matrix @ (matrix.T @ directions))
    left, values, _ = np.linalg.svd(directions.T @ matrix, full_matrices=False)
    return values[:_MAX_TOPICS] ** 2, directions @ left[:, :_MAX_TOPICS]


TEXT_METHODS: Mapping[str, Callable[[Sequence[str]], np.ndarray]] = {
    "lead": lead,
    "random": random,
}
TERM_METHODS: Mapping[str, Callable[[Terms], np.ndarray]] = {
    "frequency": frequency,
    "lexrank": lexrank,
    "textrank": textrank,
    "lsa": lsa,
    "luhn": luhn,
    "sumbasic": sumbasic,
    "centroid": centroid,
    "pacsum": pacsum,
}
METHODS = (*TEXT_METHODS, *TERM_METHODS)


def score_sentences(
    method: str, sentences: Sequence[str], terms: Terms | None
) -> np.ndarray:
    """Scores the sentences of a document by one of METHODS, float64 [N].

    Args:
      method: the name of the method.
      sentences: the sentences of the document.
      terms: the terms of the sentences; may be None for TEXT_METHODS.
    """
    if method in TEXT_METHODS:
        return TEXT_METHODS[method](sentences)
    assert terms is not None
    return TERM_METHODS[method](terms)
