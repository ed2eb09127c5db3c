"""Tests of the scores from the graph of sentences: computed by hand, and for long
documents from the matrix of all pairs.
"""

import math

import numpy as np
import pytest
from support.extractive_documents import count_words, long_document, scores_of, terms_of


def walk(edges):
    """PageRank by its definition, five hundred steps."""
    shares = np.full(len(edges), 1 / len(edges))
    towards = (edges / np.maximum(edges.sum(axis=1, keepdims=True), 1e-99)).T
    for _ in range(500):
        shares = 0.15 / len(edges) + 0.85 * towards @ shares
    return shares


@pytest.fixture(scope="module")
def long_texts():
    texts = long_document(300)
    assert not terms_of(texts).is_small
    return texts


@pytest.fixture(scope="module")
def long_cosines(long_texts):
    long_counts = count_words(long_texts)
    sentence_frequencies = (long_counts > 0).sum(axis=0)
    vectors = long_counts * np.log(len(long_counts) / (1 + sentence_frequencies))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def test_lexrank_walks_over_cosines():
    # kel and mor weigh the same, so the middle of the chain has cosine a with both
    # ends; the fourth has no edge.
    a = math.sqrt(0.5)
    jumps = 0.15 / 4 + 0.85 * 0.75 * a / (1 + 2 * a)
    end = jumps / (1 - 0.85 / (1 + a) + 1.7 * a / (1 + 2 * a))
    scores = scores_of("lexrank", ["Kel.", "Kel mor.", "Mor.", "Bin."])
    assert scores == pytest.approx([end, 0.75 - 2 * end, end, 0.25], abs=1e-12)


def test_lexrank_of_a_long_document_is_that_of_the_full_graph(long_texts, long_cosines):
    expected = pytest.approx(walk(long_cosines), rel=1e-9)
    assert scores_of("lexrank", long_texts) == expected


def test_textrank_walks_over_shared_words():
    # Edges 2 / (log 2 + log 3) and 1 / (log 2 + log 3): of three steps from the middle
    # two go left.
    middle = 0.135 / 0.2775
    expected = [0.05 + 0.85 * middle * 2 / 3, middle, 0.05 + 0.85 * middle / 3]
    scores = scores_of("textrank", ["Kel mor.", "Kel tas mor.", "Tas bin."])
    assert scores == pytest.approx(expected, abs=1e-12)


def test_textrank_joins_two_equal_words_by_an_edge_of_1_and_no_sentence_with_itself():
    # The first two share an edge of 1. The third has an edge of weight w to each of
    # them. So s = 0.05 + 0.85 (s / (1 + w) + (1 - 2 s) / 2).
    w = 1 / math.log(2)
    s = (0.05 + 0.425) / (1 - 0.85 / (1 + w) + 0.85)
    scores = scores_of("textrank", ["Kel.", "Kel.", "Kel mor."])
    assert scores == pytest.approx([s, s, 1 - 2 * s], abs=1e-12)


def test_textrank_of_a_long_document_is_that_of_the_full_graph():
    texts = long_document(300) + [
        " ".join(long_document(1, seed=seed) * (seed % 7 + 2)) for seed in range(90)
    ]
    terms = terms_of(texts)
    lengths = terms.lengths
    assert len(set(lengths)) > 40  # more than one block
    counts = terms.matrix(terms.cells[2]).toarray()
    sums = np.log(lengths)[:, None] + np.log(lengths)
    edges = counts @ counts.T / np.where(sums == 0, 1, sums)
    np.fill_diagonal(edges, 0)
    assert scores_of("textrank", texts) == pytest.approx(walk(edges), rel=1e-9)


def test_pacsum_of_a_long_document_is_that_of_all_pairs(long_texts, long_cosines):
    later = np.triu(long_cosines, 1).sum(axis=1)
    earlier = np.tril(long_cosines, -1).sum(axis=1)
    expected = pytest.approx(2 * later - earlier, abs=1e-9)
    assert scores_of("pacsum", long_texts) == expected
