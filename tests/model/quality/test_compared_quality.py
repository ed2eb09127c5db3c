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
FLAGS = {"min_source_words": 0, "sentences": 1}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The rows of a run, and of one that reuses it after two references changed."""
    folder = tmp_path_factory.mktemp("runs")
    lines = [
        {"id": "first", "article": STORM, "highlights": "The storm hit Larkspur."},
        {"id": "copy", "article": STORM, "highlights": "Ships sank off Bremen."},
        {"id": "none", "article": STORM},
        {"id": "short", "article": "Rain fell."},
    ]
    corpus = write_jsonl(folder / "news.jsonl", lines)
    flags = {**FLAGS, "corpus": corpus, "extractive": "lead,lexrank,oracle"}
    flags["min_source_words"] = 3
    summarize(output=folder / "before", **flags)
    lines[0]["highlights"] = "Seven ships sank."
    write_jsonl(folder / "news.jsonl", lines)
    flags["extractive"] = "lead,lexrank"
    flags["deduplicate"] = True
    summarize(output=folder / "plain", **flags)
    lines[0]["highlights"] = "A storm hit Bremen."
    lines[3]["highlights"] = "Rain."
    write_jsonl(folder / "news.jsonl", lines)
    summarize(output=folder / "again", reuse=str(folder / "plain"), **flags)
    return {
        name: {row["document_id"]: row for row in rows_of(folder / name)}
        for name in ("before", "plain", "again")
    }


def test_every_method_but_the_first_is_measured(runs):
    row = runs["before"]["first"]
    assert [item["system"] for item in row["other_quality"]] == ["lexrank", "oracle"]
    lexrank, oracle = row["other_quality"]
    chosen = {item["method"]: item["text"] for item in row["extractive"]}
    assert lexrank == {
        "system": "lexrank",
        "words": len(chosen["lexrank"].split()),
        "novel_2grams_percent": 0.0,
        "repetition_rate": 0.0,
        "flags": [],
    }
    assert chosen["oracle"] == "A storm hit Larkspur on Monday."
    assert (oracle["words"], oracle["flags"]) == (6, [])
    # Without a reference the oracle chooses nothing.
    (_, nothing) = runs["before"]["none"]["other_quality"]
    assert nothing == {
        "system": "oracle",
        "words": 0,
        "novel_2grams_percent": None,
        "repetition_rate": 0.0,
        "flags": ["empty"],
    }


def test_references_are_measured_as_summaries_are(runs):
    quality = runs["before"]["first"]["reference_quality"]
    # `the storm` is new; `storm hit` and `hit larkspur` are not.
    assert quality["words"] == 4
    assert quality["novel_2grams_percent"] == pytest.approx(100 / 3)
    assert (quality["repetition_rate"], quality["flags"]) == (0.0, [])
    assert runs["before"]["none"]["reference_quality"] is None


def test_a_copied_or_reused_row_has_the_measures_of_its_own_reference(runs):
    copy = runs["plain"]["copy"]
    assert copy["duplicate_of"] == "first"
    assert copy["reference_quality"] == {
        "words": 4,
        "novel_2grams_percent": 100.0,
        "repetition_rate": 0.0,
        "flags": ["unsupported_name"],
    }
    assert runs["plain"]["none"]["reference_quality"] is None
    first = runs["plain"]["first"]["reference_quality"]
    assert first["flags"] == ["unsupported_number"]
    again = runs["again"]
    assert all(row["reused_from"] for row in again.values())
    # `a storm hit`; one of three pairs of words is new.
    assert again["first"]["reference_quality"]["novel_2grams_percent"] == pytest.approx(
        100 / 3
    )
    assert again["first"]["reference_quality"]["flags"] == ["unsupported_name"]
    assert again["copy"]["reference_quality"] == copy["reference_quality"]
    assert again["short"]["reference_quality"]["words"] == 1
    assert again["first"]["other_quality"] == runs["plain"]["first"]["other_quality"]
