"""Tests of the measures in an evaluation: read from the rows, summed, and shown."""

import json
from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support.command_line import write_jsonl
from support.summarize_runs import rows_of as rows_of_run

from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.evaluation_table import (
    as_markdown,
    as_text,
    combine,
)
from precis.pipelines.evaluate.options import EvaluateOptions
from precis.pipelines.evaluate.scoring import (
    LATER_COLUMNS,
    MEASURED,
    RangeScores,
    measures_of_row,
    sum_measures,
)
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

GOOD = dict(zip(MEASURED, (10, 0.0, 0.0, []), strict=True))
BAD = dict(
    zip(MEASURED, (4, 50.0, 0.25, ["repeated", "unsupported_name"]), strict=True)
)
EMPTY = dict(zip(MEASURED, (0, None, 0.0, ["empty"]), strict=True))


def quality(measures):
    """The measures as a struct of the rows, with those that are not read."""
    others = dict.fromkeys(
        ("unsupported_numbers", "unsupported_dates", "unsupported_names"), ["x"]
    )
    return {**others, **measures}


def read(*rows):
    """Rows with the columns of the measures, as they are read of a file."""
    columns = [SUMMARY_SCHEMA.field(name) for name in LATER_COLUMNS if name in rows[0]]
    schema = pa.schema([column.with_nullable(True) for column in columns])
    return pa.Table.from_pylist([*rows], schema=schema).to_pylist()


ROWS = (
    {
        "extractive_method": "lead",
        "extractive_quality": quality(GOOD),
        "abstractive_quality": quality(BAD),
        "other_quality": [{"system": "frequency", **EMPTY}],
        "reference_quality": GOOD,
        "summary_method": "abstractive",
        "quality_flags": ["repeated"],
    },
    {
        "extractive_method": "lead",
        "extractive_quality": quality(BAD),
        "abstractive_quality": None,
        "other_quality": [
            {"system": "frequency", **GOOD},
            {"system": "source", **BAD},
        ],
        "reference_quality": None,
        "summary_method": "source",
        "quality_flags": ["short_source"],
    },
    {
        "extractive_method": "lead",
        "extractive_quality": quality(GOOD),
        "abstractive_quality": None,
        "other_quality": [],
        "reference_quality": BAD,
        "summary_method": "lead",
        "quality_flags": [],
    },
)
EXPECTED = [
    {
        "lead": GOOD,
        "abstractive": BAD,
        "reference": GOOD,
        "frequency": EMPTY,
        "summary": {**BAD, "flags": ["repeated"]},
    },
    {
        "lead": BAD,
        "frequency": GOOD,
        "summary": {**BAD, "flags": ["short_source"]},
    },
    {"lead": GOOD, "reference": BAD, "summary": GOOD},
]


def test_each_system_has_the_measures_of_its_column():
    assert [measures_of_row(row) for row in read(*ROWS)] == EXPECTED


def test_columns_from_elsewhere_are_not_taken_for_measures():
    first, second, _ = read(*ROWS)
    for row in (first, second):
        del row["other_quality"], row["reference_quality"]
    names = ("lead", "abstractive", "summary")
    assert measures_of_row(first) == {name: EXPECTED[0][name] for name in names}
    # The article as its summary stood there.
    assert measures_of_row(second) == {"lead": BAD}
    other = {
        "extractive_method": "lead",
        "extractive_quality": 0.5,
        "other_quality": ["good"],
        "reference_quality": {"words": 3},
    }
    assert measures_of_row(other) == measures_of_row({"document_id": "a"}) == {}


def part(number, *rows):
    """The result of a task with the systems lead and summary."""
    zeros = np.zeros((len(rows), 4))
    return RangeScores(
        number=number,
        counts=Counter(rows=len(rows), scored=len(rows)),
        most_sentences=Counter(lead=3),
        scores={"lead": zeros, "summary": zeros},
        keyphrases={},
        measures=sum_measures(rows),
    )


def result_of(*parts):
    return combine(parts, EvaluateOptions(input="run", resamples=5))


def test_the_table_has_a_column_for_each_system():
    first = part(0, {"lead": GOOD, "reference": BAD}, {"lead": EMPTY})
    result = result_of(part(1, {"lead": BAD, "reference": EMPTY}), first)
    tables = as_text(result).split("\n\n")
    assert tables[2].splitlines() == [
        "measure              lead-3  reference",
        "rows                   3       2",
        "words                  4.7     2.0",
        "novel bigrams %       25.0    50.0",
        "repeated trigrams %    8.3    12.5",
        "any flag %            66.7   100.0",
        "empty %               33.3    50.0",
        "repeated %            33.3    50.0",
        "unsupported_name %    33.3    50.0",
    ]
    assert "| novel bigrams % |  25.0 |  50.0 |\n" in as_markdown(result)
    assert "not measured: summary; the files do not hold" in tables[3]
    # Ranges in another order.
    again = result_of(first, part(1, {"lead": BAD, "reference": EMPTY}))
    assert again == result


@pytest.fixture(scope="module", params=[False, True], ids=["nested", "flat"])
def measured_run(request, tmp_path_factory):
    """The rows of a real run, its evaluation, and the folder of it."""
    folder = tmp_path_factory.mktemp("measured")
    lines = [
        {
            "id": f"d{number}",
            "article": "A storm hit Larkspur on Monday. Nobody was hurt there. "
            f"The harbour was closed for {number + 2} days.",
            "highlights": "A storm hit Bremen." if number % 2 else "Nobody was hurt.",
        }
        for number in range(8)
    ]
    del lines[7]["highlights"]
    summarize(
        corpus=write_jsonl(folder / "news.jsonl", lines),
        output=folder / "run",
        extractive="lead,lexrank",
        sentences=1,
        min_source_words=0,
        flat=request.param,
    )
    result = evaluate(input=folder / "run", resamples=5)
    return folder, result


def test_a_run_has_measures_of_every_system_and_of_the_references(measured_run):
    folder, result = measured_run
    measured = {each["method"]: each for each in result["measures"]}
    assert list(measured) == ["lead", "lexrank", "summary", "reference"]
    assert result["unmeasured"] == []
    assert {each["rows"] for each in measured.values()} == {7}
    # Three of the seven references say `A storm hit Bremen.`, whose last bigram is new;
    # nothing of `Nobody was hurt.` is.
    reference = measured["reference"]
    assert reference["words"] == pytest.approx((3 * 4 + 4 * 3) / 7)
    assert reference["novel_2grams_percent"] == pytest.approx(100 / 7)
    assert reference["flags_percent"]["unsupported_name"] == pytest.approx(300 / 7)
    assert measured["lead"]["words"] == 6.0
    assert measured["lead"]["novel_2grams_percent"] == 0.0
    assert measured["summary"]["words"] == 6.0
    stored = json.loads((folder / "run-evaluation" / "rouge.json").read_text())
    assert stored["measures"] == result["measures"]
    assert "| novel bigrams % |" in (folder / "run-evaluation/rouge.md").read_text()


def test_measures_are_those_of_the_rows(measured_run):
    folder, _ = measured_run
    rows = rows_of_run(folder / "run")
    flat = "extractive_quality_words" in rows[0]
    words = [
        row["extractive_quality_words" if flat else "extractive_quality"]
        for row in rows
        if row["reference_summary"]
    ]
    expected = words if flat else [each["words"] for each in words]
    scores = f"'{folder}/run-evaluation/scores/*.parquet'"
    query = f"SELECT words FROM {scores} WHERE system = 'lead' ORDER BY document_id"
    assert [words for (words,) in duckdb.sql(query).fetchall()] == expected
