"""Keyphrases: which candidates a document has, what is known of them, which are taken,
and which a reference names.
"""

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.keyphrases.candidates import find_candidates, normalise_phrase
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)
from precis.model.keyphrases.ranking import best_candidates, frequent_keyphrases
from precis.model.keyphrases.references import (
    f1,
    reference_keyphrases,
    reference_phrases,
)
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document


def phrases(*texts):
    """The candidates of a document as they are written, in the alphabet's order."""
    candidates = find_candidates(texts)
    return sorted(candidates.surface(index) for index in range(len(candidates.start)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Up to four words.
        ("red clay brick", "red clay brick|red clay|clay brick|red|clay|brick"),
        (
            "one two three four five",
            "one two three four|two three four five|one two three|two three four|three four five|"
            "one two|two three|three four|four five|one|two|three|four|five",
        ),
        (
            "The city council of Leeds met on Friday.",
            "city|city council|city council of Leeds|council|council of Leeds|council of Leeds met|Leeds|Leeds met|met|Friday",
        ),
        (
            "Old stone, new roof",
            "Old stone|Old|stone|new roof|new|roof",
        ),  # punctuation ends a phrase
        ("they moved to a town", "moved|town"),  # so do stop words
        ("mayors can win", "mayors|win"),  # and others as common
        ("Bank of the West", "Bank of the West|Bank|West"),  # links stand within
        ("lost the war", "lost|war"),  # `the` alone is none
        ("the end of it", "end"),
        (
            "in 2014 it lost 4.5m over 1,200 days",
            "lost 4.5m|lost|1,200 days|days",
        ),  # numbers alone are none
        (
            "Leeds's council",
            "Leeds|council",
        ),  # a possessive ends a phrase and is written without its 's
        (
            "leeds 's council -lrb- city -rrb- `` hall ''",
            "leeds|council|city|hall",
        ),  # tokenised text
        ("it don't, she 's, ca n't", ""),
        ("Zoë’s café", "Zoë|café"),
        ("", ""),
        ("rain", "rain"),
        ("1999", ""),
        ("heavy rain", "heavy rain|heavy|rain"),
    ],
)
def test_candidates(text, expected):
    assert phrases(text) == sorted(filter(None, expected.split("|")))


def test_a_candidate_stays_within_a_sentence():
    assert phrases("Rain fell", "Rivers rose") == [
        "Rain",
        "Rain fell",
        "Rivers",
        "Rivers rose",
        "fell",
        "rose",
    ]


def test_no_sentence_no_candidate():
    assert phrases() == [] and phrases("", "...") == []


def test_forms_of_one_stem_are_one_candidate_written_as_most_often():
    candidates = find_candidates(
        ["City councils met.", "A city council, city council.", "The City Council."]
    )
    names = candidates.normalised()
    index = names.index("citi council")
    assert (
        candidates.surface(index) == "city council" and names.count("citi council") == 1
    )
    assert candidates.surface(names.index("citi")) == "City"  # twice each: the earlier
    assert np.bincount(candidates.candidate)[index] == 4
    assert candidates.start[index] == 0 and candidates.length[index] == 2


def test_candidates_are_those_that_a_plain_loop_finds():
    generator = np.random.default_rng(5)
    for length in (1, 2, 3, 4, 5, 6, 40, 900):
        words = generator.choice(
            ["rain", "river", "town", "hall", "of", "for", "12", "3rd", "was", ","],
            length,
        ).tolist()
        plain: dict[str, int] = {}
        for start in range(length):
            for part in (
                words[start:end] for end in range(start + 1, min(start + 4, length) + 1)
            ):
                broken = (
                    "," in part
                    or "was" in part
                    or part[0] in ("of", "for")
                    or part[-1] in ("of", "for")
                )
                if not broken and {"rain", "river", "town", "hall"} & set(part):
                    plain[" ".join(part)] = plain.get(" ".join(part), 0) + 1
        candidates = find_candidates([" ".join(words)])
        found = [candidates.surface(index) for index in range(len(candidates.start))]
        assert len(found) == len(set(found))
        assert (
            dict(
                zip(
                    found,
                    np.bincount(candidates.candidate, minlength=len(found)).tolist(),
                    strict=True,
                )
            )
            == plain
        )
    assert len(plain) > 200


