"""Sentences in languages other than English, from `sentences_of_languages.txt`."""

import pathlib
import random

import pytest

from precis.model.text.sentences import split_sentences

TABLE = pathlib.Path(__file__).with_name("sentences_of_languages.txt")
CASES = [
    line.split("\t")
    for line in TABLE.read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("language", "case"), CASES)
def test_sentences_end_where_a_reader_ends_them(language, case):
    text = case.replace("|", "")
    sentences = split_sentences(text, language=language)
    assert [each.text for each in sentences] == [
        each.strip() for each in case.split("|")
    ]
    assert all(text[start:end] == each for start, end, each in sentences)


def test_the_table_has_enough_languages():
    languages = [language for language, _ in CASES]
    assert all(languages.count(each) >= 5 for each in set(languages))
    assert len(CASES) > 300 and len(set(languages)) > 50


@pytest.mark.parametrize("language", ["de", "ja", "ko", "th", "hi", "el", "ka", "xx"])
def test_every_letter_is_in_one_sentence(language):
    rng = random.Random(7)
    marks = (
        '. . ? ! ; … ... 。 。」 「 ！ ． । ។ ། ๆ " “ ” „ « » ( ) [1] , – • 1 12 2024'
    )
    words = "B. z. b Dr. Wort かな हिन्दी " + "ไทย" * 9
    marks = [*marks.split(), *words.split(), "\u00a0", "\u2028", ""]
    for _ in range(300):
        pieces = rng.choices(marks, k=rng.randint(1, 40))
        text = rng.choice(["", " ", "  "]).join(pieces)
        position = 0
        for start, end, sentence in split_sentences(text, language=language):
            assert text[start:end] == sentence == sentence.strip() != ""
            assert not any(map(str.isalnum, text[position:start]))
            position = end
        assert not any(map(str.isalnum, text[position:]))
