"""Tests of the stop words of languages."""

import tomllib
import unicodedata
from pathlib import Path

import pytest
from support import read_table

from precis.model.text import stop_words as module
from precis.model.text.stop_words import STOP_WORDS, stop_words
from precis.model.text.words import words

LISTS = tomllib.loads(Path(module.__file__).with_suffix(".toml").read_text("utf-8"))
EXAMPLES = read_table("stop_words")


def test_every_language_has_its_function_words_and_no_words_of_content():
    assert {code for codes in LISTS for code in codes.split()} == set(EXAMPLES)
    for language, (function, content) in EXAMPLES.items():
        found = stop_words(language)
        assert not {*words(function.casefold())} - found, language
        assert not set(content.split()) & found, language


@pytest.mark.parametrize("languages", LISTS)
def test_stop_words_are_words_as_a_text_has_them(languages):
    listed = LISTS[languages].split()
    assert len(listed) == len(set(listed))
    assert len(listed) >= 60
    for word in listed:
        assert unicodedata.normalize("NFC", word).lower() == word
        assert not any(map(str.isdigit, word))
        assert "".join(words(word)) == word.replace("\u200c", "")


def test_english_and_unknown_languages():
    assert stop_words("en") is stop_words(None) is STOP_WORDS
    assert stop_words("xx") == frozenset()
