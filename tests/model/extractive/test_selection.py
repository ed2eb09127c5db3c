"""Tests of the selection of sentences: order, limits, redundancy, boilerplate and the
configuration.
"""

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import Extract, extract, select
from precis.model.text import words
from precis.model.text.article import Article
from precis.model.text.boilerplate import is_page_sentence

STORY = (
    "The old mill burned down. Nobody was in it. The old mill burned for hours. "
    "Rain put the fire out. Scroll down for video."
)
SENTENCES = Article.from_text(STORY).sentences
FOUR = ["Kel mor.", "Tas bin.", "Rok sab.", "Tup nim."]
FORTY = [f"Kel{'x' * number}." for number in range(40)]
MILL = [sentence.text for sentence in SENTENCES]
LENGTHS = ["Kel mor tas bin rok.", "Sab tup.", "Nim lod ver.", "Gam."]
PAGE = ["Scroll down for video.", "Rain fell.", "Follow us on Twitter."]
OLD = ["THE OLD, mill.", "Old mill: the.", "the old mill"]
RAW = {"is_baseline": True}


@pytest.mark.parametrize(
    ("texts", "scores", "limits", "how", "expected"),
    [
        # Of equal scores the earlier; scores that differ by rounding are equal.
        (FOUR, [1, 3, 2, 3], {"sentences": 2}, {}, [1, 3]),
        (FOUR, [2, 1, 2, 2], {"sentences": 2}, RAW, [0, 2]),
        (FORTY, np.arange(40) % 2, {"sentences": 2}, {}, [1, 3]),
        (FOUR, [0.3, 0.1 + 0.2, 0.1 + 0.2, -5], {"sentences": 2}, {}, [0, 1]),
        (FOUR[:2], [1, 5], {"sentences": 7}, {}, [1, 0]),
        ([], [], {}, {}, []),
        # Two have `the old mill`; a blocked sentence does not return.
        (MILL, [4, 1, 3, 2, 0], {"sentences": 2}, {}, [0, 3]),
        (MILL, [4, 1, 3, 2, 0], {"sentences": 2}, RAW, [0, 2]),
        (MILL, [4, 1, 3, 2, 0], {"sentences": 4}, {}, [0, 3, 1]),
        # Two words in common do not block, and marks and capitals do not count.
        (OLD, [3, 2, 1], {}, {}, [0, 1]),
        # A word limit passes over sentences that do not fit.
        (LENGTHS, [4, 3, 2, 1], {"max_words": 4}, {}, [1, 3]),
        (LENGTHS, [4, 3, 2, 1], {"max_words": 5}, RAW, [0]),
        (LENGTHS, [4, 3, 2, 1], {"max_words": 6}, {}, [0, 3]),
        (LENGTHS, [4, 3, 2, 1], {"max_words": 10, "sentences": 2}, RAW, [0, 1]),
        (LENGTHS[:1], [4], {"max_words": 4}, {}, []),
        # A baseline does so for its first sentence only.
        (LENGTHS, [4, 3, 2, 1], {"max_words": 6}, RAW, [0]),
        (LENGTHS, [4, 3, 2, 1], {"max_words": 4}, RAW, [1]),
        # Of characters too, with the line break between two lines.
        (LENGTHS, [4, 3, 2, 1], {"max_chars": 29}, {}, [0, 1]),
        (LENGTHS, [4, 3, 2, 1], {"max_chars": 28}, {}, [0, 3]),
        (["A  b\xa0c."], [1], {"max_chars": 6}, RAW, [0]),
        (LENGTHS, [4, 3, 2, 1], {"form": "headline", "max_words": 4}, {}, [1]),
        (FORTY, range(40), {"form": "key_points"}, {}, [39, 38, 37, 36, 35]),
        # The page is skipped unless there is nothing else.
        (PAGE, [3, 2, 1], {"sentences": 2}, {}, [1]),
        (PAGE, [3, 2, 1], {"sentences": 2}, RAW, [0, 1]),
        (PAGE[::2], [3, 1], {"sentences": 2}, {}, [0, 1]),
        (["Read more.", "Rain fell on Monday."], [2, 1], {"max_words": 3}, {}, []),
    ],
)
def test_the_best_sentences_are_selected(texts, scores, limits, how, expected):
    selection = SelectionConfig(**limits)
    assert select(texts, np.array(scores), selection=selection, **how) == expected


@pytest.mark.parametrize(
    ("language", "text", "other", "repeated"),
    [
        ("zh", "一定要看新的桥梁。", "孩子一定要看书。", "学生来看新的桥梁吧。"),
        ("th", "มีความสุขที่แม่น้ำใหญ่", "เด็กมีความรู้", "เราไปที่แม่น้ำใหญ่กัน"),
    ],
)
def test_pairs_of_characters_block_like_three_words(
    language, text, other, repeated, monkeypatch
):
    """Without ICU, characters that are common do not block."""
    monkeypatch.setattr(words, "word_breaker", lambda: None)
    for second, expected in ((other, [0, 1]), (repeated, [0])):
        selected = select(
            [text, second],
            np.array([2, 1]),
            selection=SelectionConfig(),
            language=language,
        )
        assert selected == expected


