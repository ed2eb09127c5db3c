"""One summary from the summaries of passages: by hand."""

import math

from precis.model.inference.merging import merge_summaries
from precis.model.inference.summarizer import Summary


def summary(text, score=-1.0, mean=-0.5, margin=0.25):
    return Summary(text, score, mean, margin)


def merged(*texts, **options):
    (only,) = merge_summaries([[summary(text)] for text in texts], **options)
    return only.text.splitlines()


FIRE = "A fire closed the old mill on Monday."
CAUSE = "Investigators blamed a faulty heater."
COST = "Repairs will cost four million euros."
MAYOR = "The mayor promised to rebuild it."


def test_sentences_come_once_and_in_the_order_of_the_document():
    texts = (f"{FIRE}\n{CAUSE}", f"{CAUSE}\n{COST}", f"{FIRE} {MAYOR}")
    assert merged(*texts, length=100) == [FIRE, CAUSE, COST, MAYOR]


def test_a_sentence_that_mostly_repeats_others_is_left_out():
    other = "On Monday a fire closed the old mill in town."
    assert merged(FIRE, other, COST, length=100) == [FIRE, COST]


def test_pairs_of_stop_words_repeat_nothing():
    texts = ("Was in so.", "In so was in so.")
    assert merged(*texts, length=9) == [*texts]
    assert merged(*texts, length=9, language="xx") == [texts[0]]
    greek = ("Της της τους.", "Τους της της τους.")
    assert merged(*greek, length=9, language="el") == [*greek]
    texts = ("War in der.", "In der war in der.")
    assert merged(*texts, length=9, language="de") == [*texts]


def test_the_first_passage_is_kept_whole_and_the_others_share_the_rest():
    long = f"{FIRE}\n{CAUSE}\n{COST}"
    trains = "Trains ran late in the whole region."
    # The mean is 11 words. So 1 word is left for the others, and then it is full.
    assert merged(long, MAYOR, trains, length=1.1) == [FIRE, CAUSE, COST, MAYOR]
    assert merged(long, MAYOR, trains, length=1.6) == [FIRE, CAUSE, COST, MAYOR, trains]
    assert merged(long, MAYOR) == [FIRE, CAUSE, COST, MAYOR]


def test_what_several_passages_say_is_worth_more():
    """The second half of each sentence is the same, the first is not."""
    theme = ["The bank in Oslo lost money.", "Its shares in Oslo lost money."]
    other = ["Nine dogs ate cold soup.", "Blue kites flew over hills."]
    texts = (FIRE, other[0], theme[0], other[1], theme[1])
    # The mean is 6 words.
    assert merged(*texts, length=2) == [FIRE, theme[0]]


def test_the_length_grows_with_the_square_root_of_the_passages():
    words = [f"w{number}" for number in range(490)]
    texts = [" ".join(words[start : start + 10]) + "." for start in range(0, 490, 10)]
    assert len(merged(*texts)) == 7
    assert len(merged(*texts[:2])) == 2
    assert len(merged(*texts, length=12)) == 12
    assert merged(*texts, length=math.inf) == texts


def test_score_and_margin_are_those_of_the_passages_that_are_used():
    passages = [
        [summary(FIRE, -1.0, -0.5, 0.25), summary("Not the best one.", -9.0)],
        [summary(FIRE, -100.0, -50.0, -1.0)],  # it adds nothing
        [],  # for which the search found none
        [summary(COST, -3.0, -1.0, None)],
    ]
    expected = Summary(f"{FIRE}\n{COST}", -2.0, -0.75, 0.25)
    assert merge_summaries(passages, length=10) == [expected]
    assert merge_summaries([[], []]) == []


def test_summaries_without_words_are_an_empty_summary():
    (empty,) = merge_summaries([[summary("")], [summary("?!", -3.0, -1.5, None)]])
    assert empty == Summary("", -2.0, -1.0, 0.25)
