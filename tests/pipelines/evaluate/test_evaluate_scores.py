"""Tests of scoring rows: tasks, ROUGE in every row, unsplit texts, keyphrases."""

import random

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from support.summary_rows import direct, item, lines_of, make_row, rows_of, write_run

from precis.model import rouge
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.scoring import (
    MEASURED,
    extractive_summaries,
    keyphrase_f1,
    measures_of_row,
    one_sentence_a_line,
    score_rows,
)
from precis.pipelines.tables import part_files
from precis.pipelines.tables.finished_run import parquet_files
from precis.pipelines.tables.part_files import list_ranges, read_rows
from precis.pipelines.tables.schema import SCORES_SCHEMA

IDS = ["document_id"]


def test_ranges_cut_large_row_groups_and_join_small_ones(tmp_path, monkeypatch):
    """A row group is read by eight tasks at most."""
    monkeypatch.setattr(part_files, "_ROWS_A_TASK", 2)
    small = [rows_of(range(0, 3)), rows_of(range(3, 5))]
    run = write_run(tmp_path / "run", [small, [rows_of(range(5, 30))], [[]]])
    ranges = list_ranges(parquet_files(run), needed=["document_id"])
    assert [each[2:] for each in ranges] == [
        *((0, 2), (2, 2), (4, 1)),
        *((first, 4) for first in range(0, 24, 4)),
        (24, 1),
    ]
    ids = [[row["document_id"] for row in read_rows(each, IDS)] for each in ranges]
    assert ids[1] == ["d2", "d3"]
    assert sum(ids, []) == [f"d{number}" for number in range(30)]


def test_scores_join_with_the_summaries_in_sql_and_earlier_ones_are_gone(tmp_path):
    rows = [
        rows_of(range(0, 3)),
        rows_of(range(20, 22), reference=False) + rows_of([5], network=False),
    ]
    run = write_run(tmp_path / "run", [[group] for group in rows])
    folder = tmp_path / "run-evaluation" / "scores"
    folder.mkdir(parents=True)
    (folder / "part-00002-of-00003.parquet").write_bytes(b"of an earlier evaluation")
    evaluate(input=run, resamples=10)
    table = pq.read_table(folder / "part-00000-of-00002.parquet")
    assert table.schema.equals(SCORES_SCHEMA, check_metadata=True)
    query = f"""
        SELECT document_id, system, rouge1, rouge2, rougeL, rougeLsum,
            abstractive_summary, reference_summary
        FROM '{folder}/*.parquet'
        JOIN '{run}/data/*.parquet' USING (document_id, run_id) ORDER BY ALL
    """
    lines = duckdb.sql(query).fetchall()
    scored = {row["document_id"]: row for row in (*rows[0], rows[1][2])}
    systems = [(name, each) for name in scored for each in ("lead", "frequency")]
    systems += [(f"d{number}", "abstractive") for number in range(3)]
    assert [line[:2] for line in lines] == sorted(systems)
    for name, system, *figures, summary, reference in lines:
        if system != "abstractive":
            summary = lines_of(scored[name], system)
        assert figures == [direct(each, reference, summary) for each in rouge.MEASURES]


def measures(generator):
    """Measures of a text, as far as `precis summarize` writes them."""
    flags = generator.sample(["empty", "repeated", "unsupported_name"], k=3)
    return {
        **dict.fromkeys(
            ("unsupported_numbers", "unsupported_dates", "unsupported_names"), ["x"]
        ),
        **dict.fromkeys(("coverage", "density", "compression", "mean_log_prob"), 1.0),
        "words": generator.randrange(40),
        "novel_2grams_percent": generator.choice([None, 12.5, 50.0, 100.0]),
        "repetition_rate": generator.random(),
        "flags": sorted(flags[: generator.randrange(3)]),
    }


def drawn_row(number):
    """A row in which a network, a method, a reference or measures may be missing."""
    generator = random.Random(number)

    def maybe(value):
        return value if generator.random() < 0.8 else None

    network, shown = maybe(True), maybe("The mayor opened a bridge.\nIt was late.")
    row = make_row(
        number,
        network=bool(network),
        reference=bool(maybe(True)),
        summary=shown,
        summary_method=shown and "lead",
        quality_flags=[],
        extractive_quality=maybe(measures(generator)),
        abstractive_quality=network and maybe(measures(generator)),
        other_quality=[{"system": "frequency", **measures(generator)}],
        reference_quality=maybe(measures(generator)),
    )
    if generator.random() < 0.3:
        chosen = row["extractive"]
        row["extractive"] = [each for each in chosen if each["method"] == "lead"]
    return row


