"""The rounding of scores; expected values by hand."""

import math

import numpy as np
import pytest

from precis.pipelines.tables.columns import round_margin, round_score


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (-12.3456, -12.35),
        (0.99996, 1.0),
        (0.000123449, 0.0001234),
        (-1.23456e-20, -1.235e-20),
        (123456.0, 123500.0),
        (1, 1.0),
        (0.0, 0.0),
        (-math.inf, -math.inf),
    ],
)
def test_a_score_has_four_significant_digits(score, expected):
    assert round_score(score) == expected
    assert isinstance(round_score(score), float)


def test_scores_that_differ_in_the_last_bits_are_mostly_equal():
    scores = np.random.default_rng(4).normal(-3, 1, 2_000).astype("float32")
    others = np.nextafter(scores, np.float32(0))
    assert (scores != others).all()
    different = [
        round_score(float(score)) != round_score(float(other))
        for score, other in zip(scores, others, strict=True)
    ]
    assert sum(different) < 10


def test_a_margin_has_three_decimals_or_is_unknown():
    assert round_margin(0.00049) == 0.0
    assert round_margin(-1.23456) == -1.235
    assert round_margin(None) is None
