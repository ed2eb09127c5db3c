"""Windows over sentences and the vectors of sentences, with a random encoder of a tiny
width that reads 24 tokens.
"""

import numpy as np
import pytest
from support.small_extractor import TOKENS, make_encoder_bundle

from precis.model.inference import sentence_vectors as vectors_module
from precis.model.inference.sentence_vectors import (
    SentenceEncoder,
    SentenceWindow,
    cut_windows,
)
from precis.model.network.encoder import Encoder
from precis.model.tokenization.imported import ImportedTokenizer

CLS, SEP = 3, 4
# Pieces: rain fell on mon ##day | it was cold | nobody came .
STORY = ["rain fell on monday", "it was cold", "nobody came."]
LENGTHS = [5, 3, 3]
LONG = [
    f"{'rain ' * (1 + number % 4)}{'abcdef'[number % 6]} fell." for number in range(40)
]  # of 4 to 7 pieces


@pytest.fixture(scope="module")
def encoder_bundle(tmp_path_factory):
    return make_encoder_bundle(tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="module")
def encoder(encoder_bundle) -> Encoder:
    return encoder_bundle.encoder


@pytest.fixture(scope="module")
def tokenizer(encoder_bundle) -> ImportedTokenizer:
    return encoder_bundle.tokenizer


@pytest.fixture(scope="module")
def sentence_encoder(encoder, tokenizer) -> SentenceEncoder:
    return SentenceEncoder(encoder, tokenizer, overlap_tokens=8)


def test_windows_by_hand():
    lengths = [3, 4, 2, 5, 1, 6]
    # 3 + 4 + 2, then 2 again and 5 + 1, then 1 again and 6: 5 + 1 is more than 4.
    assert cut_windows(lengths, limit=10, overlap=4) == [
        SentenceWindow(0, 0, 3),
        SentenceWindow(2, 3, 5),
        SentenceWindow(4, 5, 6),
    ]
    assert cut_windows(lengths, limit=10, overlap=1) == [
        SentenceWindow(0, 0, 3),
        SentenceWindow(3, 3, 5),
        SentenceWindow(4, 5, 6),
    ]
    assert cut_windows(lengths, limit=10, overlap=0) == [
        SentenceWindow(0, 0, 3),
        SentenceWindow(3, 3, 5),
        SentenceWindow(5, 5, 6),
    ]
    assert cut_windows(lengths, limit=21, overlap=4) == [SentenceWindow(0, 0, 6)]
    assert cut_windows([], limit=10, overlap=4) == []


def test_a_sentence_at_the_limit_fills_a_window():
    assert cut_windows([2, 10, 3, 10, 10], limit=10, overlap=4) == [
        *(SentenceWindow(0, 0, 1), SentenceWindow(1, 1, 2)),  # 2 + 10 is too much
        *(SentenceWindow(2, 2, 3), SentenceWindow(3, 3, 4), SentenceWindow(4, 4, 5)),
    ]


def test_repeated_sentences_leave_room_for_the_first_new_sentence_of_a_window():
    assert cut_windows([4, 4, 7, 1], limit=10, overlap=9) == [
        SentenceWindow(0, 0, 2),
        SentenceWindow(2, 2, 4),
    ]
    assert cut_windows([4, 4, 6, 1], limit=10, overlap=9) == [
        SentenceWindow(0, 0, 2),
        SentenceWindow(1, 2, 3),
        SentenceWindow(2, 3, 4),
    ]


def test_windows_of_random_documents_are_full_and_cover_every_sentence_once():
    generator = np.random.default_rng(3)
    for _ in range(300):
        limit = int(generator.integers(1, 30))
        overlap = int(generator.integers(0, 40))
        lengths = generator.integers(0, limit + 1, generator.integers(1, 40)).tolist()
        windows = cut_windows(lengths, limit=limit, overlap=overlap)
        assert [
            place for window in windows for place in range(window.new, window.last)
        ] == list(range(len(lengths)))
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


def test_vectors_are_means_over_the_states_of_a_document(
    encoder, tokenizer, sentence_encoder
):
    (whole,) = tokenizer.encode([" ".join(STORY)])
    assert whole[0] == CLS and whole[-1] == SEP and len(whole) == sum(LENGTHS) + 2
    rows = states(encoder, whole)
    (vectors,) = sentence_encoder.vectors([STORY])
    assert vectors.dtype == np.float32 and vectors.shape == (3, 8)
    assert sentence_encoder.width == 8
    means = [rows[1:6].mean(axis=0), rows[6:9].mean(axis=0), rows[9:12].mean(axis=0)]
    np.testing.assert_allclose(vectors, means, atol=1e-5)


