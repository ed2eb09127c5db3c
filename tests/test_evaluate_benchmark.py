"""Tests of the benchmark of the evaluation."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "evaluate.py"


@pytest.mark.slow
def test_it_prints_a_figure_for_each_way_and_that_the_figures_are_equal():
    command = [
        sys.executable,
        str(BENCHMARK),
        "--rows",
        "30",
        "--systems",
        "3",
        "--pairs",
        "9",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {
        name: value
        for name, value, _ in (line.split() for line in result.stdout.splitlines())
    }
    assert (
        float(found["one_process.rows_per_s"]) > 0 and float(found["rouge.ratio"]) > 0
    )
    assert found["rouge.equal"] == "True"
