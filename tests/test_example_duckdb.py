"""Test of examples/duckdb.sql on a run with a network."""

import csv
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "duckdb.sql"


def test_sentences_that_end_with_a_line_are_counted_as_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("summaries/data").mkdir(parents=True)
    summaries = ["Rain fell.\nShips waited here.", "One\ntwo three"]
    columns = {
        "summary_method": ["lead", "lead"],
        "article_words": [10, 21],
        "summary": summaries,
    }
    pq.write_table(pa.table(columns), "summaries/data/part.parquet")
    connection = duckdb.connect()
    view, question, *_ = connection.extract_statements(EXAMPLE.read_text())
    connection.execute(view)
    assert connection.execute(question).fetchall() == [("lead", 2, 16.0, 4.0)]


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

    assert {method: count for method, count, *_ in methods} == Counter(
        row["summary_method"] for row in rows
    )
    texts = [row for row in rows if row["summary_method"] == methods[0][0]]
    words = sum(row["article_words"] for row in texts) / len(texts)
    assert methods[0][2] == pytest.approx(words, abs=0.5)
    assert dict(flags) == Counter(flag for row in rows for flag in row["quality_flags"])
    assert [count for _, count in flags] == sorted(dict(flags).values(), reverse=True)

    scores = {
        row["document_id"]: row["abstractive"][0]["score"]
        for row in rows
        if row["abstractive"]
    }
    assert len(doubtful) == 5
    assert [score for _, score, _ in doubtful] == sorted(scores.values())[:5]
    chosen = sorted(
        (row["document_id"], each["method"], each["start"], each["text"])
        for row in rows
        for each in row["extractive"]
        if each["rank"] == 1
    )
    assert sentences == chosen[:6]

    with open("summaries.csv", newline="") as file:
        written = list(csv.DictReader(file))
    by_id = sorted((row["document_id"], row["summary"]) for row in rows)
    ids = [(row["document_id"], row["summary"]) for row in written]
    assert sorted(ids) == by_id and len(ids) == len(rows)
