"""Every quotation is supported by its source, and what differs from it is not."""

import functools
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import read_table

from precis.model.quality.measures import measure, read_source
from precis.model.quality.tokens import is_quoted
from precis.model.text.article import Article

FACTS = read_table("quotations")


# The same examples on every machine, and no folder of examples.
PROPERTY = settings(derandomize=True, database=None, deadline=None, max_examples=100)

CURRENCIES = ["", "$", "€", "£", "¥", "Rs", "Rs.", "Rs ", "JPY", "US$", "HK$ ", "kr"]
UNITS = [
    *("", "", "%", "m", "bn", "k", "s", "th", "km", "am", "a.m.", " a.m.", " P.M."),
    *(" million", "-year-old", "½", "/-", "°C", "’s", "'s", "€", "-strong", " half a"),
]
DIGITS = st.one_of(
    st.integers(0, 99).map(str),
    st.integers(0, 10**9).map(lambda number: f"{number:,}"),
    st.decimals(0, 10**4, places=2).map(str),
    st.from_regex(r"[0-2][0-9][:.·][0-5][0-9](:[0-9]{2})?", fullmatch=True),
    st.from_regex(r"[0-9]{1,2},[0-9]{2},[0-9]{3}", fullmatch=True),
    st.from_regex(r"[0-9]{1,4}([-–/,.][0-9]{1,4}){1,3}", fullmatch=True),
    st.dates().map(str),
    st.datetimes().map(lambda time: time.isoformat(timespec="minutes")),
)
NUMBERS = st.tuples(st.sampled_from(CURRENCIES), DIGITS, st.sampled_from(UNITS)).map(
    "".join
)
WORDS = st.sampled_from(
    (
        "half a quarter three quarters of an and one two second third twelve twenty "
        "twenty-five fifty hundred thousand million billion dozen half-dozen to or "
        "first ½ 2½ the The in May may march March 3 5th Dec. Sept Monday Tues mon "
        "O'Donnell's O’Donnell O`Brien D'Arienzo's JAMES' U.S. U.S.-led F.B.I.'s A.M. "
        "p.m. Römer Romer RÖMER Zoë Ångström İstanbul ıI Straße STRASSE Łódź Nguyễn "
        "ΑΘΗΝΑΣ Αθήνας Москва МОСКВА 北京 東京都 दिल्ली القاهرة iPhone5s MH370 G20 A380 "
        "F-16 Anglo-American ’90s '90s 1980s 1980's co-op non‑stop Ph.D. e.g. so\xadft "
        "mil\u200blion — – -- ... “Half ‘half ``half ''half (half) [half] half, half. "
        "million. million, a.b.c @Home #Home http://A.b/2024-05-03 x2y 3D 3.Two "
        "2012.5 5.U.S ﬁfty 𝟖 ８,０００ ٣ Ⅳ km² q\u0303x Q\u0303x Dr. I I'm It’s"
    ).split(" ")
)
# Their spans may begin or end within the number.
LONG_NUMBERS = st.sampled_from(
    (
        "half a million|Two-and-a-half million|a million and a quarter|half dozen|"
        "three quarters of a\nmillion|two hundred and fifty thousand"
    ).split("|")
)
PIECES = st.one_of(NUMBERS, WORDS, LONG_NUMBERS, st.text(min_size=1, max_size=6))
SPACES = st.sampled_from([" "] * 6 + ["\n", "  ", "\xa0", "\t", "\r\n", ". ", ".\n"])
COMPOSITIONS = [
    functools.partial(unicodedata.normalize, form) for form in ("NFC", "NFD")
]
FORMS = st.sampled_from([str, str, str.upper, str.title, *COMPOSITIONS])


@st.composite
def texts(draw):
    pieces = draw(st.lists(st.tuples(FORMS, PIECES, SPACES), min_size=1, max_size=14))
    return "".join(form(piece) + space for form, piece, space in pieces)


def unsupported(summary, source):
    quality = measure(summary, source)
    return [
        *quality.unsupported_numbers,
        *quality.unsupported_dates,
        *(quality.unsupported_names or []),
    ]


def read(text):
    return read_source(Article.from_text(text))


@PROPERTY
@given(texts(), st.data())
def test_a_text_supports_itself_its_sentences_and_its_spans_of_words(text, data):
    article = Article.from_text(text)
    source = read_source(article)
    quotations = [text, *[sentence.text for sentence in article.sentences]]
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for _ in range(3 if words else 0):
        first = data.draw(st.integers(0, len(words) - 1))
        last = data.draw(st.integers(first, len(words) - 1))
        quotations.append(text[words[first][0] : words[last][1]])
    for quotation in quotations:
        assert unsupported(quotation, source) == [], quotation


# Article and summary. Each article is also a summary of the other text, so both
# directions are tested.


@pytest.mark.parametrize(("first", "second"), FACTS["same"])
def test_other_forms_of_a_fact_are_supported(first, second):
    assert unsupported(second, read(first)) == []
    assert unsupported(first, read(second)) == []


@pytest.mark.parametrize(("article", "summary", "facts"), FACTS["near"])
def test_near_misses_are_unsupported(article, summary, facts):
    assert unsupported(summary, read(article)) == facts


@pytest.mark.parametrize(
    "quotation",
    ["a million people", "million people marched", "people marched in two", "two"],
)
def test_a_quotation_may_begin_or_end_within_a_number(quotation):
    source = read("Half a million people marched in two-and-a-half hours.")
    assert unsupported(quotation, source) == []
    assert unsupported(f"They say {quotation}", source) == (
        ["million"] if "million" in quotation else []
    )


def test_a_quotation_ends_at_the_border_of_a_word():
    assert is_quoted("a million", "half a million came")
    assert is_quoted("(a million)", "half(a million)came")
    assert is_quoted("a million", "extra million, and a million")
    assert not is_quoted("a million", "half a millionaire")
    assert not is_quoted("a million", "extra million")
    assert not is_quoted("paid 8", "paid 8,000")
    assert not is_quoted("000 came", "8,000 came")
    assert is_quoted("paid 8", "paid 8, then")
