"""Which lines are faithful to the sentence that they were written of."""

import pytest

from precis.model.inference.line_checks import is_complete, keeps_words
from precis.model.rouge import tokenize

SENTENCE = (
    "On Monday, government troops seized the old bridge when the mayor, who was "
    "asleep, left his town, police said."
)


@pytest.mark.parametrize(
    "line",
    [
        "Government troops seized the old bridge.",
        "The mayor left his town.",
        SENTENCE,
    ],
)
def test_whole_clauses_are_complete(line):
    assert is_complete(line, SENTENCE)
    assert keeps_words(tokenize(line), tokenize(SENTENCE))


@pytest.mark.parametrize(
    "line",
    [
        "Government troops seized the old.",
        "Government troops seized the bridge when the.",
        "Troops seized it.",
        "When the mayor left his town.",
        "Seized the old bridge.",
    ],
)
def test_what_was_cut_is_not(line):
    assert not is_complete(line, SENTENCE)


@pytest.mark.parametrize(
    ("line", "sentence", "expected"),
    [
        (
            "The team 's leader won the race.",
            "The team's leader won the race in Rome.",
            True,
        ),
        ("He won the race leader.", "He won the race leader's yellow jersey.", False),
    ],
)
def test_a_possessive_is_not_the_end_of_a_line(line, sentence, expected):
    assert is_complete(line, sentence) is expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("Rebels seized the old bridge.", SENTENCE),
        ("The old bridge seized government troops.", SENTENCE),
        ("Government troops left his town.", SENTENCE),
        ("He loves his new name, he says.", "He loves his new name in the town."),
    ],
)
def test_other_words_and_another_order_are_refused(line, sentence):
    assert not keeps_words(tokenize(line), tokenize(sentence))
