"""Pieces of words, compared with the learner of tensorflow-text."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib

from precis.model.tokenization import piece_learner
from precis.model.tokenization.piece_learner import pieces_above
from precis.model.tokenization.vocabulary import count_words
from precis.pipelines.corpus.sample import generator

WORDS = st.text(st.sampled_from("▁aabcdé"), min_size=1, max_size=9)


def reference_pieces(threshold, counts):
    pieces = wordpiece_tokenizer_learner_lib.learn(
        list(counts.items()),
        vocab_size=len(counts),
        reserved_tokens=[],
        upper_thresh=threshold,
        lower_thresh=threshold,
        num_iterations=piece_learner._ITERATIONS,
        max_token_length=piece_learner._MAX_PIECE_CHARACTERS,
    )
    return [piece for piece in pieces if len(piece.removeprefix("##")) > 1]


def pieces_of(threshold, counts):
    return pieces_above(threshold, counts.items(), set("".join(counts)))


@settings(max_examples=200, deadline=None)
@given(
    counts=st.dictionaries(WORDS, st.integers(1, 9), min_size=1, max_size=30),
    share=st.floats(0, 1),
)
def test_pieces_of_any_words_are_those_of_tensorflow_text(counts, share):
    threshold = max(1, round(share * max(counts.values())))
    assert pieces_of(threshold, counts) == reference_pieces(threshold, counts)


@pytest.mark.parametrize("threshold", [2, 5, 40])
def test_pieces_of_news_are_those_of_tensorflow_text(threshold):
    counts = count_words(generator.document(n).article for n in range(300))
    pieces = pieces_of(threshold, counts)
    assert len(pieces) > 200
    assert pieces == reference_pieces(threshold, counts)


def test_words_that_are_long_or_have_other_characters_are_left_out():
    counts = Counter({"▁paid": 3, "▁payé": 5, "▁" + "a" * 40: 7})
    assert pieces_above(3, counts.items(), set("▁paid")) == ["▁paid"]
