"""Tests of what all extractive methods have in common: terms, scores of any document,
and the baselines; and of latent semantic analysis.
"""

import hashlib
import math
import random as random_numbers
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from nltk.stem.porter import PorterStemmer
from support.extractive_documents import (
    ODD_DOCUMENTS,
    PARAGRAPH,
    count_words,
    long_document,
    scores_of,
    terms_of,
)

from precis.model.extractive.features import FEATURE_COUNT, features_of_all
from precis.model.extractive.methods import METHODS, lsa, random
from precis.model.extractive.terms import find_terms
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import read_words, words


def test_random_is_drawn_from_the_text():
    draw = random_numbers.Random(int(hashlib.sha256(b"One.\nTwo.").hexdigest(), 16))
    assert random(["One.", "Two."]).tolist() == [draw.random(), draw.random()]
    assert random(["Two.", "One."]).tolist() != random(["One.", "Two."]).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD_DOCUMENTS)
def test_every_sentence_has_a_finite_score_of_each_method_and_finite_features(name):
    texts = ODD_DOCUMENTS[name]
    for method in METHODS:
        scores = scores_of(method, texts)
        assert (scores.shape, scores.dtype) == ((len(texts),), np.float64), method
        assert np.isfinite(scores).all(), method
    (rows,) = features_of_all([texts])
    assert (rows.shape, rows.dtype) == ((len(texts), FEATURE_COUNT), np.float32)
    assert np.isfinite(rows).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lexrank", "textrank", "lsa", "sumbasic", "pacsum"])
def test_memory_grows_with_the_words_and_not_with_the_pairs_of_sentences(method):
    texts = long_document(6000)
    tracemalloc.start()
    try:
        assert len(scores_of(method, texts)) == 6000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # a matrix of all pairs takes 288 MB


def test_terms_are_the_stems_of_words_that_count():
    terms = terms_of(["The flood reached it.", "Floods, in 2014!", "Why?"])
    flood, reached = terms.content_terms[0], terms.content_terms[1]
    assert terms.rows.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    assert terms.content_positions.tolist() == [1, 2, 4]
    assert terms.content_terms.tolist() == [flood, reached, flood]
    assert {flood, reached} == {0, 1}
    cells = zip(*(part.tolist() for part in terms.cells), strict=True)
    expected = [(0, flood, 1.0), (1, flood, 1.0), (0, reached, 1.0)]
    assert sorted(cells) == sorted(expected)
    assert terms.cells[1].tolist() == sorted(terms.cells[1].tolist())
    assert terms.lengths.tolist() == [2, 1, 0]
    assert (terms.frequencies[flood], terms.frequencies[reached]) == (2, 1)
    assert (terms.idf[flood], terms.idf[reached]) == (math.log(3 / 3), math.log(3 / 2))
    assert terms_of(["Marta's Marta", "marta 's"]).vocabulary == 1


@pytest.mark.parametrize("is_english", [True, False])
def test_terms_are_the_stems_of_the_words_of_each_sentence(is_english):
    """In a language without stems and stop words, words of two letters or more."""
    documents = [[PARAGRAPH, "Its villages' U.S. bridge, cnn.She said: 12 a-b 4.5m."]]
    documents += ODD_DOCUMENTS.values()
    documents += [long_document(9, seed=n) for n in range(5)]
    texts = [text for document in documents for text in document]
    read = read_words([*texts, "A head without a sentence."])
    stem = PorterStemmer().stem if is_english else str.casefold
    languages = None if is_english else ["xx"] * len(documents)
    for _ in range(2):  # unknown words, then known ones
        together = find_terms(documents, languages=languages, words=read)
        for document, terms in zip(documents, together, strict=True):
            each = [(n, word) for n, s in enumerate(document) for word in words(s)]
            assert terms.rows.tolist() == [n for n, _ in each]
            known = STOP_WORDS | TOKENISED_FRAGMENTS if is_english else ()
            content = {
                position: (n, stem(word.removesuffix("'s") if is_english else word))
                for position, (n, word) in enumerate(each)
                if word not in known and not word[0].isdigit()
                if is_english or len(word) > 1
            }
            assert terms.content_positions.tolist() == [*content]
            names = sorted({term for _, term in content.values()}, key=hash_of_term)
            assert terms.vocabulary == len(names)
            in_order = [term for _, term in content.values()]
            assert [names[n] for n in terms.content_terms] == in_order
            cells = Counter((names.index(term), n) for n, term in content.values())
            rows, columns, counts = (part.tolist() for part in terms.cells)
            found = zip(zip(columns, rows, strict=True), counts, strict=True)
            assert list(found) == sorted(cells.items())


def hash_of_term(term):
    digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def test_lsa_measures_sentences_in_the_main_topics():
    # Squared singular values 6 (three sentences of two words) and 1: the second
    # singular value is less than half of the first.
    for texts, expected in (
        (["Kel mor.", "Mor kel.", "Kel mor.", "Tas."], [math.sqrt(2)] * 3 + [0.0]),
        (["Kel mor.", "Tas."], [math.sqrt(2), 1.0]),  # 2 and 1: both are kept
        # Of kel, twice, and mor, once: 1 and 0.4 + 0.6 / 2.
        (["Kel kel mor."], [math.sqrt(1.49)]),
    ):
        assert lsa(terms_of(texts)) == pytest.approx(expected, abs=1e-12)


def test_lsa_of_a_long_document_is_that_of_a_full_decomposition():
    texts = long_document(300)
    terms = terms_of(texts)
    assert not terms.is_small
    counts = count_words(texts)
    augmented = 0.4 + 0.6 * counts / counts.max(axis=1, keepdims=True)
    matrix = np.where(counts > 0, augmented, 0)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    kept = values >= values[0] / 2
    assert 1 < kept.sum() < 64
    expected = np.sqrt((left[:, kept] * values[kept]) ** 2 @ np.ones(kept.sum()))
    assert lsa(terms) == pytest.approx(expected, rel=1e-4)
