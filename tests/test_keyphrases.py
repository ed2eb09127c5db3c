"""Tests of the ranking of candidates, and of the keyphrases that a reference names."""

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.keyphrases.candidates import find_candidates, normalise_phrase
from precis.model.keyphrases.ranking import best_candidates, frequent_keyphrases
from precis.model.keyphrases.references import (
    f1,
    reference_keyphrases,
    reference_phrases,
)
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document

STORY = [
    "The Leeds flood reached Leeds.",
    "Flood water, flood warnings and the Leeds flood.",
]


def best_names(story, scores, count):
    candidates = find_candidates(story)
    names = candidates.normalised()
    values = np.array([scores.get(name, 0.0) for name in names])
    return [names[index] for index in best_candidates(candidates, values, count)]


def test_a_candidate_within_a_better_one_is_left_out():
    story = ["Red clay brick", "brickwork"]
    scores = {
        "red clay": 0.9,
        "clay": 0.8,
        "red": 0.7,
        "red clay brick": 0.6,
        "brick": 0.5,
    }
    assert best_names(story, scores, 3) == [
        "red clay",
        "red clay brick",  # longer than a better one
        "brickwork",  # not a word of another candidate
    ]
    scores = {"brickwork": 0.9, "brick": 0.8}
    assert best_names(story, scores, 2) == ["brickwork", "brick"]


def test_of_equal_scores_the_earlier_and_then_the_longer_comes_first():
    assert best_names(["new roof", "old roof"], {}, 9) == ["new roof", "old roof"]
    assert best_names(["clay roof", "roof tile", "clay house"], {}, 9) == [
        "clay roof",
        "roof tile",
        "clay hous",
    ]
    scores = {"new roof": 0.5, "old roof": 0.5, "new": 0.5, "roof": 0.5}
    story = ["old roof", "new roof"]
    assert best_names(story, scores, 2) == ["old roof", "new roof"]


def test_the_baseline_takes_the_most_frequent():
    assert frequent_keyphrases(STORY, 3) == ["flood", "Leeds", "Leeds flood"]
    assert frequent_keyphrases([], 3) == []


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count):
    message = f"{count} keyphrases a document were asked for; at least 1 is needed"
    with pytest.raises(UsageError, match=message):
        frequent_keyphrases(STORY, count)


def test_a_reference_names_the_longest_candidates():
    story = [
        "Judge Steven Leifman visits the jail.",
        "Leifman met a judge.",
        "A lawyer told Steven.",
    ]

    def names(reference, story=story):
        return reference_keyphrases(story, reference)

    assert names("Steven Leifman was there .\na lawyers ' club") == {
        "steven leifman",
        "lawyer",
    }
    # A word of the longest candidate that stands elsewhere too.
    assert names("Steven Leifman was there .\nLeifman left .") == {
        "steven leifman",
        "leifman",
    }
    # Two that overlap, neither within the other.
    assert names("red clay brick", ["Red clay", "clay brick"]) == {
        "red clay",
        "clay brick",
    }
    # A line ends a phrase, as a sentence of the article does.
    assert names("judge Steven\nLeifman") == {"judg steven", "leifman"}
    assert names("") == set()
    assert names("Leifman", []) == set()


def test_the_phrases_of_a_reference_are_in_its_written_form_and_order():
    story = [
        "Judge Steven Leifman visits the jails.",
        "Leifman met a judge.",
        "A lawyer told Steven.",
    ]
    reference = (
        "The jail's lawyers met Steven Leifman .\n"
        "A Judge and another judge met Leifman , rain fell ."
    )
    assert reference_phrases(story, reference) == [
        "jail",
        "lawyers",
        "met",
        "Steven Leifman",
        "Judge",
        "Leifman",
    ]
    assert reference_phrases(story, "") == []
    assert reference_phrases([], "Leifman") == []


def test_the_phrases_of_a_reference_are_its_keyphrases():
    for number in range(20):
        sample = document(number)
        article = Article.from_text(sample.article)
        texts = [sentence.text for sentence in article.sentences]
        phrases = reference_phrases(texts, sample.highlights)
        assert len(phrases) == len(set(phrases))
        names = set(map(normalise_phrase, phrases))
        assert names == reference_keyphrases(texts, sample.highlights)


def test_the_f1_of_a_document():
    references = {"citi council", "flood", "leed"}
    assert f1(["City Councils", "floods", "rain"], references) == pytest.approx(2 / 3)
    assert f1(["Floods"], references) == pytest.approx(0.5)  # precision 1, recall 1/3
    assert f1(["floods", "flood"], references) == pytest.approx(0.5)  # one phrase
    assert f1(["council"], references) == 0.0
    assert f1([], references) == 0.0
    assert f1(["rain"], set()) == 0.0
    assert f1([], set()) == 0.0
