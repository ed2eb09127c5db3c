"""Tests of the selection of sentences: order, limits, redundancy, boilerplate and the
configuration.
"""

import math

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.frequency import frequency
from precis.model.extractive.methods import METHODS, lead
from precis.model.extractive.selection import Extract, extract, select
from precis.model.text import boilerplate
from precis.model.text.article import Article
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.sentences import Sentence

STORY = (
    "The old mill burned down. Nobody was in it. The old mill burned for hours. "
    "Rain put the fire out."
)
PLAIN = SelectionConfig(redundancy="none")


def texts_of(text):
    return [sentence.text for sentence in Article.from_text(text).sentences]


def test_extract_keeps_document_order_and_ranks_by_choice():
    sentences = Article.from_text(STORY).sentences
    scores = np.array([1.0, 4.0, 2.0, 8.0])
    extracts = extract(sentences, scores, selection=SelectionConfig(sentences=2))
    assert extracts == [Extract(2, 4.0, sentences[1]), Extract(1, 8.0, sentences[3])]


def test_extract_by_lead_takes_the_first_sentences():
    sentences = Article.from_text(STORY).sentences
    extracts = extract(sentences, lead(texts_of(STORY)), selection=PLAIN)
    ranked = [(extract.rank, extract.sentence) for extract in extracts]
    assert ranked == list(enumerate(sentences[:3], start=1))


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_of_equal_scores_the_earlier_sentence_is_taken(redundancy):
    texts = ["Kel mor.", "Tas bin.", "Rok sab.", "Tup nim."]
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(texts, np.array([1.0, 3.0, 2.0, 3.0]), selection=config) == [1, 3]
    assert select(texts, np.array([2.0, 1.0, 2.0, 2.0]), selection=config) == [0, 2]
    assert select(texts, np.zeros(4), selection=config) == [0, 1]
    texts = [f"Kel{'x' * number}." for number in range(40)]
    assert select(texts, np.arange(40) % 2, selection=config) == [1, 3]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_scores_that_differ_by_rounding_are_equal(redundancy):
    scores = np.array([0.3, 0.1 + 0.2, 0.1 + 0.2, -5.0])
    assert scores[0] < scores[1]
    texts = ["Kel mor.", "Tas bin.", "Rok sab.", "Tup."]
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(texts, scores, selection=config) == [0, 1]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_a_short_document_is_taken_whole_and_an_empty_one_has_no_summary(redundancy):
    config = SelectionConfig(sentences=7, redundancy=redundancy)
    texts = ["Kel mor.", "Tas bin."]
    assert select(texts, np.array([1.0, 5.0]), selection=config) == [1, 0]
    assert select([], np.array([]), selection=config) == []
    sentence = Sentence(0, 5, "Rain.")
    extracts = extract([sentence], frequency(["Rain."]), selection=config)
    assert extracts == [Extract(1, 1.0, sentence)]
    assert extract([], frequency([]), selection=config) == []


def test_trigram_blocking_takes_no_three_words_twice():
    scores = np.array([4.0, 1.0, 3.0, 2.0])

    def selected(**settings):
        selection = SelectionConfig(**settings)
        return select(texts_of(STORY), scores, selection=selection)

    assert selected(sentences=2) == [0, 3]  # both have `the old mill`
    assert selected(sentences=2, redundancy="none") == [0, 2]
    assert selected(sentences=4) == [0, 3, 1]  # a blocked sentence does not return
    # Two words in common do not block, and marks and capitals do not count.
    texts = ["THE OLD, mill.", "Old mill: the.", "the old mill"]
    scores = np.array([3.0, 2.0, 1.0])
    assert select(texts, scores, selection=SelectionConfig()) == [0, 1]


