"""Headlines: which sentence, and what is left of it."""

import numpy as np
import pytest
from support import read_table

from precis.model.extractive.headlines import find_headline
from precis.model.text.length_limit import LengthLimit

SENTENCES = read_table("headlines")


def line_of(*sentences, words=12):
    """The headline of sentences of which the first has the best score."""
    scores = np.arange(len(sentences), 0.0, -1.0)
    found = find_headline(sentences, scores, limit=LengthLimit(words))
    return found and found.line


@pytest.mark.parametrize(("sentence", "line"), SENTENCES["shortened"])
def test_a_sentence_is_shortened_to_its_main_clause(sentence, line):
    assert line_of(sentence) == line
    expected = line if sentence.startswith(("On", "OS")) else sentence
    assert line_of(sentence, words=20) == expected


@pytest.mark.parametrize("sentence", SENTENCES["refused"])
def test_sentences_that_need_others_are_no_headlines(sentence):
    assert line_of(sentence) is None
    story = "Brewers from Bergen bought the old mill in Oslo."
    assert line_of(sentence, story) == story


def test_a_sentence_within_a_quotation_is_no_headline():
    quoted = ['"Oslo has no money.', "Brewers bought the mill last week.", 'No."']
    assert line_of(*quoted) is None
    # Each paragraph of a quotation begins with a mark, only the last one ends with one.
    story = "Brewers from Bergen bought the old mill in Oslo."
    assert line_of(quoted[0], *quoted, story) == story


def test_what_was_named_before_is_taken_last():
    vague = "The old mayor sold a mill to brewers from Bergen."
    assert line_of(vague) == vague
    named = "Ada Kern sold the old mill in Oslo."
    assert line_of(vague, named) == named


def test_a_very_long_sentence_takes_no_time():
    long = "The mayor of Oslo left, as it was, after a day, " * 9_000
    assert line_of(f"{long}.") is None
