"""Tests of the terms of words in languages other than English."""

import pytest
import Stemmer

from precis.model.extractive.terms import find_terms
from precis.model.text import stems
from precis.model.text.stems import bare_words, stem_words

FORMS = [
    ("de", "häuser hauses HAUS", "haus"),
    ("fr", "l'économie économies d'économie qu'économie", "économ"),
    ("fr", "tourna-t-elle tourne-t-on tournait-il tourner", "tourn"),
    ("pt", "tornou-se tornou-os tornou", "torn"),
    ("it", "dell'università un'università università", "univers"),
    ("ca", "l'home home d'home", "hom"),
    ("tr", "türkiye'nin türkiye'de türkiye", "türki"),
    ("ru", "города городом ГОРОД", "город"),
    ("nb", "husene huset hus", "hus"),
    ("ms", "memberikan diberikan", "beri"),
    ("hr", "kuća kuće", "kuć"),
    ("ko", "정부는 정부가 정부에서는 정부", "정부"),
    ("ko", "발표했다 발표하고 발표한 발표", "발표"),
    ("ko", "학생들에게 학생들은 학생들 학생", "학생"),
    ("hi", "लड़कियाँ लड़कियों", "लड़क"),
    ("zh", "北京", "北京"),
    ("xx", "Straße STRASSE", "strasse"),
]


@pytest.mark.parametrize(("language", "words", "stem"), FORMS)
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


GRAMMAR = [
    ("ko", "것으로 도시에", 1),  # a stop word that ends as a particle does
    ("ja", "した。こと。東京", 1),
    ("zh", "水 北京", 1),
    ("de", "m. Brücke", 1),
    ("fr", "a-t-il", 0),
    ("en", "m. x bridge", 2),  # m is a fragment of a stop word
]


@pytest.mark.parametrize(("language", "text", "count"), GRAMMAR)
def test_grammar_and_single_letters_are_no_terms(language, text, count):
    (terms,) = find_terms([[text]], languages=[language])
    assert terms.vocabulary == count
