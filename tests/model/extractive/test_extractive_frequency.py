"""Tests of the scores from word frequencies: computed by hand, and for a long document
by a plain search.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.extractive_documents import (
    PARAGRAPH,
    long_document,
    scores_of,
    sentences_of,
    terms_of,
)

# The weights in `PARAGRAPH` of marta, of the words that occur twice, and of the others.
MARTA, TWICE, ONCE = Fraction(1), Fraction(2, 3), Fraction(1, 3)
SCORES = [
    # marta; bridge flood; measured cracked reached wooden legs
    MARTA + 2 * TWICE + 5 * ONCE,
    # village repair flood; paid earlier
    3 * TWICE + 2 * ONCE,
    # marta; repair bridge; oak planks iron nails borrowed ropes
    MARTA + 2 * TWICE + 6 * ONCE,
    # marta; village; nobody thanked winter came quietly
    MARTA + 1 * TWICE + 5 * ONCE,
]


def test_frequency_scores_the_worked_paragraph_exactly():
    assert SCORES == [4, Fraction(8, 3), Fraction(13, 3), Fraction(10, 3)]
    scores = scores_of("frequency", sentences_of(PARAGRAPH))
    assert scores.dtype == np.float64
    assert scores.tolist() == [float(score) for score in SCORES]


def test_frequency_drops_stop_words_numbers_and_punctuation():
    # rain is the only content word, twice in the first sentence
    texts = ["It was the rain -- and, the 12 RAIN!", "1,200 of 4.5m in 2014.", "?!"]
    assert scores_of("frequency", texts).tolist() == [2.0, 0.0, 0.0]


def test_luhn_squares_the_significant_words_of_a_cluster():
    # kel and mor occur twice, so they are significant. Five other words between two of
    # them end a cluster.
    scores_by_text = {
        "Kel mor bin the kel.": 9 / 5,
        "Kel, rat the the the, mor.": 4 / 6,  # four words between: rat and the
        "Kel sab the the tup the mor.": 1.0,
        **{"The tas.": 0.0, "Kel.": 1.0},
    }
    scores = scores_of("luhn", list(scores_by_text)).tolist()
    assert scores == list(scores_by_text.values())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_sumbasic_takes_averages_that_differ_by_rounding_for_equal(order):
    # Of 21 words kel 7, nim 6, mor 3, tas 2: (7 + 3) / 2 = (7 + 2 + 6) / 3, and
    # (5 x 7 + 3) / 8 is less.
    pair = ["Kel mor.", "Kel tas nim."]
    texts = [pair[order[0]], pair[order[1]], "Kel kel kel kel kel bin rok sab."]
    texts.append("Mor mor tas nim nim nim nim nim.")
    assert terms_of(texts).frequencies.sum() == 21
    assert scores_of("sumbasic", texts)[0] == 4.0


def test_sumbasic_of_a_long_document_is_that_of_a_plain_search():
    texts = long_document(300)
    split = [text.removesuffix(".").split() for text in texts]
    words = [word for sentence in split for word in sentence]
    logarithms = {
        word: math.log(count / len(words)) for word, count in Counter(words).items()
    }
    remaining, expected = list(range(len(split))), np.zeros(len(split))
    while remaining:
        left = {word for i in remaining for word in split[i]}
        candidates = (word for word in logarithms if word in left)
        top_word = max(candidates, key=lambda word: logarithms[word])
        averages = {
            i: sum(math.exp(logarithms[word]) for word in split[i]) / len(split[i])
            for i in remaining
            if top_word in split[i]
        }
        highest = max(averages.values())
        best = next(i for i in averages if averages[i] >= highest * (1 - 1e-9))
        expected[best] = len(remaining)
        remaining.remove(best)
        for word in split[best]:
            logarithms[word] *= 2
    assert scores_of("sumbasic", texts).tolist() == expected.tolist()


def test_centroid_sums_the_weights_of_the_words_that_weigh_enough():
    # Ten times kel weighs 10 log(4/3) = 2.88, mor and bin log 2 = 0.69, tas 2 log(4/3)
    # = 0.58: less than 0.3 of kel.
    kel = math.log(4 / 3)
    texts = ["Kel kel kel kel kel kel kel kel kel mor.", "Kel tas.", "Tas.", "Bin."]
    scores = scores_of("centroid", texts)
    assert scores == pytest.approx([90 * kel, 10 * kel, 0.0, 0.0])
    # Twice kel weighs 2 log(4/3) = 0.58 as tas does, and all weigh enough.
    scores = scores_of("centroid", ["Kel mor.", "Kel tas.", "Tas.", "Bin."])
    expected = [2 * kel + math.log(2), 4 * kel, 2 * kel, math.log(2)]
    assert scores == pytest.approx(expected)
