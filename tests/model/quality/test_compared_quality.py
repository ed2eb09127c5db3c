"""Tests of what is measured for `precis evaluate` alone: the summaries of the other
methods, and the reference.
"""

import pytest
from support.command_line import write_jsonl
from support.summarize_runs import rows_of

from precis.pipelines.summarize.summarize import summarize

STORM = (
    "A storm hit Larkspur on Monday. The harbour was closed for two days. "
    "Nobody was hurt. Nobody was hurt. Nobody was hurt."
)


def test_other_methods_and_the_reference_are_measured_as_summaries_are(tmp_path):
    lines = [
        {"id": "first", "article": STORM, "highlights": "The storm hit Larkspur."},
        {"id": "none", "article": STORM},
    ]
    flags = {"corpus": write_jsonl(tmp_path / "news.jsonl", lines), "sentences": 1}
    flags |= {"min_source_words": 3, "extractive": "lead,lexrank,oracle"}
    summarize(output=tmp_path / "run", **flags)
    rows = {row["document_id"]: row for row in rows_of(tmp_path / "run")}
    lexrank, oracle = rows["first"]["other_quality"]
    chosen = {item["method"]: item["text"] for item in rows["first"]["extractive"]}
    same = {"novel_2grams_percent": 0.0, "repetition_rate": 0.0, "flags": []}
    words = len(chosen["lexrank"].split())
    assert lexrank == {"system": "lexrank", "words": words, **same}
    assert oracle == {"system": "oracle", "words": 6, **same}
    assert chosen["oracle"] == "A storm hit Larkspur on Monday."
    # `the storm` is new; `storm hit` and `hit larkspur` are not.
    new = {"words": 4, "novel_2grams_percent": pytest.approx(100 / 3)}
    assert rows["first"]["reference_quality"] == {**same, **new}
    # Without a reference the oracle chooses nothing.
    (_, nothing) = rows["none"]["other_quality"]
    nothing_new = {"words": 0, "novel_2grams_percent": None, "flags": ["empty"]}
    assert nothing == {"system": "oracle", **same, **nothing_new}
    assert rows["none"]["reference_quality"] is None
