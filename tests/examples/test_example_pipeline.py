"""Test of examples/beam_pipeline.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import write_jsonl

EXAMPLE = Path(__file__).parents[2] / "examples" / "beam_pipeline.py"


def line(number: int, section: str, **changes: str) -> dict[str, str]:
    """An article whose first two sentences are its only long ones."""
    article = (
        f"Storm {number} closed the harbour of town {number} on Monday. "
        f"Nobody was hurt by storm {number} in the harbour. Ships waited."
    )
    row = {"id": f"d{number}", "section": section, "date": f"2026-11-0{number}"}
    return {**row, "article": article, **changes}


@pytest.mark.slow
def test_the_pipeline_writes_a_digest_of_each_section(tmp_path):
    lines = [line(1, "news"), line(2, "sport"), line(3, "news"), line(4, "weather")]
    write_jsonl(tmp_path / "1.jsonl", lines)
    again = [line(6, "news", id="d4"), line(7, "weather", id="d4")]
    twice = [line(8, "culture"), line(8, "culture")]
    bad = ['{"id": "d9"', "[]", '{"id": "d9"}']
    write_jsonl(tmp_path / "2.jsonl", [line(5, "news", article=" "), *again, *bad])
    write_jsonl(tmp_path / "3.jsonl", twice)
    flags = ["--input", f"{tmp_path}/*.jsonl", "--output", str(tmp_path / "digests")]
    subprocess.run([sys.executable, EXAMPLE, *flags], check=True, timeout=300)

    def written(name: str) -> list[dict]:
        (path,) = (tmp_path / "digests").glob(f"{name}-00000-of-*.jsonl")
        return [json.loads(each) for each in path.read_text().splitlines()]

    digests = {each["section"]: each["summaries"] for each in written("digests")}
    numbers = {"news": [6, 3, 1], "weather": [7, 4], "culture": [8, 8]}
    assert set(digests) == set(numbers)
    for section, expected in numbers.items():
        dates = [date for date, _ in digests[section]]
        assert dates == [f"2026-11-0{number}" for number in expected]
        for number, (_, summary) in zip(expected, digests[section], strict=True):
            assert f"Storm {number} closed the harbour" in summary
    failed = written("failed")
    empty = {"id": "d5", "reason": "empty_article"}
    assert [each for each in failed if "id" in each] == [empty]
    reasons = {each["line"]: each["reason"] for each in failed if "line" in each}
    assert set(reasons) == set(bad)
    assert reasons[bad[0]].startswith("JSONDecodeError: Expecting ',' delimiter")
    assert reasons[bad[2]] == "KeyError: 'section'"