def test_extract_keeps_document_order_and_ranks_by_choice():
    scores = np.array([3.0, 0.0, 2.0, 8.0, 9.0])
    config = SelectionConfig(sentences=2)
    last = Extract(1, 8.0, SENTENCES[3])
    assert extract(SENTENCES, scores, selection=config) == [
        Extract(2, 3.0, SENTENCES[0]),
        last,
    ]
    baseline = extract(SENTENCES, scores, selection=config, is_baseline=True)
    assert baseline == [Extract(2, 8.0, SENTENCES[3]), Extract(1, 9.0, SENTENCES[4])]


BOILERPLATE = [
    "Scroll down for video.",
    "VIDEO Scroll down to watch the highlights",
    "Click here for all the latest football news.",
    "get a free trial issue - click here !",
    "Follow us on Twitter",
    "You can follow her on Instagram and Facebook.",
    "like us on facebook .",
    "Read more.",
    "read more about the flood .",
    "watch the mayor talk about the bridge »",
    "e-mail to a friend .",
    "All rights reserved.",
    "all rights reserved.this material may not be published , broadcast , rewritten , "
    "or redistributed .",
    "Copyright 2008 The Brackwater Courier.",
    "© 2015 The Brackwater Courier.",
    "Share your thoughts in the comments below.",
    "Subscribe now!",
    "sign up for our daily newsletter .",
    "Story continues below",
    "ADVERTISEMENT",
    "sorry we are not currently accepting comments on this article .",
    "For confidential support call the helpline.",
    "Marta Holm, Ada Kern and Jo Reed contributed to this report.",
    "iReport.com: share your pictures of the flood",
    "Editor's note: Marta Holm is a columnist.",
    "The views expressed in this column are those of the author.",
    "One of the old bridges, pictured here in May.",
    "This rare photo shows the bridge in 1920.",
    "On this page you will find today's show.",
    "Read the original review of the film.",
]
STORIES = [
    "He told them to scroll down the page until the video began.",
    "The link said to click here, and thousands did so within the hour.",
    "Fans follow the club on Twitter in great numbers.",
    "The mayor said she would follow him anywhere, even on Twitter.",
    "Read more books, the teacher told her pupils.",
    "Copyright law changed in 2009 after a long debate.",
    "All rights of the owners were reserved by the court.",
    "The firm sold advertisement space.",
    "Few can read the original of the letter.",
    "Heavy rain contributed to this report of a record flood, the agency said.",
    "Residents were asked to sign up for shifts.",
    "The editor noted that this picture of the bridge was sold.",
    "The study shows that the bridge, seen from above, is old.",
    "The star, pictured above with his wife in May, was killed in a crash on Monday.",
    "The court said this photo shows the suspect entering the bank.",
    "The opinions expressed in this poll are those of all voters.",
    "",
]


def test_sentences_about_the_page_are_told_from_those_of_a_story():
    for sentence in BOILERPLATE:
        for form in (sentence, sentence.lower(), f"  {sentence.upper()}\n"):
            assert is_page_sentence(form), form
    for sentence in STORIES:
        for form in (sentence, sentence.lower()):
            assert not is_page_sentence(form), form


@pytest.mark.parametrize("name", ["sentences", "max_words", "max_chars"])
def test_an_impossible_selection_is_refused(name):
    with pytest.raises(UsageError, match=f"`{name}=` must not be negative, but is"):
        SelectionConfig(**{name: -1})


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        ({}, (0, 0, 0)),
        ({"form": "headline"}, (15, 0, 1)),
        ({"form": "headline", "max_chars": 80}, (0, 80, 1)),
        ({"form": "headline", "max_words": 9, "sentences": 2}, (9, 0, 2)),
        ({"form": "key_points", "max_words": 60}, (60, 0, 5)),
        ({"max_words": 60, "max_chars": 80}, (60, 80, 0)),
    ],
)
def test_a_form_sets_what_no_flag_says(flags, limit):
    assert SelectionConfig(**flags).limit == limit
    assert bool(SelectionConfig(**flags).limit) == any(limit)


def test_a_form_that_there_is_not_is_refused():
    message = "`form=` must be one of summary, headline, key_points, not 'title'"
    with pytest.raises(UsageError, match=message):
        SelectionConfig(form="title")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0] * 3, r"2 sentences need one score each, not scores of shape \(3,\)"),
        ([1.0, np.nan], "the score of sentence 1 is not a finite number, so the"),
        ([-np.inf, 1.0], "the score of sentence 0 is not a finite number"),
    ],
)
def test_scores_that_do_not_fit_the_sentences_are_refused(scores, message):
    with pytest.raises((ValueError, FloatingPointError), match=message):
        select(["Kel.", "Mor."], np.array(scores), selection=SelectionConfig())