MEANS = """
    SELECT system, count(rouge1), avg(rouge1), avg(rouge2), avg(rougeL), avg(rougeLsum)
    FROM {scores} WHERE rouge1 IS NOT NULL GROUP BY system
"""
GAINS = """
    SELECT other.system, count(*), avg(other.rouge1 - lead.rouge1),
        avg(other.rouge2 - lead.rouge2), avg(other.rougeLsum - lead.rougeLsum)
    FROM {scores} AS other JOIN {scores} AS lead USING (document_id)
    WHERE lead.system = 'lead' AND other.system NOT IN ('lead', 'reference')
    GROUP BY other.system
"""
MEASURES = """
    SELECT system, count(*), avg(words), avg(novel_2grams_percent),
        100 * avg(repetition_rate), 100 * avg((len(flags) > 0)::INT),
        100 * avg(list_contains(flags, 'repeated')::INT),
        100 * avg(list_contains(flags, 'too_short')::INT)
    FROM {scores} WHERE words IS NOT NULL GROUP BY system
"""


def test_the_result_is_what_sql_makes_of_the_scores(tmp_path):
    """Over files in which a system has no row, too."""
    rows = [drawn_row(number) for number in range(90)]
    nothing = {"extractive": [], "extractive_quality": None, "other_quality": []}
    rows[60:70] = [{**row, **nothing} for row in rows[60:70]]
    groups = [[rows[:20], rows[20:60]], [rows[60:70]], [rows[70:]]]
    run = write_run(tmp_path / "run", groups)
    result = evaluate(input=run, resamples=20)
    scores = f"'{tmp_path}/run-evaluation/scores/*.parquet'"

    def by_sql(query):
        found = duckdb.sql(query.format(scores=scores)).fetchall()
        return {system: pytest.approx(figures) for system, *figures in found}

    def means(systems, *names):
        return {
            each["method"]: [each["rows"], *(each[name]["mean"] for name in names)]
            for each in systems
        }

    assert means(result["systems"], *rouge.MEASURES) == by_sql(MEANS)
    gains = [{**each, "method": each["system"]} for each in result["differences"]]
    assert means(gains, "rouge1", "rouge2", "rougeLsum") == by_sql(GAINS)
    measured = {
        each["method"]: [
            *(each[name] for name in ("rows", "words", "novel_2grams_percent")),
            *(each["repetition_percent"], each["flagged_percent"]),
            *(each["flags_percent"][name] for name in ("repeated", "too_short")),
        ]
        for each in result["measures"]
    }
    assert measured == by_sql(MEASURES)
    named = {"lead", "frequency", "abstractive", "summary"}
    assert measured.keys() == {*named, "reference"} and len(result["systems"]) == 4


def test_sentences_are_joined_in_document_order_one_a_line():
    sentences = [
        item("lead", 1, 9, "Second\n one."),
        item("lead", 2, 0, "First."),
        item("other", 1, 5, "Else."),
    ]
    assert extractive_summaries(sentences) == {
        "lead": "First.\nSecond one.",
        "other": "Else.",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain fell. It was cold.", "Rain fell.\nIt was cold."),
        (
            "rain fell . it was cold . nobody came .",
            "rain fell .\nit was cold .\nnobody came .",
        ),
        (
            "Rain fell. It was cold.\nNobody came.",
            "Rain fell. It was cold.\nNobody came.",
        ),
        ("Rain fell. It was cold.\n", "Rain fell.\nIt was cold."),
        ("Rain fell on the U.S. coast.", "Rain fell on the U.S. coast."),
        ("(CNN) -- Rain fell. It was cold.", "(CNN) -- Rain fell.\nIt was cold."),
        ("", ""),
    ],
)
def test_only_texts_without_line_breaks_are_cut(text, expected):
    assert one_sentence_a_line(text) == expected


def test_what_a_task_counts():
    """A method that chose nothing in a row scores nothing there."""
    rows = [
        *rows_of(range(0, 3)),
        *rows_of([21], reference=False),
        make_row(4, network=False, summary="One fell. Two came."),
    ]
    rows[1]["extractive"] = rows[1]["extractive"][:3]
    table, scores = score_rows(rows, number=0, split_sentences=False)
    counts = {"rows": 5, "scored": 4, "judged": 3, "truncated": 1}
    assert scores.counts == {**counts, "summary": 1, "unsplit": 1}
    assert scores.most_sentences == {"lead": 3, "frequency": 2}
    missing = {
        system: np.isnan(values[:, 0]).tolist()
        for system, values in scores.scores.items()
    }
    assert missing == {
        "lead": [False] * 4,
        "frequency": [False] * 4,
        "abstractive": [False] * 3 + [True],
        "summary": [True] * 3 + [False],
    }
    assert table.num_rows == 12
    assert scores.scores["frequency"][1].tolist() == [0.0] * 4
    assert (scores.scores["frequency"][[0, 2], 0] > 0).all()


