"""Tests of what all extractive methods have in common, and of the baselines."""

import hashlib
import random as random_numbers
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.extractive_documents import PARAGRAPH, long_document, sentences_of

from precis.model.extractive import terms as terms_module
from precis.model.extractive.config import BASELINES
from precis.model.extractive.graph import lexrank
from precis.model.extractive.methods import METHODS, lead, random


def test_lead_falls_from_sentence_to_sentence():
    assert (np.diff(lead(["a", "b", "c", "d"])) < 0).all()


def test_random_is_drawn_from_the_text():
    draw = random_numbers.Random(int(hashlib.sha256(b"One.\nTwo.").hexdigest(), 16))
    assert random(["One.", "Two."]).tolist() == [draw.random(), draw.random()]
    assert random(["Two.", "One."]).tolist() != random(["One.", "Two."]).tolist()


def test_the_methods_by_name():
    assert list(METHODS) == [
        "lead",
        "random",
        "frequency",
        "lexrank",
        "textrank",
        "lsa",
        "luhn",
        "sumbasic",
        "centroid",
        "pacsum",
    ]
    assert BASELINES == ("lead", "random", "oracle")


ODD_DOCUMENTS = {
    "empty": [],
    "one": ["One."],
    "no terms": ["The.", "", "It was."],
    "the same": ["Boats sail."] * 3,
    "long and the same": ["Boats sail."] * 300,
    "long without terms": ["The."] * 300,
    "long and all different": [
        f"{stem}{letter}k"
        for stem in ("mar", "tol", "vim", "sax", "bel", "dor")
        for letter in map(chr, range(0x3B1, 0x3E1))
    ],
    "a very frequent word": ["Boats " * 3000, "Sails and boats."],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("error")
def test_every_method_gives_one_finite_score_per_sentence(method):
    for name, texts in ODD_DOCUMENTS.items():
        scores = METHODS[method](texts)
        assert scores.shape == (len(texts),), name
        assert scores.dtype == np.float64, name
        assert np.isfinite(scores).all(), name


@pytest.mark.parametrize("method", METHODS)
def test_a_score_does_not_depend_on_the_documents_before(method):
    documents = [long_document(12, seed=seed) for seed in range(8)]
    documents.append(sentences_of(PARAGRAPH))

    def score(order):
        terms_module._find_terms.cache_clear()
        terms_module._chunk_cache.clear()
        return {index: METHODS[method](documents[index]).tobytes() for index in order}

    assert score(range(9)) == score([8, 3, 5, 1, 7, 0, 2, 6, 4])


def test_threads_score_alike(monkeypatch):
    # A cache so small that it is emptied repeatedly.
    monkeypatch.setattr(terms_module, "_CACHED_CHUNKS", 50)
    monkeypatch.setattr(terms_module, "_chunk_cache", terms_module._ChunkCache())
    documents = [long_document(12, seed=seed) for seed in range(60)]

    def score(document):
        return lexrank(document).tobytes()

    in_one_thread = [score(document) for document in documents]
    terms_module._find_terms.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(score, documents)) == in_one_thread
    assert 0 < len(terms_module._chunk_cache) <= 50


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lexrank", "textrank", "lsa", "sumbasic", "pacsum"])
def test_memory_grows_with_the_words_and_not_with_the_pairs_of_sentences(method):
    texts = long_document(6000)
    tracemalloc.start()
    try:
        assert len(METHODS[method](texts)) == 6000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # a matrix of all pairs takes 288 MB
