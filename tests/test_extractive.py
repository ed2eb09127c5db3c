"""Extractive methods and selection."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from model.errors import UsageError
from model.extractive.methods import METHODS, frequency, lead
from model.extractive.selection import Extract, extract, select
from model.extractive.stopwords import STOP_WORDS
from model.text import Sentence, sentences

# Written for this test. Content words by stem: marta 3; bridge, flood, village, repair 2 each; eighteen others 1 each.
PARAGRAPH = (
    "Marta measured the cracked bridge before the flooding reached its wooden legs. "
    "The villages paid for repairs after an earlier flood. "
    "Marta repaired the bridge with oak planks, iron nails and 12 borrowed ropes. "
    "Nobody in the village thanked Marta until winter came quietly."
)
NAME, TWICE, ONCE = Fraction(1), Fraction(2, 3), Fraction(1, 3)
SCORES = [
    NAME + 2 * TWICE + 5 * ONCE,  # marta; bridge flood; measured cracked reached wooden legs
    3 * TWICE + 2 * ONCE,  # village repair flood; paid earlier
    NAME + 2 * TWICE + 6 * ONCE,  # marta; repair bridge; oak planks iron nails borrowed ropes
    NAME + 1 * TWICE + 5 * ONCE,  # marta; village; nobody thanked winter came quietly
]


def test_frequency_scores_the_worked_paragraph_exactly():
    assert SCORES == [4, Fraction(8, 3), Fraction(13, 3), Fraction(10, 3)]
    scores = frequency([sentence.text for sentence in sentences(PARAGRAPH)])
    assert scores.dtype == np.float64
    assert scores.tolist() == [float(score) for score in SCORES]


def test_extract_keeps_document_order_and_ranks_by_score():
    found = sentences(PARAGRAPH)
    assert extract(found, method="frequency", count=2) == [Extract(2, 4.0, found[0]), Extract(1, 13 / 3, found[2])]


def test_extract_by_lead_takes_the_first_sentences():
    found = sentences(PARAGRAPH)
    assert [(e.rank, e.sentence) for e in extract(found, method="lead", count=3)] == list(enumerate(found[:3], start=1))


def test_frequency_drops_stop_words_numbers_and_punctuation():
    # rain is the only content word, twice in the first sentence
    assert frequency(["It was the rain -- and, the 12 RAIN!", "1,200 of 4.5m in 2014.", "?!"]).tolist() == [2.0, 0.0, 0.0]


def test_frequency_reads_a_possessive_as_its_owner_and_tokenised_text_like_plain_text():
    assert frequency(["Marta's boat.", "Marta sails."]).tolist() == [1.5, 1.5]
    assert frequency(["marta 's boat .", "marta does n't sail ."]).tolist() == [1.5, 1.5]
    assert frequency(["Marta’s boat.", "Marta didn’t sail."]).tolist() == [1.5, 1.5]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_one_finite_score_a_sentence(method):
    for texts in ([], ["One."], ["The.", "", "Boats and boats."]):
        scores = METHODS[method](texts)
        assert scores.shape == (len(texts),)
        assert np.isfinite(scores).all()


def test_lead_falls_from_sentence_to_sentence():
    assert (np.diff(lead(["a", "b", "c", "d"])) < 0).all()


def test_select_gives_document_order_and_the_earlier_of_equals():
    assert select(np.array([1.0, 3.0, 2.0, 3.0]), count=2) == [1, 3]
    assert select(np.array([2.0, 1.0, 2.0, 2.0]), count=2) == [0, 2]
    assert select(np.array([1.0, 5.0]), count=7) == [1, 0]
    assert select(np.array([]), count=3) == []


def test_extract_gives_all_sentences_of_a_short_document_and_none_of_an_empty_one():
    only = Sentence(0, 5, "Rain.")
    assert extract([only], method="frequency", count=3) == [Extract(1, 1.0, only)]
    assert extract([], method="frequency", count=3) == []


def test_extract_ranks_equal_scores_by_position():
    found = sentences("Boats sail. Boats sail. Boats sail.")
    assert [e.rank for e in extract(found, method="frequency", count=3)] == [1, 2, 3]


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="unknown extractive method 'lexrank'; known are frequency, lead"):
        extract([], method="lexrank", count=3)


def test_a_count_below_one_is_refused():
    with pytest.raises(UsageError, match="summary of 0 sentences was asked for; it needs at least 1"):
        select(np.array([1.0]), count=0)


def test_threads_stem_alike():
    texts = [f"{word}{ending}ing" for word in ("repair", "flood", "sail") for ending in map(chr, range(97, 123))] * 20
    with ThreadPoolExecutor(8) as pool:
        scores = list(pool.map(lambda text: frequency([text, text[:-3]]).tolist(), texts))
    assert scores == [frequency([text, text[:-3]]).tolist() for text in texts]


def test_the_stop_word_list_is_whole():
    assert len(STOP_WORDS) == 174
    assert {"the", "i", "don't", "very"} <= STOP_WORDS
    assert not {"us", "will", "said"} & STOP_WORDS
