"""Text: normalisation, boilerplate, sentences with offsets, words."""

import random
import sys
import unicodedata

import pytest
from support import read_table
from support.extractive_documents import sentences_of
from support.summarize_runs import first_rows

from precis.model.text.article import Article
from precis.model.text.boilerplate import story_start
from precis.model.text.document import TextSettings
from precis.model.text.normalization import normalise
from precis.model.text.words import read_words, words

ARTICLES = read_table("articles")


AWKWARD = [
    "",
    " \t\n\u00a0\u3000",
    "Plain. Sentences here.",
    (
        "Mixed\r\nbreaks.\rOld Macs.\n\n\nGaps.\u2028Separator.\x85"
        "Next line.\x0bVertical.\x0cForm feed."
    ),
    "Wide\u00a0space.\u00a0Then\u2003more. \u00a0 Done.",
    "Smile 😀. 👩\u200d👩\u200d👧 waved. "
    "🏴\U000e0067\U000e0062\U000e007f flew. 𝒜stral.",
    "Cafe\u0301 opened. E\u0301tienne came. \u0301Lone mark.",
    "Zero\u200bwidth. \ufeffMark. Soft\u00adhyphen. Join\u200ced.",
    "שלום עולם. \u202eAbc def.\u202c مرحبا بالعالم. Done.",
    "Lone \ud83d surrogate. Another \udc00 one.",
    "Null\x00 inside. Bell\x07. Escape \x1b[0m. Unit\x1fseparator. File\x1cseparator.",
    '"Go. Now." He left. “Yes.” She said ‘no.’ (Really.) [Well.]',
    "... !!! \"\"\n''\n--",
    "“" * 50 + " A. " + '"' * 60 + " B. " + ")" * 80 + "C.",
    "No end at all and no stop " * 20,
    "▁ and ␤ are reserved. _Plain_ ones.",
]


NORMAL_FORMS = [
    ("  Two   words \n\n\n and\tmore \r\n", "Two words\nand more"),
    ("e\u0301", "\u00e9"),
    ("a\u00a0\u2009b\u3000c", "a b c"),
    ("in\u200bvisi\u00adble\ufeff", "invisible"),
    ("e\u200d\u0301", "\u00e9"),
    ("▁x␤y", "_x y"),
    ("lone \ud800!", "lone !"),
    ("a\u2028b\x85c\x0bd", "a\nb\nc\nd"),
    ("👍🏽 ok\ufe0f", "👍🏽 ok\ufe0f"),
]


@pytest.mark.parametrize(("text", "expected"), NORMAL_FORMS)
def test_normalise_gives_the_stated_form(text, expected):
    assert normalise(text) == expected


def test_normalise_twice_is_once_and_leaves_only_visible_text():
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    for text in AWKWARD:
        once = normalise(text)
        assert normalise(once) == once
        assert unicodedata.is_normalized("NFC", once)
        marks = set(once) - {"\n"}
        assert not [mark for mark in marks if unicodedata.category(mark) in hidden]
        assert "  " not in once and once == once.strip()


def test_normalise_removes_every_control_and_format_character():
    hidden = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs")
    ]
    assert len(hidden) > 2048
    marks = [mark for mark in hidden if not mark.isspace()]
    assert [mark for mark in marks if normalise(f"a{mark}b") != "ab"] == []
    spaces = {normalise(f"a{mark}b") for mark in hidden if mark.isspace()}
    assert spaces == {"a b", "a\nb"}


@pytest.mark.parametrize("head", ARTICLES["boilerplate"])
def test_boilerplate_is_recognised_and_belongs_to_no_sentence(head):
    story = "Rain fell on the town. Nobody came."
    if head == head.lower():
        story = "rain fell on the town . nobody came ."
    assert story_start(head + story) == len(head)
    assert Article.from_text(head + story).body == story
    assert Article.from_text(head + story).sentences[0].start == len(head)
    raw = Article.from_text(head + story, TextSettings("none"))
    assert raw.sentences[0].start == len(head) - len(head.lstrip())


@pytest.mark.parametrize("article", ARTICLES["stories"])
def test_boilerplate_leaves_real_sentences_alone(article):
    assert story_start(article) == 0
    assert Article.from_text(article).body == article


@pytest.mark.parametrize(("article", "expected"), ARTICLES["sentences"])
def test_sentences_are_cut_as_a_reader_would(article, expected):
    assert sentences_of(article) == expected


