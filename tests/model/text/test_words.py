"""Tests of the words of every script."""

import subprocess
import sys

import numpy as np
import pytest
from support import read_table

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import select
from precis.model.text import words as module
from precis.model.text.length_limit import LengthLimit, count_words
from precis.model.text.words import count_joined_words, ngram_size, words

CHINESE = "今天北京大学的学生参加了会议。"
THAI = "ประเทศไทยมีประชากรจำนวนมาก"


@pytest.mark.parametrize(("text", "expected"), read_table("words")["marked"])
def test_words_keep_their_marks(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(("text", "of_icu", "pairs"), read_table("words")["unspaced"])
def test_texts_without_spaces_have_the_words_of_icu_or_pairs(
    text, of_icu, pairs, monkeypatch
):
    assert words(text) == of_icu.split()
    assert count_joined_words(of_icu) == len(of_icu.split())
    monkeypatch.setattr(module, "word_breaker", lambda: None)
    run = text.rstrip("。").replace("、", "")
    found = words(text)
    assert len(found) == pairs
    assert all(pair in run and len(pair) == 2 for pair in found)
    # About as many words as with ICU.
    estimate = count_joined_words(" ".join(found))
    assert 0.7 < estimate / len(of_icu.split()) < 2.1


def test_no_letter_without_spaces_is_missed():
    unspaced = module._patterns().unspaced
    letters = [chr(code) for code in range(0x110000) if unspaced.match(chr(code))]
    assert len(letters) > 90_000
    assert all(map(module.UNSPACED_BLOCKS.match, letters))


def test_a_length_limit_counts_words_without_spaces(monkeypatch):
    article = CHINESE * 20
    assert count_words(article) == 160
    assert LengthLimit(words=16).fits(CHINESE * 2)
    assert not LengthLimit(words=16).fits(CHINESE * 3)
    monkeypatch.setattr(module, "word_breaker", lambda: None)
    assert 150 <= count_words(article) <= 180
    assert count_words("一 and the 二") == 4


def test_pairs_of_characters_are_compared_by_as_many_words(monkeypatch):
    """Three words of Thai are about 12 characters, three Chinese ones 5."""
    assert ngram_size(3, " ".join(words(CHINESE))) == 3
    sizes = {"a b c": 3, "": 3}
    monkeypatch.setattr(module, "word_breaker", lambda: None)
    sizes |= {" ".join(words(THAI)): 11, " ".join(words(CHINESE)): 4}
    assert {joined: ngram_size(3, joined) for joined in sizes} == sizes
    # Two sentences that share a name of four characters are both selected.
    sentences = ["北京大学今天开学。", "学生都喜欢北京大学。", "北京大学今天开学了。"]
    scores = np.array([3.0, 2.0, 1.0])
    chosen = select(sentences, scores, selection=SelectionConfig(), language="zh")
    assert chosen == [0, 1]


def test_packages_for_other_languages_are_imported_where_a_text_needs_them():
    code = """
import sys
from precis.model.extractive.terms import find_terms
packages = ("icu4py", "Stemmer", "regex")
find_terms([["The café’s bridge — closed."]])
assert not {*packages} & sys.modules.keys()
find_terms([["Die Brücke ist zu."]], languages=["de"])
assert {*packages} & sys.modules.keys() == {"Stemmer"}
find_terms([["大桥关闭一周。"]], languages=["zh"])
assert {*packages} <= sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
