"""Tests of the oracle labels: against a plain greedy search over fractions,
and where the search stops.
"""

import itertools
import tracemalloc
from collections import Counter
from fractions import Fraction

import pytest
from rouge_score.tokenizers import DefaultTokenizer

from precis.model.extractive.oracle import oracle_sentences
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document

TOKENIZER = DefaultTokenizer(use_stemmer=True)


def ngrams(text):
    words = TOKENIZER.tokenize(text)
    return [Counter(words), Counter(itertools.pairwise(words))]


def rouge(sentences, reference):
    """ROUGE-1 F1 + ROUGE-2 F1 as an exact fraction.

    Args:
      sentences: the `ngrams` of each sentence of the summary.
      reference: a text.
    """
    total = Fraction(0)
    for size, expected in enumerate(ngrams(reference)):
        summary = sum((sentence[size] for sentence in sentences), Counter())
        if hits := (summary & expected).total():
            total += Fraction(2 * hits, summary.total() + expected.total())
    return total


def plain_search(texts, reference, count):
    grams = [ngrams(text) for text in texts]
    oracle = []
    best = Fraction(0)
    while len(oracle) < count:
        values = {
            place: rouge([grams[i] for i in (*oracle, place)], reference)
            for place in range(len(texts))
            if place not in oracle
        }
        place = max(values, key=lambda place: (values[place], -place), default=None)
        if place is None or values[place] <= best:
            break
        oracle.append(place)
        best = values[place]
    return oracle, best


def story(index):
    sample = document(index)
    article = Article.from_text(sample.article)
    return [sentence.text for sentence in article.sentences], sample.highlights


def places(texts, reference, count=5):
    return [pick.place for pick in oracle_sentences(texts, reference, count)]


@pytest.mark.parametrize("count", [1, 100])
def test_the_oracle_is_that_of_a_plain_search_over_fractions(count):
    total = 0
    for index in range(0, 360, 24):
        texts, reference = story(index)
        picks = oracle_sentences(texts, reference, count)
        expected, best = plain_search(texts, reference, count)
        assert [pick.place for pick in picks] == expected
        assert sum(pick.gain for pick in picks) == pytest.approx(float(best))
        total += len(picks)
    assert total >= 15 * min(count, 2)


def test_ties_go_to_the_earlier_sentence():
    texts = ["nobody came", "rain rose", "fell here", "rain rose"]
    assert places(texts, "rain fell", 1) == [1]
    # 4/8 + 2/6 and 10/12 + 0 are both 5/6, but the second is larger by a rounding
    # error.
    assert 10 / 12 > 4 / 8 + 2 / 6
    assert places(["a b x", "e d c b a x y"], "a b c d e", 1) == [0]


NOTHING_IN_COMMON = [
    ([], "rain fell"),
    (["rain fell"], ""),
    (["rain fell"], "... !"),
    (["", "..."], "rain fell"),
    (["", ""], ""),
    (["nobody came", "it was cold"], "rain fell"),
]


@pytest.mark.parametrize(("texts", "reference"), NOTHING_IN_COMMON)
def test_texts_without_a_common_word_have_no_oracle(texts, reference):
    assert oracle_sentences(texts, reference, 5) == []


def test_memory_is_in_proportion_to_the_words():
    texts = [
        f"word{number} stands here with word{number + 1}" for number in range(2_000)
    ]
    tracemalloc.start()
    assert len(oracle_sentences(texts, " ".join(texts), 2)) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A matrix of sentences by pairs of words would hold 2,000 x 10,000 numbers.
    assert peak < 30e6
