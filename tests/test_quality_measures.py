"""Tests of the measures and flags of a summary: computed by hand, and with facts that
the source does not hold injected into faithful summaries.
"""

import dataclasses
import random
import re

import pytest

from precis.model.errors import UsageError
from precis.model.quality.flags import FLAGS, QualityConfig
from precis.model.quality.measures import compare, measure, read_source
from precis.model.text.article import Article
from precis.pipelines.corpus.sample import generator

CONFIG = QualityConfig()
ARTICLE = (
    "Rain fell on the coast on Monday. "
    "Nobody came, and 12 trees fell on the coast road."
)


def measured(summary, article=ARTICLE, config=CONFIG, **more):
    source = read_source(Article.from_text(article))
    return measure(summary, source, config, **more)


@pytest.mark.parametrize(
    "summary", ["", "Rain fell on the coast.\nJohn came on Friday with 13 trees."]
)
def test_what_is_compared_is_some_of_the_measures(summary):
    source = read_source(Article.from_text(ARTICLE))
    measures = measure(summary, source, CONFIG)._asdict()
    compared = compare(summary, source, CONFIG)._asdict()
    assert compared == {name: measures[name] for name in compared}


def test_all_measures_of_a_summary():
    quality = measured("Rain fell on the coast.\nJohn came on Friday with 13 trees.")
    assert quality == (
        12,
        pytest.approx(100 * 4 / 12),  # john, friday, with, 13
        # Of 4 and 6 pairs, none of the first sentence and all of the second are new:
        # john-came, came-on, ...
        pytest.approx(100 * 6 / 10),
        pytest.approx(100 * 5 / 8),
        pytest.approx(100 * 4 / 6),
        8 / 12,  # `rain fell on the coast`, came, on, trees
        (25 + 1 + 1 + 1) / 12,
        17 / 12,
        12 / 17,
        0.0,
        ["13"],
        ["friday"],
        ["John"],
        ["unsupported_number", "unsupported_date", "unsupported_name"],
    )


@pytest.mark.parametrize(
    ("summary", "more", "flags"),
    [
        ("Rain fell on Monday.", {}, []),
        ("", {}, ["empty"]),
        ("... !", {}, ["empty"]),
        ("Rain fell.", {}, ["too_short"]),
        ("rain on the coast " * 5, {}, ["longer_than_source", "repeated"]),
        ("Nobody came, nobody came.", {}, []),
        ("Nobody came, nobody came, nobody came.", {}, ["repeated"]),
        ("Rain fell on Monday.", {"mean_log_prob": -2.1}, ["low_confidence"]),
        (
            "Rain fell on Monday.",
            {"mean_log_prob": -2.0, "is_truncated": True},
            ["truncated_source"],
        ),
    ],
)
def test_flags(summary, more, flags):
    assert measured(summary, **more).flags == flags
    assert set(flags) <= set(FLAGS)


@pytest.mark.parametrize(
    ("change", "summary", "flag"),
    [
        ({"min_summary_words": 5}, "Rain fell on Monday.", "too_short"),
        (
            {"max_repetition_rate": 0.0},
            "Nobody came, and nobody came, and rain fell on the coast on Monday, "
            "and 12 trees.",
            "repeated",
        ),
        ({"min_mean_log_prob": -0.5}, "Rain fell on Monday.", "low_confidence"),
    ],
)
def test_thresholds_are_those_of_the_configuration(change, summary, flag):
    changed = dataclasses.replace(CONFIG, **change)
    assert flag not in measured(summary, mean_log_prob=-1.0).flags
    assert flag in measured(summary, config=changed, mean_log_prob=-1.0).flags


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"min_summary_words": -1},
            "--min_summary_words must not be negative, but is -1; 0 flags none",
        ),
        (
            {"max_repetition_rate": 1.5},
            "--max_repetition_rate is a share from 0 to 1, not 1.5; 1 flags none",
        ),
        (
            {"min_mean_log_prob": 0.5},
            "--min_mean_log_prob is a log-probability, at most 0, not 0.5",
        ),
    ],
)
def test_impossible_thresholds_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        QualityConfig(**change)


