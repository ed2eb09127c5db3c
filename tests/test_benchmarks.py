"""The tables of scripts in `benchmarks/`, with as little work as they take."""

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.machine import record

ROOT = Path(__file__).parents[1]


def table_of(*arguments):
    """The rows of the table that a script prints, by their first columns."""
    printed = subprocess.check_output([sys.executable, *arguments], cwd=ROOT, text=True)
    lines = printed.splitlines()
    return list(filter(None, (re.findall(r"\| ([^|]*?) (?=\|)", x) for x in lines)))


def test_a_figure_is_recorded_beside_the_others_a_line_each(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text('{"rate.b": {"value": "1"}, "rate.a": {"value": "2"}}')
    record("rate.b", "3", "documents/s", "make bench", path)
    lines = path.read_text().splitlines()
    assert lines[1] == '  "rate.a": {"value": "2"},' and len(lines) == 4
    figure = json.loads(path.read_text())["rate.b"]
    assert figure.pop("chip").endswith(" cores")
    assert figure.pop("date") == datetime.date.today().isoformat()
    assert figure == {"value": "3", "unit": "documents/s", "command": "make bench"}


@pytest.mark.slow
def test_the_table_of_peers():
    header, row = table_of("benchmarks/table.py", "--only", "evaluate.py")
    assert header == ["job", "ours", "peer", "of", "unit", "ratio"]
    job, ours, theirs, peer, unit, ratio = row
    assert (job, unit) == ("ROUGE", "pairs/s") and peer.startswith("rouge-score 0.1")
    ours, theirs = (float(rate.replace(",", "")) for rate in (ours, theirs))
    assert float(ratio) == pytest.approx(ours / theirs, rel=0.01)


@pytest.mark.slow
def test_the_table_of_languages_compares_equal_lengths_with_another_checkout(tmp_path):
    sentences = ["Die Brücke ist alt.", "Eine neue Brücke wird gebaut.", "Es regnet."]
    text = {"article": " ".join(sentences), "highlights": "Eine neue Brücke wird"}
    path = tmp_path / "de.jsonl"
    path.write_text(json.dumps(text | {"language": "de"}), "utf-8")
    flags = ("--methods=lead,frequency", f"--baseline={ROOT}")
    header, *rows = table_of("benchmarks/languages.py", str(path), *flags)
    assert header[-1] == "to baseline"
    same = "+0.0 [+0.0, +0.0] / +0.0 [+0.0, +0.0]"
    assert rows == [
        # `Die Brücke ist alt`: of four words, one is in the reference.
        ["de", "1", "4", "lead", "25.0 / 0.0", same],
        ["de", "1", "4", "frequency", "100.0 / 100.0", same],
    ]


@pytest.mark.slow
def test_the_table_of_a_device():
    _, *rows = table_of("benchmarks/accelerator.py", "--quick")
    assert [row[:4] for row in rows] == [
        [job, "float32", step, "2"]
        for job in ("train", "search")
        for step in ("graph", "XLA")
    ]
    # Room for eight steps, then for twelve.
    assert [row[7] for row in rows] == ["1", "1", "2", "2"]
