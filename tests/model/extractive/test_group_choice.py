"""Tests of the choice of sentences for a group of documents."""

import itertools

import numpy as np
import pytest

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.groups import (
    CENTRALITY,
    IMPORTANCE,
    Candidate,
    choose_of_group,
)
from precis.model.extractive.importance import ImportanceModel
from precis.model.extractive.terms import TermCache

FLOOD = "The river flooded the harbour and the market on Monday."
WIRE = "On Monday the river flooded the harbour and also the market."
BRIDGE = "Engineers closed the old bridge near the harbour."
FAIR = "A festival of music was moved to a distant village."


def choose(texts, *, copies=(), starts=(), importance=None, **selection):
    candidates = [
        Candidate(text, start, 1.0, count)
        for text, count, start in itertools.zip_longest(texts, copies, starts)
    ]
    candidates = [
        each._replace(copies=each.copies or 1, start=each.start or 0)
        for each in candidates
    ]
    method, choices, _ = choose_of_group(
        candidates,
        selection=SelectionConfig(**selection),
        cache=TermCache(),
        importance=importance,
    )
    return method, [(texts[each.place], each.copies) for each in choices]


def test_nearly_equal_sentences_count_once_and_weigh_more():
    """FLOOD and WIRE have the same terms; four documents have them."""
    texts = [FAIR, FLOOD, BRIDGE, WIRE]
    method, chosen = choose(texts, copies=[1, 3, 1, 1], sentences=1)
    assert method == CENTRALITY
    assert chosen == [(FLOOD, 4)]
    assert choose(texts, copies=[9, 1, 1, 1], sentences=1)[1] == [(FAIR, 9)]
    _, everything = choose(texts, sentences=9)
    assert sorted(everything) == sorted([(FAIR, 1), (FLOOD, 2), (BRIDGE, 1)])


def test_the_order_is_that_of_the_places_in_the_documents():
    _, chosen = choose([FAIR, FLOOD, BRIDGE], starts=[90, 40, 0], sentences=3)
    assert [text for text, _ in chosen] == [BRIDGE, FLOOD, FAIR]


def test_words_are_limited():
    """FLOOD has ten words, BRIDGE eight, FAIR ten."""
    for limit in (7, 8, 17, 18, 20, 30):
        _, chosen = choose([FAIR, FLOOD, BRIDGE], sentences=3, max_words=limit)
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
    assert [text for text, _ in choose(texts, sentences=1)[1]] == floods[:1]
    assert {text for text, _ in choose(texts, sentences=2)[1]} == {floods[0], FAIR}
    _, chosen = choose(texts, copies=[2, 2, 1], sentences=2)
    assert {text for text, _ in chosen} == {*floods}


class Expecting(ImportanceModel):
    """Expects the words of a text."""

    def expect_reference(self, sentences, scores):
        words = FAIR.lower().rstrip(".").split()
        pairs = dict.fromkeys(itertools.pairwise(words), 1.0)
        assert len(sentences) == len(scores)
        return ExpectedReference(dict.fromkeys(words, 1.0), pairs, float(len(words)))


def test_what_an_extractor_finds_important_decides():
    importance = Expecting(*[None] * 4, np.zeros(3))
    method, chosen = choose([FLOOD, BRIDGE, FAIR], importance=importance)
    assert (method, chosen) == (IMPORTANCE, [(FAIR, 1)])


@pytest.mark.parametrize("texts", [[], ["?!"], ["\u4eca\u5929\u4e0b\u96e8\u3002"]])
def test_any_text_has_a_summary(texts):
    _, chosen = choose(texts)
    assert [text for text, _ in chosen] == texts
