"""The benchmark of training: the ratio that it reports."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def train(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("train")
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_a_ratio_is_the_median_of_the_rounds(train):
    # The median of 2, 3 and 1; the ratio of the medians is 1.33.
    assert train.ratio([2.0, 9.0, 4.0], [1.0, 3.0, 4.0]) == 2.0
