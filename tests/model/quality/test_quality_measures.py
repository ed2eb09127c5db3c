"""Tests of the measures and flags of a summary: computed by hand, and with facts that
the source does not hold injected into faithful summaries.
"""

import pytest

from precis.model.quality.flags import FLAGS
from precis.model.quality.measures import compare, measure, read_source
from precis.model.text.article import Article
from precis.pipelines.corpus.sample import generator

ARTICLE = (
    "Rain fell on the coast on Monday. "
    "Nobody came, and 12 trees fell on the coast road."
)
SUMMARY = "Rain fell on the coast.\nJohn came on Friday with 13 trees."


def measured(summary, article=ARTICLE, **more):
    source = read_source(Article.from_text(article))
    return measure(summary, source, **more)


@pytest.mark.parametrize("summary", ["", SUMMARY])
def test_what_is_compared_is_some_of_the_measures(summary):
    source = read_source(Article.from_text(ARTICLE))
    measures = measure(summary, source)._asdict()
    compared = compare(summary, source)._asdict()
    assert compared == {name: measures[name] for name in compared}


def test_all_measures_of_a_summary():
    quality = measured(SUMMARY)
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
        "barely_shorter unsupported_number unsupported_date unsupported_name".split(),
    )


FLAGGED = [
    ("Rain fell on Monday.", {}, []),
    ("", {}, ["empty"]),
    ("... !", {}, ["empty"]),
    ("Rain fell.", {}, ["too_short"]),
    ("rain on the coast " * 5, {}, ["longer_than_source", "repeated"]),
    ("Nobody came, nobody came.", {}, []),
    ("Nobody came and 12 trees fell.", {}, ["barely_shorter"]),  # 6 of 17 words
    ("Nobody came, " * 3, {}, ["barely_shorter", "repeated"]),
    ("Rain fell on Monday.", {"low_confidence": True}, ["low_confidence"]),
    ("Rain fell on Monday.", {"truncated_source": True}, ["truncated_source"]),
    ("Rain fell on Monday.", {"unfinished": False}, []),
]


@pytest.mark.parametrize(("summary", "more", "flags"), FLAGGED)
def test_flags(summary, more, flags):
    assert measured(summary, **more).flags == flags
    assert set(flags) <= set(FLAGS)


def test_a_text_that_repeats_itself_or_has_tags():
    word = "word " * 3_000
    assert measured(word, article=word).flags == ["barely_shorter", "repeated"]
    html = f"<p>{ARTICLE}</p><br/>"
    assert measured("Rain fell on Monday.", article=html).flags == ["markup_source"]
    prose = f"Where a < b and c > d, a tag as <p> opens a paragraph. {ARTICLE}"
    assert measured("Rain fell on Monday.", article=prose).flags == []


def test_a_source_without_words():
    quality = measured("A man came.", article="?!")
    assert (quality.length_ratio, quality.compression, quality.coverage) == (None, 0, 0)
    assert quality.flags == ["longer_than_source"]
    empty = measured("", article="?!")
    assert (empty.words, empty.coverage, empty.density) == (0, None, None)
    assert (empty.compression, empty.length_ratio) == (None, None)


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
        quality = measure(sentence.text, source)
        assert quality.coverage == 1.0
        assert quality.novel_1grams_percent == 0.0
        assert set(quality.flags) <= {"too_short", "barely_shorter"}
    assert measure("The US and the U.S. met.", source).unsupported_names == []


def test_composed_and_decomposed_letters_are_one():
    article = "Ame\u0301lie Duroc met Rene\u0301 on Monday."
    for summary in ("Am\u00e9lie Duroc met Ren\u00e9.", article):
        assert measured(summary, article).flags == ["barely_shorter"]


DOCUMENTS = [generator.document(index) for index in range(150)]


@pytest.mark.parametrize("count", [1, 3, 1_000])
def test_sentences_of_the_article_hold_nothing_that_it_lacks(count):
    for document in DOCUMENTS:
        lead = Article.from_text(document.article).sentence_lines[:count]
        quality = measured("\n".join(lead), document.article)
        flags = set(quality.flags) - {"barely_shorter"}
        assert flags == ({"markup_source"} if "<p>" in document.article else set())
        assert quality.coverage == 1.0
        assert quality.novel_4grams_percent in (None, 0.0)
