"""Test of examples/duckdb.sql on a run with a network."""

import csv
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "duckdb.sql"


@pytest.mark.slow
def test_the_questions_have_the_answers_of_the_rows(undisturbed, tmp_path, monkeypatch):
    (tmp_path / "summaries").symlink_to(undisturbed)
    monkeypatch.chdir(tmp_path)
    rows = pq.read_table(undisturbed / "data").to_pylist()
    connection = duckdb.connect()
    answers = []
    for statement in connection.extract_statements(EXAMPLE.read_text()):
        connection.execute(statement)
        answers.append(connection.fetchall())
    _, methods, flags, doubtful, sentences, _ = answers
    expected = Counter(row["summary_method"] for row in rows)
    assert {method: count for method, count, *_ in methods} == expected
    assert dict(flags) == Counter(flag for row in rows for flag in row["quality_flags"])
    scores = [row["abstractive"][0]["score"] for row in rows if row["abstractive"]]
    assert [score for _, score, _ in doubtful] == sorted(scores)[:5]
    assert len(sentences) == 6
    with open("summaries.csv", newline="") as file:
        written = [(row["document_id"], row["summary"]) for row in csv.DictReader(file)]
    assert sorted(written) == sorted(
        (row["document_id"], row["summary"]) for row in rows
    )
