"""Which lines are faithful to the sentence that they were written of."""

import pytest

from precis.model.inference.composition import is_complete, keeps_words
from precis.model.rouge import tokenize

SENTENCE = (
    "On Monday, government troops seized the old bridge when the mayor, who was "
    "asleep, left his town, police said."
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Government troops seized the old bridge.", True),
        ("The mayor left his town.", True),
        (SENTENCE, True),
        ("Government troops seized the old.", False),
        ("Government troops seized the bridge when the.", False),
        ("Troops seized it.", False),
        ("When the mayor left his town.", False),
        ("Seized the old bridge.", False),
    ],
)
def test_a_line_is_complete_where_a_clause_ends(line, expected):
    assert is_complete(line, SENTENCE) is expected


def test_a_possessive_is_not_the_end_of_a_line():
    sentence = "The team's leader won the race leader's jersey."
    assert is_complete("The team 's leader won the jersey.", sentence)
    assert not is_complete("The leader won the race leader.", sentence)


@pytest.mark.parametrize(
    ("line", "sentence", "expected"),
    [
        ("Government troops seized the old bridge.", SENTENCE, True),
        (SENTENCE, SENTENCE, True),
        ("Rebels seized the old bridge.", SENTENCE, False),
        ("The old bridge seized government troops.", SENTENCE, False),
        ("Government troops left his town.", SENTENCE, False),
        ("He loves his new name, he says.", "He loves his new name in it.", False),
    ],
)
def test_other_words_and_another_order_are_refused(line, sentence, expected):
    assert keeps_words(tokenize(line), tokenize(sentence)) is expected
