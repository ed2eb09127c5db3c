"""How likely a sentence of English tells something by itself."""

import math

import pytest
from support import read_table

from precis.model.text.sentence_confidence import has_verb, sentence_confidence

TELLING = "Troops seized the old bridge and two villages on Monday."


LOGITS = [
    # By hand: the weights of 1 and of the words, and of what is seen in it.
    (TELLING, -4.48 + 2.58 * math.log(10) + 0.66),
    ("Photo: the old bridge.", -4.48 + 2.58 * math.log(4) - 1.89 - 1.84 - 0.68),
    ("We will never leave.", -4.48 + 2.58 * math.log(4) - 1.0),
    ("Why troops seized it .", -4.48 + 2.58 * math.log(4) + 0.66 - 2.84),
    ("They will leave it and .", -4.48 + 2.58 * math.log(5) - 1.82),
    ("They will - leave it.", -4.48 + 2.58 * math.log(4) - 0.86),
    ("", -4.48 - 1.89),
    (" ".join([TELLING] * 9_000), -4.48 + 2.58 * math.log(90_000) + 0.66),
]


@pytest.mark.parametrize(("sentence", "logit"), LOGITS)
def test_the_probability_follows_what_is_seen_in_the_sentence(sentence, logit):
    assert sentence_confidence(sentence) == pytest.approx(1 / (1 + math.exp(-logit)))


@pytest.mark.parametrize(("text", "expected"), read_table("words")["verbs"])
def test_a_word_that_looks_like_a_verb_is_found(text, expected):
    assert has_verb(text) is expected
