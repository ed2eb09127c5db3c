"""Tests of the candidates of a document, their ranking and their features, and of the
keyphrases that a reference names.
"""

import numpy as np
import pytest
from support import read_table

from precis.model.keyphrases.candidates import (
    best_candidates,
    find_candidates,
    frequent_keyphrases,
    normalise_phrase,
)
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)
from precis.model.keyphrases.references import f1, reference_phrases
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document

CANDIDATES = read_table("keyphrase_candidates")


STORY = [
    "The Leeds flood reached Leeds.",
    "Flood water, flood warnings and the Leeds flood.",
]
# 0 The 1 Leeds 2 flood 3 reached 4 Leeds 5 . 6 end 7 Flood 8 water 9 , 10 flood 11
# warnings 12 and 13 the 14 Leeds 15 flood 16 . 17 end


def sentences_of(number) -> list[str]:
    article = Article.from_text(document(number).article)
    return [sentence.text for sentence in article.sentences]


def surfaces_of(candidates) -> list[str]:
    return [candidates.surface(index) for index in range(len(candidates.start))]


@pytest.mark.parametrize(("text", "expected"), CANDIDATES["of_texts"])
def test_candidates(text, expected):
    surfaces = surfaces_of(find_candidates(text.split("\n")))
    assert sorted(surfaces) == sorted(filter(None, expected.split("|")))


def test_forms_of_one_stem_are_one_candidate_with_its_most_frequent_form():
    candidates = find_candidates(
        ["City councils met.", "A city council, city council.", "The City Council."]
    )
    names = candidates.normalised()
    index = names.index("citi council")
    assert candidates.surface(index) == "city council"
    assert names.count("citi council") == 1
    # Two forms occur twice each: the earlier one.
    assert candidates.surface(names.index("citi")) == "City"
    assert np.bincount(candidates.candidate)[index] == 4
    assert (candidates.start[index], candidates.length[index]) == (0, 2)


def plain_candidates(words):
    """The candidates of a text without repeated forms, with their counts."""
    counts: dict[str, int] = {}
    for start in range(len(words)):
        for end in range(start + 1, min(start + 4, len(words)) + 1):
            part = words[start:end]
            is_broken = "," in part or "was" in part
            has_link_at_edge = part[0] in ("of", "for") or part[-1] in ("of", "for")
            has_topic = bool({"rain", "river", "town", "hall"} & set(part))
            if has_topic and not is_broken and not has_link_at_edge:
                phrase = " ".join(part)
                counts[phrase] = counts.get(phrase, 0) + 1
    return counts


def test_candidates_are_those_that_a_plain_loop_finds():
    generator = np.random.default_rng(5)
    vocabulary = ["rain", "river", "town", "hall", "of", "for", "12", "3rd", "was", ","]
    for length in (1, 2, 3, 4, 5, 6, 40, 900):
        words = generator.choice(vocabulary, length).tolist()
        expected = plain_candidates(words)
        candidates = find_candidates([" ".join(words)])
        surfaces = surfaces_of(candidates)
        assert len(surfaces) == len(set(surfaces))
        counts = np.bincount(candidates.candidate, minlength=len(surfaces)).tolist()
        assert dict(zip(surfaces, counts, strict=True)) == expected
    assert len(expected) > 200


def test_a_written_form_has_the_normalised_form_of_its_candidate():
    for number in range(20):
        candidates = find_candidates(sentences_of(number))
        names = list(map(normalise_phrase, surfaces_of(candidates)))
        assert names == candidates.normalised()
    names = map(normalise_phrase, ("cafe\u0301 rock’n’roll", "caf\u00e9 rock'n'roll"))
    assert list(names) == ["caf\u00e9 rock'n'rol"] * 2


@pytest.mark.parametrize(("story", "scores", "count", "expected"), CANDIDATES["best"])
def test_the_best_candidates(story, scores, count, expected):
    candidates = find_candidates(story.split("|"))
    names = candidates.normalised()
    of_names = dict(each.split("=") for each in filter(None, scores.split(", ")))
    values = np.array([float(of_names.get(name, 0)) for name in names])
    best = best_candidates(candidates, values, count)
    assert [names[index] for index in best] == expected.split("|")


def test_the_baseline_takes_the_most_frequent():
    assert frequent_keyphrases(STORY, 3) == ["flood", "Leeds", "Leeds flood"]
    assert frequent_keyphrases([], 3) == []


def features_of(story, phrase, frequencies=DocumentFrequencies(0, {})):  # noqa: B008
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


def test_the_features_of_phrases_with_links_and_within_others():
    features = features_of(STORY, "warnings and the Leeds")
    names = "words links characters frequency word_frequency rarest_word_frequency"
    assert [features[name] for name in names.split()] == [4, 2, 19, 1, 3, 1]
    names = "position nested open_left open_right"
    assert [features[name] for name in names.split()] == [11, 0, 0, 0]
    # A phrase is nested at the end of a longer one too.
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


def test_unknown_words_and_documents_without_candidates():
    frequencies = DocumentFrequencies(7, {"a": 7, "b": 1})
    expected = [0, np.log(4), np.log(8)]
    assert frequencies.idf(["a", "b", "c"]) == pytest.approx(expected)
    features = candidate_features(find_candidates(["It was."]), frequencies)
    assert features.shape == (0, len(FEATURES))


JUDGE = [
    "Judge Steven Leifman visits the jails.",
    "Leifman met a judge.",
    "A lawyer told Steven.",
]


@pytest.mark.parametrize(("reference", "story", "expected"), CANDIDATES["references"])
def test_a_reference_names_the_longest_candidates(reference, story, expected):
    story = JUDGE if story is None else story
    names = set(filter(None, expected.split("|")))
    assert set(reference_phrases(story, reference)) == names


def test_the_phrases_of_a_reference_are_in_its_written_form_and_order():
    reference = (
        "The jail's lawyers met Steven Leifman .\n"
        "A Judge and another judge met Leifman , rain fell ."
    )
    assert list(reference_phrases(JUDGE, reference).values()) == (
        "jail|lawyers|met|Steven Leifman|Judge|Leifman".split("|")
    )


def test_the_f1_of_a_document():
    references = {"citi council", "flood", "leed"}
    assert f1(["City Councils", "floods", "rain"], references) == pytest.approx(2 / 3)
    assert f1(["Floods"], references) == pytest.approx(0.5)  # precision 1, recall 1/3
    assert f1(["floods", "flood"], references) == pytest.approx(0.5)  # one phrase
    assert f1(["council"], references) == f1([], references) == 0.0
    assert f1(["rain"], set()) == f1([], set()) == 0.0