def test_a_vector_has_the_same_bits_alone(encoder, tokenizer):
    alone = SentenceEncoder(encoder, tokenizer, batch_invariant=True)
    shapes = []
    compute = alone._mean_states
    alone._mean_states = lambda tokens, *rest: (
        shapes.append(tokens.shape) or compute(tokens, *rest)
    )
    documents = [STORY, LONG[:9], STORY[1:]]
    together = alone.vectors(documents)
    assert len(shapes) > 3 and {rows for rows, _ in shapes} == {1}
    for document, vectors in zip(documents, together, strict=True):
        np.testing.assert_array_equal(alone.vectors([document])[0], vectors)


def test_a_vector_sees_the_document_around_the_sentence(sentence_encoder):
    one, other = sentence_encoder.vectors([STORY, ["old town", *STORY[1:]]])
    assert np.abs(one[1:] - other[1:]).max() > 0.01


def test_vectors_do_not_depend_on_the_other_documents(sentence_encoder, monkeypatch):
    documents = [STORY, [], LONG, ["rain", ""], LONG[7:9], STORY[::-1]]
    alone = [sentence_encoder.vectors([document])[0] for document in documents]
    assert [len(vectors) for vectors in alone] == [3, 0, 40, 2, 2, 3]
    for batch_tokens in (8_192, 60):
        monkeypatch.setattr(vectors_module, "_BATCH_TOKENS", batch_tokens)
        together = sentence_encoder.vectors(documents)
        for vectors, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_a_sentence_without_tokens_has_the_zero_vector(sentence_encoder):
    (plain,) = sentence_encoder.vectors([["rain fell", "it was cold"]])
    (vectors,) = sentence_encoder.vectors(
        [["", "rain fell", "", "it was cold", "", ""]]
    )
    np.testing.assert_allclose(vectors[[1, 3]], plain, atol=1e-6)
    assert not vectors[[0, 2, 4, 5]].any() and plain.all()
    empty, none = sentence_encoder.vectors([["", ""], []])
    assert empty.tolist() == [[0.0] * 8] * 2 and none.tolist() == []
    assert sentence_encoder.vectors([]) == []


def test_every_sentence_of_a_long_document_has_the_vector_of_its_window(
    encoder, tokenizer, sentence_encoder
):
    (vectors,) = sentence_encoder.vectors([LONG])
    ids = tokenizer.encode_bare(LONG)
    lengths = [len(sentence_ids) for sentence_ids in ids]
    windows = cut_windows(lengths, limit=TOKENS - 2, overlap=8)
    assert len(windows) > 10 and vectors.shape == (40, 8)
    assert any(window.first < window.new for window in windows)
    for window in windows:
        window_ids = np.concatenate(ids[window.first : window.last])
        rows = states(encoder, [CLS, *window_ids, SEP])
        start = 1
        for place in range(window.first, window.last):
            mean = rows[start : start + lengths[place]].mean(axis=0)
            start += lengths[place]
            if place >= window.new:
                np.testing.assert_allclose(vectors[place], mean, atol=1e-5)


def test_a_sentence_that_is_too_long_has_the_mean_vector_of_its_pieces(
    encoder, tokenizer, sentence_encoder
):
    """Of 104 tokens the encoder reads 22 at a time: four pieces of 21 and one of 20."""
    text = "rain " * 15 + "fell " * 88 + "cold"
    before, long, behind = sentence_encoder.vectors([["nobody came.", text, "cold"]])[0]
    (ids,) = tokenizer.encode_bare([text])
    assert len(ids) == 104 and TOKENS - 2 == 22
    means = [
        states(encoder, [CLS, *ids[start:end], SEP])[1:-1].mean(axis=0) * (end - start)
        for start, end in ((0, 21), (21, 42), (42, 63), (63, 84))
    ]
    # The last piece is read together with the sentence behind it.
    rows = states(encoder, [CLS, *ids[84:], *ids[-1:], SEP])
    expected = (sum(means) + rows[1:21].sum(axis=0)) / 104
    np.testing.assert_allclose(long, expected, atol=1e-5)
    np.testing.assert_allclose(behind, rows[21], atol=1e-5)
    (alone,) = sentence_encoder.vectors([["nobody came."]])
    np.testing.assert_allclose(before, alone[0], atol=1e-5)
