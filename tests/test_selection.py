"""Selection of sentences: order, limits, redundancy, boilerplate; and the configuration
of it.
"""

import math

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.methods import METHODS, frequency, lead
from precis.model.extractive.selection import Extract, extract, select
from precis.model.text.article import Article
from precis.model.text.page_sentences import is_boilerplate
from precis.model.text.sentences import Sentence

STORY = "The old mill burned down. Nobody was in it. The old mill burned for hours. Rain put the fire out."
PLAIN = SelectionConfig(redundancy="none")


def texts_of(text):
    return [sentence.text for sentence in Article.from_text(text).sentences]


def test_extract_keeps_document_order_and_ranks_by_choice():
    found = Article.from_text(STORY).sentences
    chosen = extract(
        found, np.array([1.0, 4.0, 2.0, 8.0]), selection=SelectionConfig(sentences=2)
    )
    assert chosen == [Extract(2, 4.0, found[1]), Extract(1, 8.0, found[3])]


def test_extract_by_lead_takes_the_first_sentences():
    found = Article.from_text(STORY).sentences
    chosen = extract(found, lead(texts_of(STORY)), selection=PLAIN)
    assert [(one.rank, one.sentence) for one in chosen] == list(
        enumerate(found[:3], start=1)
    )


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_of_equal_scores_the_earlier_sentence_is_taken(redundancy):
    texts = ["Kel mor.", "Tas bin.", "Rok sab.", "Tup nim."]
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(texts, np.array([1.0, 3.0, 2.0, 3.0]), selection=config) == [1, 3]
    assert select(texts, np.array([2.0, 1.0, 2.0, 2.0]), selection=config) == [0, 2]
    assert select(texts, np.zeros(4), selection=config) == [0, 1]
    assert select(
        [f"Kel{'x' * number}." for number in range(40)],
        np.arange(40) % 2,
        selection=config,
    ) == [1, 3]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_scores_that_differ_by_rounding_are_equal(redundancy):
    scores = np.array([0.1 + 0.2, 0.3, 0.1 + 0.2, -5.0])
    assert scores[1] < scores[0]
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(
        ["Kel mor.", "Tas bin.", "Rok sab.", "Tup."],
        scores[[1, 0, 2, 3]],
        selection=config,
    ) == [0, 1]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_a_short_document_is_taken_whole_and_an_empty_one_has_no_summary(redundancy):
    config = SelectionConfig(sentences=7, redundancy=redundancy)
    assert select(["Kel mor.", "Tas bin."], np.array([1.0, 5.0]), selection=config) == [
        1,
        0,
    ]
    assert select([], np.array([]), selection=config) == []
    only = Sentence(0, 5, "Rain.")
    assert extract([only], frequency(["Rain."]), selection=config) == [
        Extract(1, 1.0, only)
    ]
    assert extract([], frequency([]), selection=config) == []


def test_trigram_blocking_takes_no_three_words_twice():
    scores = np.array([4.0, 1.0, 3.0, 2.0])
    assert select(texts_of(STORY), scores, selection=SelectionConfig(sentences=2)) == [
        0,
        3,
    ]  # the old mill
    assert select(
        texts_of(STORY),
        scores,
        selection=SelectionConfig(sentences=2, redundancy="none"),
    ) == [0, 2]
    assert select(texts_of(STORY), scores, selection=SelectionConfig(sentences=4)) == [
        0,
        3,
        1,
    ]  # what is blocked stays so
    # Two words in common are none too many, whatever the marks and capitals.
    assert select(
        ["THE OLD, mill.", "Old mill: the.", "the old mill"],
        np.array([3.0, 2.0, 1.0]),
        selection=SelectionConfig(),
    ) == [0, 1]


def test_maximal_marginal_relevance_weighs_relevance_against_similarity():
    # kel and mor have the same idf, so the cosine of the first two is sqrt(1/2); the
    # others share nothing with them.
    texts = ["Kel.", "Kel mor.", "Mor.", "Bin."]
    scores = np.array([2.0, 3.0, 1.0, 0.0])  # relevance 2/3, 1, 1/3, 0
    cosine = math.sqrt(0.5)

    def taken(weight):
        return select(
            texts,
            scores,
            selection=SelectionConfig(sentences=2, redundancy="mmr", mmr_lambda=weight),
        )

    # After the second, the first has weight x 2/3 - (1 - weight) x cosine, the fourth
    # 0: equal at this weight.
    even = cosine / (cosine + 2 / 3)
    assert taken(even + 0.01) == [1, 0]
    assert taken(even - 0.01) == [1, 3]
    assert taken(1.0) == [1, 0]
    # Relevance is what counts, wherever the scores begin.
    moved = select(
        texts,
        scores - 9,
        selection=SelectionConfig(
            sentences=2, redundancy="mmr", mmr_lambda=even + 0.01
        ),
    )
    assert moved == [1, 0]


def test_maximal_marginal_relevance_counts_the_most_similar_sentence_taken():
    texts = ["Kel.", "Mor.", "Kel tas.", "Bin.", "Rok."]
    scores = np.array([4.0, 3.9, 3.8, 2.5, 0.0])
    assert select(
        texts,
        scores,
        selection=SelectionConfig(sentences=4, redundancy="mmr", mmr_lambda=0.5),
    ) == [0, 1, 3, 2]