def test_maximal_marginal_relevance_weighs_relevance_against_similarity():
    # kel and mor have the same idf, so the cosine of the first two is sqrt(1/2); the
    # others share nothing with them.
    texts = ["Kel.", "Kel mor.", "Mor.", "Bin."]
    scores = np.array([2.0, 3.0, 1.0, 0.0])  # relevance 2/3, 1, 1/3, 0
    cosine = math.sqrt(0.5)

    def selected(scores, weight):
        selection = SelectionConfig(sentences=2, redundancy="mmr", mmr_lambda=weight)
        return select(texts, scores, selection=selection)

    # After the second, the first has weight x 2/3 - (1 - weight) x cosine, the fourth
    # 0: equal at this weight.
    equal = cosine / (cosine + 2 / 3)
    assert selected(scores, equal + 0.01) == [1, 0]
    assert selected(scores, equal - 0.01) == [1, 3]
    assert selected(scores, 1.0) == [1, 0]
    # A constant added to all scores does not change the relevance.
    assert selected(scores - 9, equal + 0.01) == [1, 0]


def test_maximal_marginal_relevance_counts_the_most_similar_sentence_taken():
    texts = ["Kel.", "Mor.", "Kel tas.", "Bin.", "Rok."]
    scores = np.array([4.0, 3.9, 3.8, 2.5, 0.0])
    config = SelectionConfig(sentences=4, redundancy="mmr", mmr_lambda=0.5)
    assert select(texts, scores, selection=config) == [0, 1, 3, 2]


def test_maximal_marginal_relevance_of_a_long_document_works_alike():
    others = [f"Bin{'x' * number}." for number in range(300)]
    scores = np.array([2.9, 3.0, 2.8, 2.7] + [0.0] * 299)
    config = SelectionConfig(sentences=2, redundancy="mmr")
    texts = ["Kel.", "Kel mor.", "Mor.", *others]
    assert select(texts, scores, selection=config) == [1, 3]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_a_word_limit_passes_over_sentences_that_do_not_fit(redundancy):
    texts = ["Kel mor tas bin rok.", "Sab tup.", "Nim lod ver.", "Gam."]
    scores = np.array([4.0, 3.0, 2.0, 1.0])

    def selected(**limits):
        selection = SelectionConfig(redundancy=redundancy, mmr_lambda=1.0, **limits)
        return select(texts, scores, selection=selection)

    assert selected(max_words=4) == [1, 3]
    assert selected(max_words=5) == [0]
    assert selected(max_words=6) == [0, 3]
    assert selected(max_words=5, sentences=1) == [0]
    assert selected(max_words=10, sentences=2) == [0, 1]
    config = SelectionConfig(redundancy=redundancy, max_words=4)
    assert select(texts[:1], scores[:1], selection=config) == []


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_boilerplate_is_skipped_unless_there_is_nothing_else(redundancy):
    texts = ["Scroll down for video.", "Rain fell.", "Follow us on Twitter."]
    scores = np.array([3.0, 2.0, 1.0])
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(texts, scores, selection=config) == [1]
    assert select(texts, scores, selection=config, skip_boilerplate=False) == [0, 1]
    assert select(texts[::2], scores[::2], selection=config) == [0, 1]
    # A sentence that does not fit is not boilerplate.
    texts = ["Read more.", "Rain fell on Monday."]
    config = SelectionConfig(max_words=3)
    assert select(texts, np.array([2.0, 1.0]), selection=config) == []


