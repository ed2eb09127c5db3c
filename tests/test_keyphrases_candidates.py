"""Tests of the candidates of a document."""

import numpy as np
import pytest

from precis.model.keyphrases.candidates import find_candidates, normalise_phrase
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document


def phrases(*texts):
    """The candidates of a document in their written form, in alphabetical order."""
    candidates = find_candidates(texts)
    return sorted(candidates.surface(index) for index in range(len(candidates.start)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Up to four words.
        ("red clay brick", "red clay brick|red clay|clay brick|red|clay|brick"),
        (
            "one two three four five",
            "one two three four|two three four five|"
            "one two three|two three four|three four five|"
            "one two|two three|three four|four five|one|two|three|four|five",
        ),
        (
            "The city council of Leeds met on Friday.",
            "city|city council|city council of Leeds|council|council of Leeds|"
            "council of Leeds met|Leeds|Leeds met|met|Friday",
        ),
        # Punctuation ends a phrase.
        ("Old stone, new roof", "Old stone|Old|stone|new roof|new|roof"),
        # So does a stop word,
        ("they moved to a town", "moved|town"),
        # and a word as common as one.
        ("mayors can win", "mayors|win"),
        # Links stand within a phrase.
        ("Bank of the West", "Bank of the West|Bank|West"),
        # `the` without another link is none.
        ("lost the war", "lost|war"),
        ("the end of it", "end"),
        # Numbers alone are no phrase.
        (
            "in 2014 it lost 4.5m over 1,200 days",
            "lost 4.5m|lost|1,200 days|days",
        ),
        # A possessive ends a phrase and is written without its 's.
        ("Leeds's council", "Leeds|council"),
        # Tokenised text.
        ("leeds 's council -lrb- city -rrb- `` hall ''", "leeds|council|city|hall"),
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
    assert phrases() == []
    assert phrases("", "...") == []


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
    assert candidates.start[index] == 0
    assert candidates.length[index] == 2


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
        count = len(candidates.start)
        surfaces = [candidates.surface(index) for index in range(count)]
        assert len(surfaces) == len(set(surfaces))
        occurrences = np.bincount(candidates.candidate, minlength=count).tolist()
        assert dict(zip(surfaces, occurrences, strict=True)) == expected
    assert len(expected) > 200


def test_a_written_form_has_the_normalised_form_of_its_candidate():
    for number in range(20):
        article = Article.from_text(document(number).article)
        candidates = find_candidates([sentence.text for sentence in article.sentences])
        surfaces = [candidates.surface(index) for index in range(len(candidates.start))]
        assert list(map(normalise_phrase, surfaces)) == candidates.normalised()


def test_a_letter_and_its_accent_are_one_character_and_apostrophes_are_alike():
    normalised = "caf\u00e9 rock'n'rol"
    assert normalise_phrase("cafe\u0301 rock’n’roll") == normalised
    assert normalise_phrase("caf\u00e9 rock'n'roll") == normalised
    assert phrases("Cafe\u0301", "rock’n’roll") == ["Caf\u00e9", "rock'n'roll"]