def is_wrapped(raw: str, text: str) -> bool:
    """Whether a text is the same with spaces for line breaks."""
    return "\n" in raw and raw.split() == text.split()


def assert_offsets_hold(article: str) -> None:
    position = 0
    for start, end, text in Article.from_text(article, TextSettings("none")).sentences:
        assert article[start:end] == text or is_wrapped(article[start:end], text)
        assert text and text == text.strip()
        assert any(mark.isalnum() for mark in text)
        # No word belongs to no sentence.
        assert not any(mark.isalnum() for mark in article[position:start])
        assert len(text.splitlines()) == 1
        position = end
    assert not any(mark.isalnum() for mark in article[position:])


def test_offsets_hold_for_awkward_texts_and_random_mixtures():
    for article in AWKWARD:
        assert_offsets_hold(article)
    rng = random.Random(7)
    plain = '. . ? ! " " \' ’ “ ” ( ) [ ] • 1 2) a B é É 😀 ש م Dr. U.S. word Rain'
    marks = [*plain.split(), "e\u0301", "\r\n"]
    marks += " \u200d\u200b\u00a0\n\t\u2028\x85\ud800"
    for _ in range(600):
        pieces = rng.choices(marks, k=rng.randint(1, 40))
        article = rng.choice(["", " ", "  "]).join(pieces)
        assert_offsets_hold(article)
        assert normalise(normalise(article)) == normalise(article)
        assert 0 <= story_start(article) <= len(article)


@pytest.mark.parametrize("unit", ["Rain fell. ", "word ", "x", '." ', "\u00e9. ", "\n"])
def test_very_long_lines_are_cut(unit):
    """At white space, where there is some."""
    article = unit * (210_000 // len(unit)) + "end"
    sentences = Article.from_text(article).sentences
    assert max(len(sentence.text) for sentence in sentences) <= 100_000
    assert all(article[start:end] == text for start, end, text in sentences)
    assert sentences[-1].end == len(article)
    if unit == "word ":
        words_of_all = {word for cut in sentences for word in cut.text.split()}
        assert len(sentences) > 1 and words_of_all == {"word", "end"}


def test_words_follow_the_stated_rules():
    text = "Don't  stop: the WELL-known U.S. dog’s $4.5m, 1,200 'quoted'"
    expected = "don't stop the well-known u.s dog's 4.5m 1,200 quoted"
    assert words(text) == expected.split()
    text = "E\u0301te\u0301 x_y told CNN.She"
    assert words(text) == "été x y told cnn she".split()
    assert words("--- ... _ \u200b") == []


# The words of many texts at once.
ODD_TEXTS = [
    *("", " ", "Rain  fell .", "Mid-May ( rain ) fell\n\tin the U.S., 4.5m"),
    *("ΟΔΟΣ Σ. Cafe\u0301 \u0301a don’t", "“Rain”—\xa0half–price\u3000£3\x1cKel"),
    *("中文 句子。\u200bzero\u200djoin İstanbul ß", "x" * 60 + "'s"),
    "kel\ud800mor \ud800",
]


def test_words_of_many_texts_are_those_of_each():
    read = read_words(["Mid-May ( rain ) fell.", "-", "Rain"])
    assert read.joined == ["mid-may rain fell", "", "rain"]
    assert read.distinct == ["mid-may", "rain", "fell"]
    assert (read.numbers.tolist(), read.offsets.tolist()) == (
        [0, 1, 2, 1],
        [0, 3, 3, 4],
    )
    assert read_words([]).joined == read_words([]).distinct == []
    rng = random.Random(1)
    letters = "aZ09'.,-_ \n\"é’я"
    texts = ["".join(rng.choices(letters, k=rng.randrange(9))) for _ in range(20_000)]
    texts += ODD_TEXTS
    joined = [" ".join(words(text)) for text in texts]
    assert read_words(texts).joined == joined
    # Joined words are read as the same words.
    read = read_words(joined)
    own = [read.distinct[number] for number in read.numbers.tolist()]
    assert own == " ".join(filter(None, joined)).split(" ")
    # In a run, too.
    texts = ["(CNN) -- Rain fell.It was cold.\nNobody came --", *ODD_TEXTS]
    lines = [{"article": text} for text in texts]
    together = first_rows(lines, extractive="lead,frequency")
    alone = [first_rows([line], extractive="lead,frequency")[0] for line in lines]
    assert together == alone