def test_a_phrase_as_written_has_the_normalised_form_of_its_candidate():
    for number in range(20):
        candidates = find_candidates(
            [
                sentence.text
                for sentence in Article.from_text(document(number).article).sentences
            ]
        )
        assert [
            normalise_phrase(candidates.surface(index))
            for index in range(len(candidates.start))
        ] == candidates.normalised()


def test_a_letter_and_its_accent_are_one_character_and_apostrophes_are_alike():
    assert (
        normalise_phrase("cafe\u0301 rock’n’roll")
        == normalise_phrase("caf\u00e9 rock'n'roll")
        == "caf\u00e9 rock'n'rol"
    )
    assert phrases("Cafe\u0301", "rock’n’roll") == ["Caf\u00e9", "rock'n'roll"]


STORY = [
    "The Leeds flood reached Leeds.",
    "Flood water, flood warnings and the Leeds flood.",
]
# 0 The 1 Leeds 2 flood 3 reached 4 Leeds 5 . 6 end 7 Flood 8 water 9 , 10 flood 11
# warnings 12 and 13 the 14 Leeds 15 flood 16 . 17 end
UNCOUNTED = DocumentFrequencies(0, {})


def features_of(story, phrase, frequencies=UNCOUNTED):
    candidates = find_candidates(story)
    row = candidate_features(candidates, frequencies)[
        candidates.normalised().index(normalise_phrase(phrase))
    ]
    return dict(zip(FEATURES, row.tolist(), strict=True))


def test_the_features_of_a_phrase_by_hand():
    frequencies = DocumentFrequencies(9, {"flood": 4, "reach": 1})
    idf = {"leed": np.log(10 / 1), "flood": np.log(10 / 5)}
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
            "idf": (idf["leed"] + idf["flood"]) / 2,
            "first_word_idf": idf["leed"],
            "last_word_idf": idf["flood"],
            "open_left": 1 / 2,  # `and the` links, as in a name
            "open_right": 1 / 2,
            "whole": 0,
            "nested": 1 / 2,  # Leeds flood reached
        }
    )


