"""The benchmark of the evaluation: its metrics and the equality of the scores."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "evaluate.py"


@pytest.mark.slow
def test_it_prints_the_rates_and_that_the_scores_are_equal():
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
    values = {
        name: value
        for name, value, _ in (line.split() for line in result.stdout.splitlines())
    }
    assert float(values["one_process.rows_per_s"]) > 0
    assert float(values["rouge.ratio"]) > 0
    assert values["rouge.equal"] == "True"
