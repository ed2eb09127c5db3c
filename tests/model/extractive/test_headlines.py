"""Headlines: which sentence, and what is left of it."""

import numpy as np
import pytest

from precis.model.extractive.headlines import find_headline
from precis.model.text.length_limit import LengthLimit


def line_of(*sentences, words=12):
    """The headline of sentences of which the first has the best score."""
    scores = np.arange(len(sentences), 0.0, -1.0)
    found = find_headline(sentences, scores, limit=LengthLimit(words))
    return found and found.line


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        (
            "On Monday, the mayor of Oslo sold the old mill to brewers from Bergen.",
            "The mayor of Oslo sold the old mill to brewers from Bergen.",
        ),
        (
            "Mayor Ada Kern has sold the old mill of Oslo after a debate in the hall.",
            "Mayor Ada Kern has sold the old mill of Oslo.",
        ),
        (
            "Mayor Ada Kern closed the old mill on Monday as her critics left it.",
            "Mayor Ada Kern closed the old mill on Monday.",
        ),
        (
            "mayor ada kern , 61 , was asked to leave , a move that angered oslo .",
            "mayor ada kern was asked to leave .",
        ),
        (
            'Mayor Ada Kern closed "the old mill" -- a move that few had "foreseen."',
            'Mayor Ada Kern closed "the old mill".',
        ),
        # Who says it stays, behind fewer words.
        (
            "Ada Kern sold the old mill after a debate, her spokesman said on Monday.",
            "Ada Kern sold the old mill, her spokesman said on Monday.",
        ),
        (
            "Ada Kern sold the old mill to a man from Bergen, police and brewers said.",
            None,
        ),
        # So does a condition.
        (
            "Ada Kern will sell the old mill, the oldest of all, if it can be saved.",
            None,
        ),
        (
            "Mayor Ada Kern has sold the old mill of Oslo as long as it is kept open.",
            None,
        ),
        (
            "Ada Kern sold the old mill, but the town bought it back, police said.",
            None,
        ),
        ("Ada Kern sold the old mill in Oslo, though nobody ever saw her sign.", None),
        # A dateline goes.
        (
            "OSLO, Norway (CNN) -- Ada Kern was asked to leave the old town.",
            "Ada Kern was asked to leave the old town.",
        ),
        # The verb of the sentence, the end of a series or a part of a pair is lost.
        ("The car in the old mill of the town was left by its owner.", None),
        ("Ada Kern and the town are looking for a new, far larger mill in Oslo.", None),
        (
            "Ada Kern was both the mayor while the mill was sold and its new owner.",
            None,
        ),
        ("Ada Kern left the old mill in Oslo just hours before it burned down.", None),
    ],
)
def test_a_sentence_is_shortened_to_its_main_clause(sentence, line):
    assert line_of(sentence) == line
    expected = line if sentence.startswith(("On", "OS")) else sentence
    assert line_of(sentence, words=20) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Thank you all for coming to the opening of the mill.",
        "Why was the old mill in Oslo sold to brewers?",
        "Click here for more stories about the old mill.",
        "Photo of the old mill above the town of Oslo.",
        "But he sold the mill in Oslo to a brewer.",
        "He sold the old mill in Oslo to a brewer.",
        '"We sold the old mill in Oslo to brewers."',
        "Brewers bought our old mill in Oslo on Monday.",
        "The mill was sold to brewers, he said on Monday.",
        "Owned by brewers in Oslo, the mill was closed.",
        "Thus, if they had sent the letter to the mayor.",
        "Ada Kern was asked to leave the old mill, saying.",
        "However, experts warned, the old mill was closed.",
    ],
)
def test_sentences_that_need_others_are_no_headlines(sentence):
    assert line_of(sentence) is None
    assert line_of(sentence, "Brewers from Bergen bought the old mill in Oslo.") == (
        "Brewers from Bergen bought the old mill in Oslo."
    )


def test_a_sentence_within_a_quotation_is_no_headline():
    quoted = [
        '"Oslo has no money.',
        "Brewers bought the mill in Oslo last week.",
        'No."',
    ]
    assert line_of(*quoted) is None
    # Each paragraph of a quotation begins with a mark, only the last one ends with one.
    story = "Brewers from Bergen bought the old mill in Oslo."
    assert line_of(quoted[0], *quoted, story) == story


def test_what_was_named_before_is_taken_last():
    vague = "The old mayor sold a mill to brewers from Bergen."
    assert line_of(vague) == vague
    assert line_of(vague, "Ada Kern sold the old mill in Oslo.") == (
        "Ada Kern sold the old mill in Oslo."
    )


def test_a_very_long_sentence_takes_no_time():
    assert (
        line_of("The mayor of Oslo left, as it was, after a day, " * 9_000 + ".")
        is None
    )
