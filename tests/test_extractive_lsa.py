"""Tests of the scores from latent semantic analysis."""

import math

import numpy as np
import pytest
from support.extractive_documents import count_words, long_document

from precis.model.extractive.lsa import lsa
from precis.model.extractive.terms import find_terms


def test_lsa_measures_sentences_in_the_main_topics():
    # Squared singular values 6 (three sentences of two words) and 1: the second
    # singular value is less than half of the first.
    assert lsa(["Kel mor.", "Mor kel.", "Kel mor.", "Tas."]) == pytest.approx(
        [math.sqrt(2)] * 3 + [0.0], abs=1e-12
    )
    # 2 and 1: both are kept.
    assert lsa(["Kel mor.", "Tas."]) == pytest.approx([math.sqrt(2), 1.0], abs=1e-12)
    # Of kel, twice, and mor, once: 1 and 0.4 + 0.6 / 2.
    assert lsa(["Kel kel mor."]) == pytest.approx([math.sqrt(1.49)])


def test_lsa_of_a_long_document_is_that_of_a_full_decomposition():
    texts = long_document(300)
    assert not find_terms(texts).is_small
    counts = count_words(texts)
    augmented = 0.4 + 0.6 * counts / counts.max(axis=1, keepdims=True)
    matrix = np.where(counts > 0, augmented, 0)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    kept = values >= values[0] / 2
    assert 1 < kept.sum() < 64
    expected = np.sqrt((left[:, kept] * values[kept]) ** 2 @ np.ones(kept.sum()))
    assert lsa(texts) == pytest.approx(expected, rel=1e-4)
