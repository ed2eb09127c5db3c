"""Tests of bootstrap intervals."""

import numpy as np
import pytest

from precis.model import bootstrap
from precis.model.bootstrap import bootstrap_intervals


def interval(values, **settings):
    low, high = bootstrap_intervals(np.array(values, np.float64)[:, None], **settings)
    return low[0], high[0]


def test_interval_of_two_values_by_hand():
    # Means of two draws from {0, 1} are 0, 1/2 and 1 with probability 1/4, 1/2 and 1/4.
    assert interval([0, 1], confidence=0.95) == (0.0, 1.0)
    assert interval([0, 1], confidence=0.3) == (0.5, 0.5)
    # Every resample counts, the first and the last too.
    assert interval([7.0, 7.0], confidence=1.0) == (7.0, 7.0)


def test_every_column_sees_the_same_rows():
    values = np.random.default_rng(2).random((60, 2))
    # The difference of two columns that differ by a constant is that constant in every
    # sample, if the samples are the same.
    first, second = values.T
    columns = np.stack([first, first + 0.25, first - second], axis=1)
    low, high = bootstrap_intervals(columns, resamples=200)
    assert (low[1] - low[0], high[1] - high[0]) == pytest.approx((0.25, 0.25))
    drawn = np.random.default_rng(0).integers(0, 60, size=(200, 60))
    means = values[drawn].mean(axis=1)
    quantiles = np.quantile(means[:, 0] - means[:, 1], [0.025, 0.975])
    assert (low[2], high[2]) == pytest.approx(tuple(quantiles))


def test_interval_over_several_blocks(monkeypatch):
    values = np.random.default_rng(1).random(100)
    expected = interval(values, resamples=1001)
    monkeypatch.setattr(bootstrap, "_DRAWS_AT_ONCE", 700)
    assert interval(values, resamples=1001) == pytest.approx(expected, abs=1e-12)