def test_a_source_without_words():
    quality = measured("A man came.", article="?!")
    assert quality.length_ratio is None
    assert quality.compression == 0.0
    assert quality.coverage == 0.0
    assert quality.flags == ["longer_than_source"]
    empty = measured("", article="?!")
    assert empty.words == 0
    assert empty.coverage is None
    assert empty.density is None
    assert empty.compression is None
    assert empty.length_ratio is None


def test_a_sentence_that_ends_within_a_word_holds_nothing_its_source_lacks():
    article = "He came from the U.S. to London."
    cut = article.index("S.")
    (first,) = Article.from_text(article[:cut]).sentences
    (whole,) = Article.from_text(article).sentences
    second = whole._replace(start=cut, end=len(article), text=article[cut:])
    assert first.text == "He came from the U."
    assert second.text == "S. to London."
    cut_article = Article.from_text(article)
    cut_article.sentences = (first, second)
    source = read_source(cut_article)
    for sentence in (first, second):
        quality = measure(sentence.text, source, QualityConfig(min_summary_words=0))
        assert quality.coverage == 1.0
        assert quality.novel_1grams_percent == 0.0
        assert quality.flags == []
    assert measure("The US and the U.S. met.", source, CONFIG).unsupported_names == []


def test_composed_and_decomposed_letters_are_one():
    article = "Ame\u0301lie Duroc met Rene\u0301 on Monday."
    assert measured("Am\u00e9lie Duroc met Ren\u00e9.", article).flags == []
    assert measured(article, article).flags == []


DOCUMENTS = [generator.document(index) for index in range(150)]


def lead(article, count=3):
    return "\n".join(
        " ".join(sentence.text.split())
        for sentence in Article.from_text(article).sentences[:count]
    )


@pytest.mark.parametrize("count", [1, 3, 1_000])
def test_sentences_of_the_article_have_no_flag(count):
    for document in DOCUMENTS:
        quality = measured(lead(document.article, count), document.article)
        assert quality.flags == [], document.document_id
        assert quality.coverage == 1.0
        assert quality.novel_4grams_percent in (None, 0.0)


NUMBER = r"(?<![\w.,])\d+(?![\w.,]*\d)"
NAME = r"(?<=[a-z,] )[A-Z][a-z]{2,}\b"
DATE = r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
DATES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def injected(pattern, replacements, draw):
    """Each article with its lead-3 summary in which a word that the article does not
    hold replaces one match of the pattern.
    """
    for document in DOCUMENTS:
        article = document.article
        text = lead(article)
        matches = [
            match
            for match in re.finditer(pattern, text)
            if match[0] not in ("Monday", "May") or pattern == DATE
        ]
        other = [word for word in replacements if word.lower() not in article.lower()]
        if matches and other:
            match = draw.choice(matches)
            new = draw.choice(other)
            yield article, text[: match.start()] + new + text[match.end() :]


@pytest.mark.parametrize(
    ("pattern", "replacements", "flag", "least"),
    [
        (
            NUMBER,
            [str(number) for number in range(101, 1000)],
            "unsupported_number",
            80,
        ),
        (
            NAME,
            ["Brambleworth", "Chicago", "Ottoline", "Zimbabwe", "Kowalski", "Merkel"],
            "unsupported_name",
            140,
        ),
        (DATE, DATES, "unsupported_date", 40),
    ],
)
def test_injected_facts_are_flagged(pattern, replacements, flag, least):
    trials = list(injected(pattern, replacements, random.Random(1)))
    hits = sum(flag in measured(text, article).flags for article, text in trials)
    assert len(trials) >= least
    assert hits / len(trials) >= 0.95
