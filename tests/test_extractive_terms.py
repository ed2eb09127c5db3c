"""Tests of the terms of a document."""

import math

from nltk.stem.porter import PorterStemmer
from support.extractive_documents import sentences_of

from precis.model.extractive import terms as terms_module
from precis.model.extractive.terms import find_terms
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator


def test_terms_are_the_stems_of_words_that_count():
    terms = find_terms(["The flood reached it.", "Floods, in 2014!", "Why?"])
    flood, reached = terms.content_terms[0], terms.content_terms[1]
    assert terms.rows.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    assert terms.content_positions.tolist() == [1, 2, 4]
    assert terms.content_terms.tolist() == [flood, reached, flood]
    assert {flood, reached} == {0, 1}
    assert sorted(zip(*(part.tolist() for part in terms.cells), strict=True)) == sorted(
        [(0, flood, 1.0), (1, flood, 1.0), (0, reached, 1.0)]
    )
    assert terms.cells[1].tolist() == sorted(terms.cells[1].tolist())
    assert terms.lengths.tolist() == [2, 1, 0]
    assert (terms.frequencies[flood], terms.frequencies[reached]) == (2, 1)
    assert (terms.idf[flood], terms.idf[reached]) == (math.log(3 / 3), math.log(3 / 2))


def test_sentences_may_contain_the_separator_of_sentences():
    assert find_terms(["Kel \0 mor\0tas.", "Kel."]).rows.tolist() == [0, 0, 0, 1]
    assert find_terms(["\0"]).rows.tolist() == []
    assert find_terms(["\0", "Kel.", "\0"]).rows.tolist() == [1]


def test_terms_are_the_stems_that_rouge_compares():
    texts = [
        text
        for number in range(400)
        for text in sentences_of(generator.document(number).article)
    ]
    plain_words = {
        word
        for text in texts
        for word in words(text)
        if word.isascii() and word.isalpha()
    }
    content_words = sorted(plain_words - STOP_WORDS - TOKENISED_FRAGMENTS)
    assert len(content_words) > 1500
    reference = PorterStemmer()
    stems = {reference.stem(word) for word in content_words}
    assert find_terms(content_words).vocabulary == len(stems)
    assert find_terms(["Marta's Marta"]).vocabulary == 1
    assert find_terms(["floods flood flooding"]).vocabulary == 1


def test_a_very_long_word_is_not_cached():
    word = "kel" * 20
    assert find_terms([word, word]).frequencies.tolist() == [2]
    assert word not in terms_module._chunk_cache


def test_the_stop_word_list_is_complete():
    assert len(STOP_WORDS) == 174
    assert {"the", "i", "don't", "very"} <= STOP_WORDS
    assert not {"us", "will", "said"} & STOP_WORDS
