"""Tests of the terms of words in languages other than English."""

import pytest
import Stemmer
from support import read_table

from precis.model.extractive.terms import find_terms
from precis.model.text import stems
from precis.model.text.stems import bare_words, stem_words


@pytest.mark.parametrize(("language", "words", "stem"), read_table("words")["stems"])
def test_forms_of_a_word_are_one_term(language, words, stem):
    found = stem_words(bare_words(words.lower().split(), language), language)
    assert set(found) == {stem}


def test_every_stemmer_is_one_of_the_package():
    assert {*stems._SNOWBALL.values()} <= {*Stemmer.algorithms()}


def test_terms_of_several_languages_are_as_of_each_alone():
    documents = [
        ["The bridges fell.", "A bridge is old."],
        ["Die Brücken der Stadt.", "Eine Brücke."],
        ["IŞIK ışık", "İstanbul istanbul"],
        ["L’homme et les hommes"],
    ]
    languages = ["en", "de", "tr", "fr"]
    together = find_terms(documents, languages=languages)
    alone = [
        find_terms([document], languages=[language])[0]
        for document, language in zip(documents, languages, strict=True)
    ]
    for one, other in zip(together, alone, strict=True):
        assert one.content_terms.tolist() == other.content_terms.tolist()
        assert one.content_positions.tolist() == other.content_positions.tolist()
    # bridge fell old; brück stadt; ışık istanbul; homm
    assert [terms.vocabulary for terms in together] == [3, 2, 2, 1]
    assert together[1].frequencies.tolist() in ([2, 1], [1, 2])


@pytest.mark.parametrize(("language", "text", "count"), read_table("words")["terms"])
def test_grammar_and_single_letters_are_no_terms(language, text, count):
    (terms,) = find_terms([[text]], languages=[language])
    assert terms.vocabulary == count
