"""Tests of the computed time and cost on Dataflow, and of the table in the docs."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def cost():
    path = ROOT / "benchmarks" / "dataflow_cost.py"
    spec = importlib.util.spec_from_file_location("dataflow_cost", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_plan_by_hand(cost):
    # 7200 documents at 2 a second take an hour of one vCPU, which comes with 4 GB.
    plan = cost.plan(7200, 2.0, vcpus=4, vcpu_price=0.1, gb_price=0.025)
    assert plan == pytest.approx((1.0, 0.25, 0.2, 36_000))


def test_the_documentation_has_the_lines_that_are_printed(cost, capsys):
    cost.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(cost.RATES)
    assert "\n".join(lines) in (ROOT / "docs" / "DATAFLOW.md").read_text()