BOILERPLATE = [
    "Scroll down for video.",
    "scroll down for videos .",
    "VIDEO Scroll down to watch the highlights",
    "Click here for all the latest football news.",
    "click here !",
    "get a free trial issue - click here !",
    "Follow us on Twitter",
    "follow @brackwater on twitter to join the conversation .",
    "You can follow her on Instagram and Facebook.",
    "like us on facebook .",
    "Read more.",
    "READ MORE: Bridge to reopen in May",
    "read more about the flood .",
    "watch the mayor talk about the bridge »",
    "« watch the mayor talk about the bridge » . «",
    "e-mail to a friend .",
    "All rights reserved.",
    "all rights reserved.this material may not be published , broadcast , rewritten , "
    "or redistributed .",
    "Copyright 2008 The Brackwater Courier.",
    "© 2015 The Brackwater Courier.",
    "©2015 the brackwater courier .",
    "Share your thoughts in the comments below.",
    "Subscribe now!",
    "sign up for our daily newsletter .",
    "Story continues below",
    "ADVERTISEMENT",
    "sorry we are not currently accepting comments on this article .",
    "For confidential support call the helpline.",
    "Marta Holm, Ada Kern and Jo Reed contributed to this report.",
    "the associated press contributed to this report from brackwater .",
    "iReport.com: share your pictures of the flood",
]
STORIES = [
    "He told them to scroll down the page until the video began.",
    "The link said to click here, and thousands did so within the hour.",
    "Fans follow the club on Twitter in great numbers.",
    "The mayor said she would follow him anywhere, even on Twitter.",
    "Read more books, the teacher told her pupils.",
    "They watch the river rise » and fall.",
    "Copyright law changed in 2009 after a long debate.",
    "All rights of the owners were reserved by the court.",
    "The firm sold advertisement space.",
    "Heavy rain contributed to this report of a record flood, the agency said.",
    "Share prices fell on Monday.",
    "Subscribers to the paper were told on Monday.",
    "Residents were asked to sign up for shifts.",
    "",
]


def test_boilerplate_is_recognised():
    for sentence in BOILERPLATE:
        for form in (sentence, sentence.lower(), f"  {sentence.upper()}\n"):
            assert is_page_sentence(form), form


def test_a_sentence_of_a_story_is_no_boilerplate():
    for sentence in STORIES:
        for form in (sentence, sentence.lower()):
            assert not is_page_sentence(form), form


def test_every_hint_occurs_in_some_boilerplate():
    text = " ".join(BOILERPLATE).lower()
    missing = {hint for hint in boilerplate._HINTS if hint not in text}
    sites = {"google", "youtube", "pinterest", "snapchat", "instagram"}
    assert missing <= sites | {"tell us", "sponsored"}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_through_the_same_selection(method):
    sentences = Article.from_text(STORY + " Scroll down for video.").sentences
    scores = METHODS[method]([sentence.text for sentence in sentences])
    config = SelectionConfig(sentences=2).for_method(method)
    extracts = extract(sentences, scores, selection=config)
    assert len(extracts) == 2
    assert sorted(extract.rank for extract in extracts) == [1, 2]
    assert extracts[0].sentence.start < extracts[1].sentence.start


def test_baselines_have_no_redundancy():
    config = SelectionConfig(sentences=2, max_words=50, redundancy="mmr")
    expected = SelectionConfig(sentences=2, max_words=50, redundancy="none")
    for name in ("lead", "random", "oracle"):
        assert config.for_method(name) == expected
    assert config.for_method("lexrank") is config


def test_the_defaults():
    assert SelectionConfig() == SelectionConfig(
        sentences=0, max_words=0, redundancy="trigrams", mmr_lambda=0.7
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sentences": -1}, "--sentences must not be negative, but is -1"),
        (
            {"max_words": -1},
            "--max_words must not be negative, but is -1; 0 sets no limit",
        ),
        (
            {"redundancy": "bigrams"},
            "--redundancy is one of none, trigrams, mmr, not 'bigrams'",
        ),
        ({"mmr_lambda": 1.5}, "--mmr_lambda must lie between 0 and 1, not be 1.5"),
    ],
)
def test_an_impossible_selection_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        SelectionConfig(**settings)


def test_scores_that_do_not_fit_the_sentences_are_refused():
    texts = ["Kel.", "Mor."]
    message = r"2 sentences need one score each, not scores of shape \(3,\)"
    with pytest.raises(ValueError, match=message):
        select(texts, np.ones(3), selection=PLAIN)
    message = (
        "the score of sentence 1 is not a finite number; no order can be made of it"
    )
    with pytest.raises(ValueError, match=message):
        select(texts, np.array([1.0, np.nan]), selection=PLAIN)
    sentences = Article.from_text("Kel. Mor.").sentences
    message = "the score of sentence 0 is not a finite number"
    with pytest.raises(ValueError, match=message):
        extract(sentences, np.array([-np.inf, 1.0]), selection=PLAIN)
