"""Tests of the features of candidates, computed by hand."""

import numpy as np
import pytest

from precis.model.keyphrases.candidates import find_candidates, normalise_phrase
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)

STORY = [
    "The Leeds flood reached Leeds.",
    "Flood water, flood warnings and the Leeds flood.",
]
# 0 The 1 Leeds 2 flood 3 reached 4 Leeds 5 . 6 end 7 Flood 8 water 9 , 10 flood 11
# warnings 12 and 13 the 14 Leeds 15 flood 16 . 17 end
NO_FREQUENCIES = DocumentFrequencies(0, {})


def features_of(story, phrase, frequencies=NO_FREQUENCIES):
    candidates = find_candidates(story)
    index = candidates.normalised().index(normalise_phrase(phrase))
    row = candidate_features(candidates, frequencies)[index]
    return dict(zip(FEATURES, row.tolist(), strict=True))


def test_the_features_of_a_phrase():
    frequencies = DocumentFrequencies(9, {"flood": 4, "reach": 1})
    leeds = np.log(10 / 1)
    flood = np.log(10 / 5)
    assert features_of(STORY, "Leeds flood", frequencies) == pytest.approx(
        {
            "words": 2,
            "links": 0,
            "characters": 10,
            "frequency": 2,
            "relative_frequency": 2 / 4,  # flood occurs four times
            "word_frequency": 4,
            "relative_word_frequency": 1,
            "rarest_word_frequency": 3,
            "position": 1,
            "spread": 13 / 18,
            "capitalised": 0,
            "idf": (leeds + flood) / 2,
            "first_word_idf": leeds,
            "last_word_idf": flood,
            "open_left": 1 / 2,  # `and the` links, as in a name
            "open_right": 1 / 2,
            "whole": 0,
            "nested": 1 / 2,  # Leeds flood reached
        }
    )


def test_the_features_of_a_phrase_with_links():
    features = features_of(STORY, "warnings and the Leeds")
    expected = {
        "words": 4,
        "links": 2,
        "characters": 19,
        "frequency": 1,
        "word_frequency": 3,
        "rarest_word_frequency": 1,
        "position": 11,
        "nested": 0,
        "open_left": 0,
        "open_right": 0,
    }
    assert {name: features[name] for name in expected} == expected


def test_a_phrase_is_nested_at_the_end_of_a_longer_one_too():
    assert features_of(STORY, "flood")["nested"] == 2 / 4  # Leeds flood


def test_the_capital_of_the_first_word_of_a_sentence_does_not_count():
    story = [
        "Rain in New York.",
        "Rain fell on New York, new york and Rain.",
        '"Rain," he said.',
    ]
    assert features_of(story, "new york")["capitalised"] == pytest.approx(2 / 3)
    assert features_of(story, "rain")["capitalised"] == pytest.approx(1 / 4)
    story = ["He won the 2014 World Cup."]
    assert features_of(story, "2014 World Cup")["capitalised"] == 1


def test_the_idf_of_an_unknown_word_is_that_of_no_document():
    frequencies = DocumentFrequencies(7, {"a": 7, "b": 1})
    expected = [0, np.log(4), np.log(8)]
    assert frequencies.idf(["a", "b", "c"]) == pytest.approx(expected)


def test_a_document_without_candidates_has_no_features():
    candidates = find_candidates(["It was."])
    features = candidate_features(candidates, NO_FREQUENCIES)
    assert features.shape == (0, len(FEATURES))