def phrases(method, *names):
    """Phrases of a method, the best first, in the order of the alphabet."""
    return sorted(
        (
            {"method": method, "phrase": name, "score": 1.0 - place / 10}
            for place, name in enumerate(names)
        ),
        key=lambda p: p["phrase"],
    )


def test_keyphrases_against_the_reference_phrases_by_hand():
    rows = [
        {
            # All three are among the first five, and the written order is another.
            "keyphrases": phrases(
                "classifier", "Rain", "coasts", "road", "z", "y", "x", "w"
            )
            + phrases("frequency", "z", "y"),
            "reference_keyphrases": ["coast", "rain", "road"],
        },
        {
            "keyphrases": phrases("classifier", "train"),
            "reference_keyphrases": ["train"],
        },
        {"keyphrases": phrases("classifier", "train"), "reference_keyphrases": []},
        {"keyphrases": phrases("classifier", "train"), "reference_keyphrases": None},
        {"keyphrases": None, "reference_keyphrases": ["train"]},
        {},
    ]
    scores = keyphrase_f1(rows)
    assert sorted(scores) == ["classifier", "frequency"]
    np.testing.assert_allclose(
        scores["classifier"], [[2 * 3 / (5 + 3), 2 * 3 / (7 + 3)], [1, 1]]
    )
    np.testing.assert_allclose(scores["frequency"], [[0, 0], [0, 0]])


def test_keyphrases_in_the_result_and_the_table(tmp_path, capsys):
    keyphrases = phrases("classifier", "bridge", "mayor")
    keyphrases += phrases("frequency", "cost", "mayor")
    rows = [
        make_row(
            number,
            keyphrases=keyphrases,
            reference_keyphrases=["bridg", "mayor"] if number % 2 else None,
        )
        for number in range(1, 6)
    ]
    run = write_run(tmp_path / "run", [[rows[:2]], [rows[2:]]])
    classifier, frequency = evaluate(input=run, resamples=10)["keyphrases"]
    assert (classifier["system"], classifier["rows"]) == ("classifier", 3)
    assert classifier["f1_at_5"]["mean"] == classifier["f1_at_10"]["mean"] == 1.0
    assert frequency["f1_at_5"]["mean"] == frequency["f1_at_10"]["mean"] == 0.5
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    place = printed.index(["keyphrases", "rows", "F1@5", "F1@10"])
    figure = ["50.0", "[50.0,", "50.0]"]
    assert printed[place + 2] == ["frequency", "3", *figure, *figure]


# --- Measures.

GOOD = dict(zip(MEASURED, (10, 0.0, 0.0, []), strict=True))
BAD = dict(zip(MEASURED, (4, 50.0, 0.25, ["repeated"]), strict=True))
EMPTY = dict(zip(MEASURED, (0, None, 0.0, ["empty"]), strict=True))


def test_each_system_has_the_measures_of_its_column():
    others = {"unsupported_names": ["x"]}
    row = {
        "extractive_method": "lead",
        "extractive_quality": {**GOOD, **others},
        "abstractive_quality": {**BAD, **others},
        "other_quality": [{"system": "frequency", **EMPTY}],
        "reference_quality": GOOD,
        "summary_method": "abstractive",
        "quality_flags": ["short"],
    }
    shown = {**BAD, "flags": ["short"]}
    expected = {"lead": GOOD, "abstractive": BAD, "reference": GOOD}
    expected |= {"frequency": EMPTY, "summary": shown}
    assert measures_of_row(row) == expected
    # The article as its own summary is no system.
    source = [{"system": "source", **BAD}]
    row |= {"summary_method": "source", "other_quality": source}
    row |= {"abstractive_quality": None, "reference_quality": None}
    assert measures_of_row(row) == {"lead": GOOD, "summary": shown}


def test_columns_from_elsewhere_are_not_taken_for_measures():
    other = {
        "extractive_method": "lead",
        "extractive_quality": 0.5,
        "other_quality": ["good"],
        "reference_quality": {"words": 3},
    }
    assert measures_of_row(other) == measures_of_row({"document_id": "a"}) == {}