def test_maximal_marginal_relevance_of_a_long_document_works_alike():
    texts = ["Kel.", "Kel mor.", "Mor."] + [
        f"Bin{'x' * number}." for number in range(300)
    ]
    scores = np.array([2.9, 3.0, 2.8, 2.7] + [0.0] * 299)
    assert select(
        texts, scores, selection=SelectionConfig(sentences=2, redundancy="mmr")
    ) == [1, 3]


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_a_word_budget_passes_over_what_does_not_fit(redundancy):
    texts = ["Kel mor tas bin rok.", "Sab tup.", "Nim lod ver.", "Gam."]
    scores = np.array([4.0, 3.0, 2.0, 1.0])

    def taken(**limits):
        return select(
            texts,
            scores,
            selection=SelectionConfig(redundancy=redundancy, mmr_lambda=1.0, **limits),
        )

    assert taken(max_words=4) == [1, 3]
    assert taken(max_words=5) == [0]
    assert taken(max_words=6) == [0, 3]
    assert taken(max_words=5, sentences=1) == [0]
    assert taken(max_words=10, sentences=2) == [0, 1]
    assert (
        select(
            texts[:1],
            scores[:1],
            selection=SelectionConfig(redundancy=redundancy, max_words=4),
        )
        == []
    )


@pytest.mark.parametrize("redundancy", ["none", "trigrams", "mmr"])
def test_boilerplate_is_skipped_unless_there_is_nothing_else(redundancy):
    texts = ["Scroll down for video.", "Rain fell.", "Follow us on Twitter."]
    scores = np.array([3.0, 2.0, 1.0])
    config = SelectionConfig(sentences=2, redundancy=redundancy)
    assert select(texts, scores, selection=config) == [1]
    assert select(texts, scores, selection=config, skip_boilerplate=False) == [0, 1]
    assert select(texts[::2], scores[::2], selection=config) == [0, 1]
    # A sentence that only does not fit is something else.
    assert (
        select(
            ["Read more.", "Rain fell on Monday."],
            np.array([2.0, 1.0]),
            selection=SelectionConfig(max_words=3),
        )
        == []
    )


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
    "all rights reserved.this material may not be published , broadcast , rewritten , or redistributed .",
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


@pytest.mark.parametrize("sentence", BOILERPLATE)
def test_boilerplate_is_known(sentence):
    assert is_boilerplate(sentence)
    assert is_boilerplate(sentence.lower()) and is_boilerplate(
        f"  {sentence.upper()}\n"
    )


@pytest.mark.parametrize("sentence", STORIES)
def test_a_sentence_of_a_story_is_no_boilerplate(sentence):
    assert not is_boilerplate(sentence) and not is_boilerplate(sentence.lower())


def test_every_hint_is_needed_by_some_pattern():
    hinted = " ".join(BOILERPLATE).lower()
    from precis.model.text import page_sentences

    sites = {"google", "youtube", "pinterest", "snapchat", "instagram"}
    assert {hint for hint in page_sentences._HINTS if hint not in hinted} <= sites | {
        "tell us",
        "sponsored",
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_through_the_same_selection(method):
    found = Article.from_text(STORY + " Scroll down for video.").sentences
    config = SelectionConfig(sentences=2).for_method(method)
    chosen = extract(
        found, METHODS[method]([sentence.text for sentence in found]), selection=config
    )
    assert len(chosen) == 2 and sorted(one.rank for one in chosen) == [1, 2]
    assert chosen[0].sentence.start < chosen[1].sentence.start


def test_baselines_are_taken_as_they_are():
    config = SelectionConfig(sentences=2, max_words=50, redundancy="mmr")
    for name in ("lead", "random", "oracle"):
        assert config.for_method(name) == SelectionConfig(
            sentences=2, max_words=50, redundancy="none"
        )
    assert config.for_method("lexrank") is config


def test_the_defaults():
    config = SelectionConfig()
    assert (
        config.sentences,
        config.max_words,
        config.redundancy,
        config.mmr_lambda,
    ) == (3, 0, "trigrams", 0.7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sentences": 0}, "--sentences must be at least 1, not 0"),
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
def test_a_selection_that_cannot_be_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        SelectionConfig(**settings)


def test_scores_that_do_not_fit_the_sentences_are_refused():
    with pytest.raises(
        ValueError, match=r"2 sentences need one score each, not scores of shape \(3,\)"
    ):
        select(["Kel.", "Mor."], np.ones(3), selection=PLAIN)
    with pytest.raises(
        ValueError,
        match="the score of sentence 1 is not a finite number; no order can be made of it",
    ):
        select(["Kel.", "Mor."], np.array([1.0, np.nan]), selection=PLAIN)
    with pytest.raises(
        ValueError, match="the score of sentence 0 is not a finite number"
    ):
        extract(
            Article.from_text("Kel. Mor.").sentences,
            np.array([-np.inf, 1.0]),
            selection=PLAIN,
        )
