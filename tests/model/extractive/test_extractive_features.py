"""Tests of the features of sentences: every column by hand for a document of three
sentences, and finite values for any document.
"""

import math

import numpy as np
import pytest
from support import read_table

from precis.model.extractive.features import (
    FEATURE_COUNT,
    FEATURE_NAMES,
    features_of_all,
)

SENTENCES = read_table("sentence_features")


# In words: the flood reached marta | floods 12 of them why | she said flood flood.
STORY = [
    "The flood reached Marta.",
    "Floods, 12 of them: why?",
    "She said ``flood flood",
]
# The idf, log(N / (1 + n)): flood is in all three sentences, the other terms (reached,
# marta, said) are in one.
ALL = math.log(3 / 4)
ONE = math.log(3 / 2)
# The lengths of the vectors of the first and the third sentence, and of the centroid.
FIRST = math.sqrt(ALL**2 + 2 * ONE**2)
THIRD = math.sqrt((2 * ALL) ** 2 + ONE**2)
CENTROID = math.sqrt((4 * ALL) ** 2 + 3 * ONE**2)
# The cosines of the first and second, the first and third, the second and third.
A = abs(ALL) / FIRST
B = 2 * ALL**2 / FIRST / THIRD
C = 2 * abs(ALL) / THIRD
BY_HAND = {
    "position": (0, 1, 2),
    "from_end": (2, 1, 0),
    "relative_position": (0, 1 / 3, 2 / 3),
    "sentences": (3, 3, 3),
    "words": (4, 5, 4),
    "relative_words": (12 / 13, 15 / 13, 12 / 13),
    "words_before": (0, 4, 9),
    "words_after": (9, 4, 0),
    "document_words": (13, 13, 13),
    "lead_words": (13, 13, 13),
    "previous_words": (0, 4, 5),
    "next_words": (5, 4, 0),
    "terms": (3, 1, 3),
    "term_share": (3 / 4, 1 / 5, 3 / 4),
    "new_terms": (3, 0, 1),
    # flood occurs four times, more often than any other term
    "term_frequency": (6 / 4, 4 / 4, 9 / 4),
    "mean_term_frequency": (2 / 4, 4 / 4, 3 / 4),
    "term_weight": (FIRST, abs(ALL), THIRD),
    "mean_term_weight": (FIRST / 3, abs(ALL), THIRD / 3),
    "centroid": (
        (4 * ALL**2 + 2 * ONE**2) / FIRST / CENTROID,
        4 * abs(ALL) / CENTROID,
        (8 * ALL**2 + ONE**2) / THIRD / CENTROID,
    ),
    "degree": ((A + B) / 3, (A + C) / 3, (B + C) / 3),
    "forward": ((A + B) / 2, C, 0),  # mean over the later sentences
    "backward": (0, A, (B + C) / 2),
    "repeats": (0, A, max(B, C)),
    "repeated": (max(A, B), C, 0),
    "first": (0, A, B),
    "lead": ((A + B) / 3, (A + C) / 3, (B + C) / 3),
    "previous": (0, A, C),
    "next": (A, C, 0),
    "digits": (0, 2, 0),
    "commas": (0, 1, 0),
    "colons": (0, 1, 0),
    "quotes": (0, 0, 1),
    "question": (0, 1, 0),
    "no_end": (0, 0, 1),
    "said": (0, 0, 1),
    "personal": (0, 0, 0),
    "opens_with_pronoun": (0, 0, 1),
    "characters_a_word": (24 / 4, 24 / 5, 22 / 4),
}


def rows_of(texts):
    return features_of_all([texts])[0]


def column(rows, name):
    return rows[:, FEATURE_NAMES.index(name)].tolist()


def test_each_feature_and_its_logarithm_is_that_computed_by_hand():
    assert list(BY_HAND) == list(FEATURE_NAMES)
    rows = rows_of(STORY)
    assert (rows.shape, rows.dtype) == ((3, FEATURE_COUNT), np.float32)
    by_hand = np.array(list(BY_HAND.values())).T
    logarithms = np.copysign(np.log1p(np.abs(by_hand)), by_hand)
    assert rows == pytest.approx(np.hstack([by_hand, logarithms]), abs=1e-6)


@pytest.mark.parametrize(("sentence", "expected"), SENTENCES)
def test_features_of_characters(sentence, expected):
    rows = rows_of([sentence])
    names, values = expected.split()[::2], expected.split()[1::2]
    assert [column(rows, name)[0] for name in names] == list(map(float, values))


def test_the_last_sentences_of_a_long_document_are_compared_with_its_beginning():
    texts = [
        f"Rain fell on town{number % 97} and hill{number}, said Marta{number % 13}."
        for number in range(280)
    ]
    rows = rows_of(texts)
    degree, backward, forward = (
        np.array(column(rows, name)[250:]) for name in ("degree", "backward", "forward")
    )
    np.testing.assert_allclose(degree, backward, rtol=1e-6)
    assert degree.all() and not forward.any()
