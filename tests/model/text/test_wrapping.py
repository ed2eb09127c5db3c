"""Wrapped text: sixty texts of six kinds, whose sentences were written by hand."""

import time
from pathlib import Path

import pytest
from support.summarize_runs import first_rows

from precis.model.text.article import Article, body_parts
from precis.model.text.wrapping import shown_line, unwrapped_lines

TEXTS = Path(__file__).parents[2] / "data" / "wrapped_texts.txt"
# kind, text and sentences of each; a text of `crlf` has the line breaks of Windows
CASES = []
for case in TEXTS.read_text(encoding="utf-8").split("%% ")[1:]:
    kind, _, content = case.partition("\n")
    text, _, sentences = content.removesuffix("\n").partition("\n%\n")
    text = text.replace("\n", "\r\n") if kind == "mail crlf" else text
    CASES.append((kind.split()[0], text, sentences.split("\n")))


def test_there_are_ten_texts_of_each_kind():
    kinds = [kind for kind, *_ in CASES]
    assert {kinds.count(kind) for kind in kinds} == {10} and len(kinds) == 60


@pytest.mark.parametrize(("kind", "text", "expected"), CASES)
def test_sentences_are_those_of_a_reader(kind, text, expected):
    article = Article.from_text(text)
    shown = [" ".join(each.text.split()) for each in article.sentences]
    assert shown == [" ".join(each.split()) for each in expected]
    raw = [text[each.start : each.end] for each in article.sentences]
    assert [shown_line(each) for each in raw] == shown
    assert any("\n" in each for each in raw) == (kind != "alone")
    # Nothing is lost, and nothing is read that is not there.
    left = "".join(map(str.strip, raw))
    assert set(text) - set(left) <= set(" \r\n\f>-+")
    assert "".join(body_parts(article)) == article.body


SHOWN_LINES = [
    ("It compares twelve\r\n\tbasins of", "It compares twelve basins of"),
    ("> of the\n> > well-\n> known pump", "of the well-known pump"),
    ("pre-\nand postwar, Vor-\nund Nachteile", "pre- and postwar, Vor- und Nachteile"),
    ("降雨之后的\n径流过程 of 12\n流域", "降雨之后的径流过程 of 12 流域"),
    ("soft\xad\nhyphen  twice", "softhyphen twice"),
]


@pytest.mark.parametrize(("raw", "shown"), SHOWN_LINES)
def test_a_sentence_is_shown_on_one_line(raw, shown):
    assert shown_line(raw).removeprefix("> ") == shown


def test_lines_of_verse_in_lower_case_stay_lines():
    lines = [
        "The river runs beside the town,",
        "and takes the leaves of summer down,",
        "the bridge is old, the stones are grey,",
        "and no one walks on it today.",
    ]
    sentences = Article.from_text("\n".join(lines)).sentences
    assert [each.text for each in sentences] == lines


def test_rows_hold_the_sentence_as_it_stands_and_show_it_on_one_line():
    text = CASES[0][1]
    (row,) = first_rows([{"article": text, "highlights": "x"}], extractive="lead")
    items = row["extractive"]
    assert all(text[each["start"] : each["end"]] == each["text"] for each in items)
    assert items[1]["text"].count("\n") == 1
    assert row["summary"].split("\n") == CASES[0][2][: len(items)]
    quality = row["extractive_quality"]
    assert quality["coverage"] == 1 and quality["novel_2grams_percent"] == 0


@pytest.mark.parametrize("line", ["1. the cost rises every year\n", "A" * 76 + "\n"])
def test_the_time_is_proportional_to_the_lines(line):
    start = time.process_time()
    assert unwrapped_lines([line] * 3_000)
    assert time.process_time() - start < 2
