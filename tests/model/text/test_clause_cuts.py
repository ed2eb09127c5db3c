"""Sentences without the clauses that they can do without."""

import pytest
from support import read_table

from precis.model.text.clause_cuts import cut_sentence

SENTENCES = read_table("clause_cuts")


@pytest.mark.parametrize(("sentence", "cut"), SENTENCES["cut"])
def test_what_is_left_is_a_sentence(sentence, cut):
    assert cut in cut_sentence(sentence)


@pytest.mark.parametrize("sentence", SENTENCES["whole"])
def test_a_sentence_that_needs_its_parts_stays_whole(sentence):
    assert cut_sentence(sentence) == []


def test_a_clause_keeps_the_one_that_it_needs():
    sentence = "Last week, when the mayor left the old town, a teacher came."
    assert cut_sentence(sentence) == [
        "When the mayor left the old town, a teacher came."
    ]


def test_parts_are_left_out_together_and_each_text_comes_once():
    sentence = "But the mayor, 61, left the old town in May, police said."
    assert sorted(cut_sentence(sentence)) == [
        "But the mayor left the old town in May, police said.",
        "The mayor left the old town in May, police said.",
        "The mayor, 61, left the old town in May, police said.",
    ]
    # Up to 3 of the first 6 parts are left out, and the time that it takes is bounded.
    first = "However, meanwhile, in addition, moreover, of course, furthermore, "
    assert len(cut_sentence(f"{first}but the mayor left the old town.")) == 6 + 15 + 20
    assert len(cut_sentence("But the mayor left" + ", as it was (so), " * 5_000)) == 1
