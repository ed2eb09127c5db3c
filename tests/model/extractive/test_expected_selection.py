"""The sentences that a summary is chosen of, and what is expected of its reference."""

import numpy as np
import pytest

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import (
    ExpectedReference,
    best_sentences,
    select_expected,
)
from precis.model.extractive.importance import (
    PAIR_FEATURES,
    WORD_FEATURES,
    ImportanceModel,
    ImportanceNetwork,
    Lexicon,
)

SENTENCES = (
    "Weather news",
    "The flood hit the town.",
    "Follow us on Facebook.",
    "The hall was old, and nobody had ever liked it.",
    "Rain fell for a week.",
)
SCORES = np.array([0.9, 0.5, 0.8, 0.6, 0.1])


def undecided_model():
    """A model that has learned nothing but that references have e ** 2 words."""
    words, pairs = (
        ImportanceNetwork(
            np.zeros(len(features), np.float32),
            np.ones(len(features), np.float32),
            (np.zeros((len(features), 1), np.float32),),
            (np.zeros(1, np.float32),),
        )
        for features in (WORD_FEATURES, PAIR_FEATURES)
    )
    lexicon = Lexicon(1, 0.5, {})
    return ImportanceModel(words, pairs, lexicon, lexicon, np.array([2.0, 0.0, 0.0]))


def test_headings_and_sentences_about_the_page_are_no_options():
    assert best_sentences(SENTENCES, SCORES, count=9) == [3, 1, 4]
    assert best_sentences(SENTENCES, SCORES, count=2) == [3, 1]
    assert best_sentences(SENTENCES, SCORES, count=9, max_words=5) == [1, 4]
    # There is nothing else.
    assert best_sentences(SENTENCES[:1], SCORES[:1], count=9) == [0]


def test_the_sentences_that_share_most_with_the_reference_are_chosen():
    expected = ExpectedReference({"flood": 0.9, "town": 0.9, "rain": 0.8}, {}, 4.0)
    selection = SelectionConfig(sentences=0)
    assert select_expected(SENTENCES, SCORES, expected, selection=selection) == [1]
    # With more to say, a second sentence is worth its words.
    expected = expected._replace(length=9.0)
    assert select_expected(SENTENCES, SCORES, expected, selection=selection) == [1, 4]
    for limit in (SelectionConfig(sentences=1), SelectionConfig(max_words=5)):
        assert select_expected(SENTENCES, SCORES, expected, selection=limit) == [1]


def test_words_and_pairs_are_expected_where_half_of_the_sentences_have_words():
    sentences = ["Rain fell.", "Дождь шёл."]
    expected = undecided_model().expect_reference(sentences, np.array([0.5, 0.5]))
    assert expected is not None
    assert expected.words == {"rain": 0.5, "fell": 0.5}
    assert expected.pairs == {("rain", "fell"): 0.5}
    assert expected.length == pytest.approx(np.exp(2.0))


@pytest.mark.parametrize(
    "sentences", [[], ["Дождь шёл."], ["Rain fell.", "Дождь шёл.", "Было холодно."]]
)
def test_nothing_is_expected_of_other_alphabets(sentences):
    scores = np.full(len(sentences), 0.5)
    assert undecided_model().expect_reference(sentences, scores) is None
