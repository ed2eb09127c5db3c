"""Windows over sentences and the vectors of sentences, with a random encoder of a tiny
width that reads 24 tokens.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from support.plain_network import scramble
from support.small_selector import TOKENS

from precis.model.inference.sentence_vectors import SentenceEncoder, cut_windows
from precis.model.network.build import build_network

CLS, SEP = 3, 4
# Pieces: rain fell on mon ##day | it was cold | nobody came .
STORY = ["rain fell on monday", "it was cold", "nobody came."]
LENGTHS = [5, 3, 3]
LONG = [
    f"{'rain ' * (1 + number % 4)}{'abcdef'[number % 6]} fell." for number in range(40)
]  # of 4 to 7 pieces


@pytest.fixture(scope="module")
def sentence_encoder(encoder_bundle) -> SentenceEncoder:
    parts = encoder_bundle.encoder, encoder_bundle.tokenizer
    return SentenceEncoder(*parts, overlap_tokens=8)


def test_windows_of_random_documents_are_full_and_cover_every_sentence_once():
    generator = np.random.default_rng(3)
    for _ in range(300):
        limit = int(generator.integers(1, 30))
        overlap = int(generator.integers(0, 40))
        lengths = generator.integers(0, limit + 1, generator.integers(1, 40)).tolist()
        windows = cut_windows(lengths, max_tokens=limit, overlap=overlap)
        covered = [range(window.new, window.last) for window in windows]
        assert [*itertools.chain(*covered)] == list(range(len(lengths)))
        for window in windows:
            repeated = sum(lengths[window.first : window.new])
            tokens = sum(lengths[window.first : window.last])
            assert tokens <= limit and repeated <= overlap
            # No further sentence fits behind the window, and none before it.
            assert window.last == len(lengths) or tokens + lengths[window.last] > limit
            if window.first:
                longer = repeated + lengths[window.first - 1]
                assert longer > overlap or longer + lengths[window.new] > limit


def states(encoder, tokens):
    return np.asarray(encoder(np.array([tokens], "int32")))[0]


def test_vectors_are_means_over_states(encoder_bundle, sentence_encoder):
    (whole,) = encoder_bundle.tokenizer.encode([" ".join(STORY)])
    assert whole[0] == CLS and whole[-1] == SEP and len(whole) == sum(LENGTHS) + 2
    rows = states(encoder_bundle.encoder, whole)
    (vectors,) = sentence_encoder.vectors([STORY])
    assert vectors.dtype == np.float32 and vectors.shape == (3, 8)
    assert sentence_encoder.width == 8
    means = [rows[1:6].mean(axis=0), rows[6:9].mean(axis=0), rows[9:12].mean(axis=0)]
    np.testing.assert_allclose(vectors, means, atol=1e-5)


def test_a_sentence_without_tokens_has_the_zero_vector(sentence_encoder):
    with_gaps = ["", "rain fell", "", "it was cold", "", ""]
    plain, vectors, empty, none = sentence_encoder.vectors(
        [["rain fell", "it was cold"], with_gaps, ["", ""], []]
    )
    np.testing.assert_allclose(vectors[[1, 3]], plain, atol=1e-6)
    assert not vectors[[0, 2, 4, 5]].any() and plain.all()
    assert empty.tolist() == [[0.0] * 8] * 2 and none.tolist() == []
    assert sentence_encoder.vectors([]) == []


def test_every_sentence_of_a_long_document_has_the_vector_of_its_window(
    encoder_bundle, sentence_encoder
):
    (vectors,) = sentence_encoder.vectors([LONG])
    ids = encoder_bundle.tokenizer.encode_parts(LONG)
    lengths = [len(sentence_ids) for sentence_ids in ids]
    windows = cut_windows(lengths, max_tokens=TOKENS - 2, overlap=8)
    assert len(windows) > 10 and vectors.shape == (40, 8)
    assert any(window.first < window.new for window in windows)
    for window in windows:
        window_ids = np.concatenate(ids[window.first : window.last])
        rows = states(encoder_bundle.encoder, [CLS, *window_ids, SEP])
        start = 1
        for place in range(window.first, window.last):
            mean = rows[start : start + lengths[place]].mean(axis=0)
            start += lengths[place]
            if place >= window.new:
                np.testing.assert_allclose(vectors[place], mean, atol=1e-5)


def test_a_modernbert_reads_a_long_document_as_one(encoder_bundle):
    """Of 240 tokens; half of its blocks read three tokens on either side."""
    shape = {"positions": "rotary", "reach": "lg"}
    shape |= {"window": 3, "max_source_tokens": 300}
    encoder = build_network(dataclasses.replace(encoder_bundle.config, **shape))
    scramble(encoder, seed=5)
    tokenizer = encoder_bundle.tokenizer
    ids = tokenizer.encode_parts(LONG)
    rows = states(encoder, [CLS, *np.concatenate(ids), SEP])
    ends = 1 + np.cumsum(list(map(len, ids)))
    assert TOKENS < ends[-1] < 300
    expected = [part.mean(axis=0) for part in np.split(rows[1:-1], ends[:-1] - 1)]
    short, vectors = SentenceEncoder(encoder, tokenizer).vectors([STORY, LONG])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert len(short) == 3


def test_of_a_sentence_that_is_too_long_the_beginning_is_read(sentence_encoder):
    """The encoder reads 22 tokens beside its special ones."""
    assert TOKENS - 2 == 22
    start = "rain " * 15 + "fell " * 7
    (vectors,) = sentence_encoder.vectors([["nobody came.", start + "cold " * 80]])
    (expected,) = sentence_encoder.vectors([["nobody came.", start]])
    np.testing.assert_array_equal(vectors, expected)
