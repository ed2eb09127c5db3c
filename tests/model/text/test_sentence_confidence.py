"""How likely a sentence of English tells something by itself."""

import math

import pytest

from precis.model.text.sentence_confidence import has_verb, sentence_confidence

TELLING = "Troops seized the old bridge and two villages on Monday."


@pytest.mark.parametrize(
    ("sentence", "logit"),
    [
        # By hand: the weights of 1 and of the words, and of what is seen in it.
        (TELLING, -3.66 + 2.29 * math.log(10)),
        ("Photo: the old bridge.", -3.66 + 2.29 * math.log(4) - 1.82 - 0.62 - 1.88),
        ("We will never leave.", -3.66 + 2.29 * math.log(4) - 1.23),
        ("", -3.66 - 1.82),
        (" ".join([TELLING] * 9_000), -3.66 + 2.29 * math.log(90_000)),
    ],
)
def test_the_probability_follows_what_is_seen_in_the_sentence(sentence, logit):
    assert sentence_confidence(sentence) == pytest.approx(1 / (1 + math.exp(-logit)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nobody isn’t here.", True),
        ("the mayor 's left", True),
        ("He 's there", True),
        ("The king's death", True),  # could be `is`
        ("A king in the red hall", False),
        ("Scattered clouds", True),  # could be the verb
        ("", False),
    ],
)
def test_a_word_that_looks_like_a_verb_is_found(text, expected):
    assert has_verb(text) is expected