def test_the_features_of_a_phrase_with_links_by_hand():
    found = features_of(STORY, "warnings and the Leeds")
    expected = {
        "words": 4,
        "links": 2,
        "characters": 19,
        "frequency": 1,
        "word_frequency": 3,
        "rarest_word_frequency": 1,
        "position": 11,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["nested"] == 0 and found["open_left"] == 0 and found["open_right"] == 0


def test_a_phrase_is_nested_at_the_end_of_a_longer_one_too():
    assert features_of(STORY, "flood")["nested"] == 2 / 4  # Leeds flood


def test_a_capital_that_opens_a_sentence_is_none():
    story = [
        "Rain in New York.",
        "Rain fell on New York, new york and Rain.",
        '"Rain," he said.',
    ]
    assert features_of(story, "new york")["capitalised"] == pytest.approx(2 / 3)
    assert features_of(story, "rain")["capitalised"] == pytest.approx(1 / 4)
    assert (
        features_of(["He won the 2014 World Cup."], "2014 World Cup")["capitalised"]
        == 1
    )


def test_the_idf_counts_an_unknown_word_as_one_of_no_document():
    assert DocumentFrequencies(7, {"a": 7, "b": 1}).idf(
        ["a", "b", "c"]
    ) == pytest.approx([0, np.log(4), np.log(8)])


def test_a_document_without_candidates_has_no_features():
    assert candidate_features(find_candidates(["It was."]), UNCOUNTED).shape == (
        0,
        len(FEATURES),
    )


def chosen(story, scores, count):
    candidates = find_candidates(story)
    values = np.array([scores.get(name, 0.0) for name in candidates.normalised()])
    return [
        candidates.normalised()[index]
        for index in best_candidates(candidates, values, count)
    ]


def test_what_stands_within_a_better_one_is_left_out():
    story = ["Red clay brick", "brickwork"]
    assert chosen(
        story,
        {"red clay": 0.9, "clay": 0.8, "red": 0.7, "red clay brick": 0.6, "brick": 0.5},
        3,
    ) == [
        "red clay",
        "red clay brick",  # longer than a better one: it says more
        "brickwork",  # within no phrase as a word
    ]
    assert chosen(story, {"brickwork": 0.9, "brick": 0.8}, 2) == ["brickwork", "brick"]


def test_of_equal_scores_the_earlier_and_then_the_longer_comes_first():
    assert chosen(["new roof", "old roof"], {}, 9) == ["new roof", "old roof"]
    assert chosen(["clay roof", "roof tile", "clay house"], {}, 9) == [
        "clay roof",
        "roof tile",
        "clay hous",
    ]
    assert chosen(
        ["old roof", "new roof"],
        {"new roof": 0.5, "old roof": 0.5, "new": 0.5, "roof": 0.5},
        2,
    ) == ["old roof", "new roof"]


def test_the_baseline_takes_the_most_frequent():
    assert frequent_keyphrases(STORY, 3) == ["flood", "Leeds", "Leeds flood"]
    assert frequent_keyphrases([], 3) == []


@pytest.mark.parametrize("count", [0, -1])
def test_no_keyphrases_are_refused(count):
    with pytest.raises(
        UsageError,
        match=f"{count} keyphrases a document were asked for; at least 1 is needed",
    ):
        frequent_keyphrases(STORY, count)


def test_a_reference_names_the_longest_candidates():
    story = [
        "Judge Steven Leifman visits the jail.",
        "Leifman met a judge.",
        "A lawyer told Steven.",
    ]
    assert reference_keyphrases(
        story, "Steven Leifman was there .\na lawyers ' club"
    ) == {"steven leifman", "lawyer"}
    # Alone it is named as well.
    assert reference_keyphrases(
        story, "Steven Leifman was there .\nLeifman left ."
    ) == {"steven leifman", "leifman"}
    # Two that overlap, neither within the other.
    assert reference_keyphrases(["Red clay", "clay brick"], "red clay brick") == {
        "red clay",
        "clay brick",
    }
    # A line ends a phrase, as it does in the article.
    assert reference_keyphrases(story, "judge Steven\nLeifman") == {
        "judg steven",
        "leifman",
    }
    assert (
        reference_keyphrases(story, "") == set()
        and reference_keyphrases([], "Leifman") == set()
    )


def test_the_phrases_of_a_reference_stand_as_they_are_written_and_in_its_order():
    story = [
        "Judge Steven Leifman visits the jails.",
        "Leifman met a judge.",
        "A lawyer told Steven.",
    ]
    reference = "The jail's lawyers met Steven Leifman .\nA Judge and another judge met Leifman , rain fell ."
    assert reference_phrases(story, reference) == [
        "jail",
        "lawyers",
        "met",
        "Steven Leifman",
        "Judge",
        "Leifman",
    ]
    for number in range(20):
        sample = document(number)
        texts = [
            sentence.text for sentence in Article.from_text(sample.article).sentences
        ]
        found = reference_phrases(texts, sample.highlights)
        assert len(found) == len(set(found)) and {
            *map(normalise_phrase, found)
        } == reference_keyphrases(texts, sample.highlights)
    assert reference_phrases(story, "") == [] and reference_phrases([], "Leifman") == []


def test_the_f1_of_a_document_by_hand():
    references = {"citi council", "flood", "leed"}
    assert f1(["City Councils", "floods", "rain"], references) == pytest.approx(2 / 3)
    assert f1(["Floods"], references) == pytest.approx(0.5)  # precision 1, recall 1/3
    assert f1(["floods", "flood"], references) == pytest.approx(0.5)  # one phrase
    assert f1(["council"], references) == 0.0
    assert (
        f1([], references) == 0.0
        and f1(["rain"], set()) == 0.0
        and f1([], set()) == 0.0
    )
