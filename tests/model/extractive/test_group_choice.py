"""Tests of the choice of sentences for a group of documents."""

import itertools

import pytest

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.groups import (
    CENTRALITY,
    SALIENCE,
    Candidate,
    choose_of_group,
)

FLOOD = "The river flooded the harbour and the market on Monday."
WIRE = "On Monday the river flooded the harbour and also the market."
BRIDGE = "Engineers closed the old bridge near the harbour."
FAIR = "A festival of music was moved to a distant village."


def choose(texts, *, copies=(), starts=(), scores=(), method=CENTRALITY, **selection):
    columns = itertools.zip_longest(texts, starts, scores, copies)
    candidates = [
        Candidate(text, start or 0, score or 1.0, count or 1)
        for text, start, score, count in columns
    ]
    selection = SelectionConfig(**selection)
    choices = choose_of_group(candidates, selection=selection, method=method)
    return [(texts[each.place], each.copies) for each in choices]


def test_nearly_equal_sentences_count_once_and_weigh_more():
    """FLOOD and WIRE have the same terms; four documents have them."""
    texts = [FAIR, FLOOD, BRIDGE, WIRE]
    assert choose(texts, copies=[1, 3, 1, 1], sentences=1) == [(FLOOD, 4)]
    assert choose(texts, copies=[9, 1, 1, 1], sentences=1) == [(FAIR, 9)]
    everything = choose(texts, sentences=9)
    assert sorted(everything) == sorted([(FAIR, 1), (FLOOD, 2), (BRIDGE, 1)])


def test_the_order_is_that_of_the_places_in_the_documents():
    chosen = choose([FAIR, FLOOD, BRIDGE], starts=[90, 40, 0], sentences=3)
    assert [text for text, _ in chosen] == [BRIDGE, FLOOD, FAIR]


def test_a_headline_is_a_candidate_shortened():
    sentences = [FAIR, f"{BRIDGE[:-1]} after a long night of heavy rain in the hills."]
    for texts, line in ((sentences, FAIR), (sentences[1:], BRIDGE)):
        candidates = [Candidate(text, 0, 1.0, 1) for text in texts]
        selection = SelectionConfig(form="headline", max_words=10)
        (choice,) = choose_of_group(candidates, selection=selection)
        assert (choice.place, choice.line) == (0, line)
    # An odd quotation mark in one candidate is none of the next one.
    candidates = [Candidate(text, 0, 1.0, 1) for text in (f'"{FAIR}', BRIDGE)]
    (choice,) = choose_of_group(candidates, selection=selection)
    assert choice.line == BRIDGE


def test_words_are_limited():
    """FLOOD has ten words, BRIDGE eight, FAIR ten."""
    for limit in (7, 8, 17, 18, 20, 30):
        chosen = choose([FAIR, FLOOD, BRIDGE], sentences=3, max_words=limit)
        assert sum(len(text.split()) for text, _ in chosen) <= limit
        assert bool(chosen) == (limit >= 8)


def test_relevance_gives_way_to_novelty():
    """All three are equally central, and of equal ones the first is taken, unless it
    says little that is new; what more documents say is taken in spite of that.
    """
    floods = [
        "Floods reached the harbour, the market and the school.",
        "Floods reached the harbour, the library and the station.",
    ]
    texts = [*floods, FAIR]
    assert [text for text, _ in choose(texts, sentences=1)] == floods[:1]
    assert {text for text, _ in choose(texts, sentences=2)} == {floods[0], FAIR}
    chosen = choose(texts, copies=[2, 2, 1], sentences=2)
    assert {text for text, _ in chosen} == {*floods}


def test_the_scores_of_an_extractor_are_a_factor_of_salience():
    """FLOOD shares words with BRIDGE, and FAIR with none."""
    texts, scores = [FLOOD, BRIDGE, FAIR], [0.1, 0.1, 0.9]
    chosen = {
        method: choose(texts, scores=scores, sentences=1, method=method)
        for method in (CENTRALITY, SALIENCE)
    }
    assert chosen == {CENTRALITY: [(FLOOD, 1)], SALIENCE: [(FAIR, 1)]}
    likely = choose(texts, scores=[0.9, 0.1, 0.9], sentences=1, method=SALIENCE)
    assert likely == [(FLOOD, 1)]


@pytest.mark.parametrize("texts", [[], ["?!"], ["\u4eca\u5929\u4e0b\u96e8\u3002"]])
def test_any_text_has_a_summary(texts):
    chosen = choose(texts, method=SALIENCE)
    assert [text for text, _ in chosen] == texts
