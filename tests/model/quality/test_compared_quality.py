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


def rows_by_id(lines, folder, name, **flags):
    """The rows of a run of the first method and of others."""
    corpus = write_jsonl(folder / "news.jsonl", lines)
    settings = {"min_source_words": 3, "sentences": 1, **flags}
    summarize(output=folder / name, corpus=corpus, **settings)
    return {row["document_id"]: row for row in rows_of(folder / name)}


def test_other_methods_and_the_reference_are_measured_as_summaries_are(tmp_path):
    lines = [
        {"id": "first", "article": STORM, "highlights": "The storm hit Larkspur."},
        {"id": "none", "article": STORM},
    ]
    rows = rows_by_id(lines, tmp_path, "run", extractive="lead,lexrank,oracle")
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


def test_a_copied_or_reused_row_has_the_measures_of_its_own_reference(tmp_path):
    lines = [
        {"id": "first", "article": STORM, "highlights": "Seven ships sank."},
        {"id": "copy", "article": STORM, "highlights": "Ships sank off Bremen."},
        {"id": "none", "article": STORM},
        {"id": "short", "article": "Rain fell."},
    ]
    flags = {"extractive": "lead,lexrank", "deduplicate": True}
    before = rows_by_id(lines, tmp_path, "before", **flags)
    assert before["copy"]["duplicate_of"] == "first"
    assert before["none"]["reference_quality"] is None
    lines[0]["highlights"] = "A storm hit Bremen."
    lines[3]["highlights"] = "Rain."
    reuse = str(tmp_path / "before")
    after = rows_by_id(lines, tmp_path, "after", reuse=reuse, **flags)
    assert all(row["reused_from"] for row in after.values())
    for row, novel, flag in (
        (before["first"], 100.0, "unsupported_number"),
        (before["copy"], 100.0, "unsupported_name"),
        (after["copy"], 100.0, "unsupported_name"),
        # `a storm hit`; one of three pairs of words is new.
        (after["first"], 100 / 3, "unsupported_name"),
    ):
        quality = row["reference_quality"]
        assert quality["novel_2grams_percent"] == pytest.approx(novel)
        assert quality["flags"] == [flag]
    assert after["short"]["reference_quality"]["words"] == 1
    assert after["first"]["other_quality"] == before["first"]["other_quality"]
