"""Tests of the scores of an evaluation: each of them against rouge-score and the rows,
their means against SQL; unsplit texts, keyphrases, and the ranges of rows.
"""

import random
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import rankdata
from support.summary_rows import direct, lines_of, make_row, rows_of, write_run

from precis.model import rouge
from precis.pipelines.evaluate import scoring
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.scoring import HAS_FACTS, MEASURED, score_rows
from precis.pipelines.tables import output_files
from precis.pipelines.tables.finished_run import parquet_files
from precis.pipelines.tables.output_files import list_ranges, read_rows
from precis.pipelines.tables.schema import SCORES_SCHEMA

IDS = ["document_id"]


def test_ranges_cut_large_row_groups(tmp_path, monkeypatch):
    """A row group is read by eight tasks at most."""
    monkeypatch.setattr(output_files, "_ROWS_A_TASK", 2)
    small = [rows_of(range(0, 3)), rows_of(range(3, 5))]
    run = write_run(tmp_path / "run", [small, [rows_of(range(5, 30))], [[]]])
    ranges = list_ranges(parquet_files(run), needed=["document_id"])
    assert [each[2:] for each in ranges] == [
        *((0, 0, 2), (0, 2, 1), (1, 0, 2)),
        *((0, first, 4) for first in range(0, 24, 4)),
        (0, 24, 1),
    ]
    ids = [[row["document_id"] for row in read_rows(each, IDS)] for each in ranges]
    assert ids[1] == ["d2"]
    assert sum(ids, []) == [f"d{number}" for number in range(30)]


def test_columns_from_elsewhere_are_not_taken_for_measures():
    other = {"extractive_method": "lead", "extractive_quality": 0.5}
    other |= {"other_quality": ["good"], "reference_quality": {"words": 3}}
    assert scoring.measures_of_row(other) == {}
    whole = dict(zip(MEASURED, (3, None, 0.0, []), strict=True))
    shown = {**other, "summary_method": "lead", "extractive_quality": whole}
    # Without the column of the flags nothing is known of the text that is shown.
    assert list(scoring.measures_of_row(shown)) == ["lead"]


def measures(generator):
    """Measures of a text, as far as `precis summarize` writes them."""
    flags = generator.sample(["empty", "repeated", "unsupported_name"], k=3)
    unsupported = ("unsupported_numbers", "unsupported_dates", "unsupported_names")
    return {
        **dict.fromkeys(unsupported, ["x"]),
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
    names = ("frequency", "source")
    others = [{"system": name, **measures(generator)} for name in names]
    row = make_row(
        number,
        network=bool(network),
        reference=bool(maybe(True)),
        summary=shown,
        summary_method=shown and "lead",
        quality_flags=["too_short"],
        expected_rouge2=maybe(generator.random()),
        extractive_quality=maybe(measures(generator)),
        abstractive_quality=network and maybe(measures(generator)),
        other_quality=others,
        reference_quality=maybe(measures(generator)),
    )
    first = row["extractive"][0]  # A sentence may run over a line break.
    first["text"] = first["text"].replace(" ", "\n ", 1)
    if generator.random() < 0.3:
        chosen = row["extractive"]
        row["extractive"] = [each for each in chosen if each["method"] == "lead"]
    return row


class Evaluated(NamedTuple):
    """Rows by document, their evaluation, the folder of the scores, and rouge.md."""

    rows: dict[str, dict[str, Any]]
    result: dict[str, Any]
    scores: Path
    text: str


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Of several files; in one of them no method has chosen a sentence."""
    folder = tmp_path_factory.mktemp("evaluated")
    rows = [drawn_row(number) for number in range(90)]
    nothing = {"extractive": [], "extractive_quality": None, "other_quality": []}
    rows[60:70] = [{**row, **nothing} for row in rows[60:70]]
    groups = [[rows[:20], rows[20:60]], [rows[60:70]], [rows[70:]]]
    run = write_run(folder / "run", groups)
    scores = folder / "run-evaluation" / "scores"
    scores.mkdir(parents=True)
    (scores / "part-00003-of-00004.parquet").write_bytes(b"of an earlier evaluation")
    result = evaluate(input=run, resamples=20)
    text = (scores.parent / "rouge.md").read_text()
    return Evaluated({row["document_id"]: row for row in rows}, result, scores, text)


def test_each_score_is_that_of_rouge_score_and_each_measure_that_of_the_row(evaluated):
    part, *_ = evaluated.scores.iterdir()
    assert pq.read_schema(part).equals(SCORES_SCHEMA, check_metadata=True)
    lines = pq.read_table(evaluated.scores).to_pylist()
    scored, expected = set(), set()
    columns = {"abstractive": "abstractive_summary", "summary": "summary"}
    for row in evaluated.rows.values():
        if (row["reference_summary"] or "").strip():
            systems = {name for name in columns if row[columns[name]] is not None}
            # A method that chose nothing in this row alone scores nothing here.
            systems |= {"lead", "frequency"} if row["extractive"] else set()
            expected |= {(row["document_id"], system) for system in systems}
    for line in lines:
        row, system = evaluated.rows[line["document_id"]], line["system"]
        assert line["run_id"] == "r"
        if line["rouge1"] is None:
            assert system == "reference"
        else:
            scored.add((row["document_id"], system))
            name = columns.get(system)
            text = row[name] if name else lines_of(row, system)
            figures = [line[measure] for measure in rouge.MEASURES]
            reference = row["reference_summary"]
            assert figures == [direct(each, reference, text) for each in rouge.MEASURES]
        shown = row["extractive_quality"] if row["summary"] else None
        qualities = {
            **{each["system"]: each for each in row["other_quality"]},
            "lead": row["extractive_quality"],
            "abstractive": row["abstractive_quality"],
            "reference": row["reference_quality"],
            "summary": shown and {**shown, "flags": ["too_short"]},
        }
        quality = qualities.get(system) or {}
        assert all(line[name] == quality.get(name) for name in MEASURED), line
    assert scored == expected


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


def test_the_result_is_what_sql_makes_of_the_scores(evaluated):
    def by_sql(query):
        scores = f"'{evaluated.scores}/*.parquet'"
        found = duckdb.sql(query.format(scores=scores)).fetchall()
        return {system: pytest.approx(figures) for system, *figures in found}

    def means(systems, *names):
        return {
            each["method"]: [each["rows"], *(each[name]["mean"] for name in names)]
            for each in systems
        }

    result = evaluated.result
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
    named = ["lead", "frequency", "abstractive", "summary"]
    assert [each["method"] for each in result["systems"]] == named
    assert list(measured) == [*named, "reference"]
    rows = evaluated.rows.values()
    scored = [row for row in rows if (row["reference_summary"] or "").strip()]
    judged = [row["truncated"] for row in scored if row["truncated"] is not None]
    assert (result["rows"], result["rows_scored"]) == (90, len(scored))
    assert result["truncated_share"] == sum(judged) / len(judged)


def test_the_expected_rouge_of_rows_is_compared_with_that_of_their_summaries(evaluated):
    shown = [
        (evaluated.rows[line["document_id"]]["expected_rouge2"], line["rouge2"])
        for line in pq.read_table(evaluated.scores).to_pylist()
        if line["system"] == "summary" and line["words"] is not None
    ]
    pairs = sorted(pair for pair in shown if pair[0] is not None)
    assert 20 < len(pairs) < len(shown)
    ranks = [rankdata(values) for values in zip(*pairs, strict=True)]
    result = evaluated.result["expected"]
    assert result["rank_correlation"] == pytest.approx(np.corrcoef(*ranks)[0, 1])
    groups = np.array_split(np.array(pairs), 10)
    for found, group in zip(result["groups"], groups, strict=True):
        first, second = map(pytest.approx, group.mean(axis=0))
        assert found == {"rows": len(group), "expected": first, "rouge2": second}
    assert f"with ROUGE-2 {result['rank_correlation']:.2f} over" in evaluated.text


def test_facts_of_a_summary_are_compared_with_its_reference():
    texts = {"reference": "Rain fell on 3 May.", "summary": "Rain fell on 4 May."}
    texts |= {"abstractive": "Rain fell.", "lead": "Rain fell."}
    measured = {system: {} for system in texts}
    scoring.add_facts_of_reference(texts, measured)
    found = {system: each[HAS_FACTS] for system, each in measured.items() if each}
    assert found == {"summary": False, "abstractive": True}
    texts["summary"] = "Kälte fiel on 3 Juni."
    scoring.add_facts_of_reference(texts, measured, "de")
    assert measured["summary"][HAS_FACTS]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rain fell . it was cold .", "rain fell .\nit was cold ."),
        ("Rain fell. It was cold.\nNobody came.", None),
        ("Rain fell. It was cold.\n", "Rain fell.\nIt was cold."),
        ("Rain fell on the U.S. coast.", None),
        ("(CNN) -- Rain fell. It was cold.", "(CNN) -- Rain fell.\nIt was cold."),
        ("", None),
    ],
)
def test_only_texts_without_line_breaks_are_cut(text, expected):
    assert scoring.one_sentence_a_line(text) == (text if expected is None else expected)


def test_texts_are_cut_as_in_the_language_of_their_row():
    """The German text is a sentence, of which English would make two."""
    text = "Die Brücke wird am 5. Juni eröffnet."
    texts = {"reference_summary": text, "summary": text}
    row = dict.fromkeys(scoring.NEEDED_COLUMNS) | texts
    unsplit = []
    for language in ({"language": "de"}, {"language": None}, {}):
        rows = [row | language]
        _, scores = score_rows(rows, number=0, split_sentences=True)
        unsplit.append(scores.counts["unsplit"])
    assert unsplit == [0, 1, 0]  # rows without the column are detected


@pytest.mark.parametrize("english", [1, 0])
def test_references_in_other_alphabets_have_no_rouge(english, tmp_path, capsys):
    """English rows: they are told of, and other rows are scored without them."""
    russian = make_row(7, reference_summary="Дождь шёл весь день, сказал BBC.")
    rows = [*rows_of(range(1, 1 + english)), russian]
    rows = [{**row, "language": "en"} for row in rows]
    run = write_run(tmp_path / "run", [[rows]])
    result = evaluate(input=run, output=tmp_path / "out", resamples=10)
    assert f"1 of {1 + english} references are not scored" in capsys.readouterr().out
    assert {each["rows"] for each in result["systems"]} == ({1} if english else set())
    assert result["variant"].startswith("ROUGE of" if english else "no variant of ROU")
    table = pq.read_table(tmp_path / "out" / "scores").to_pylist()
    for row in table:
        assert (row["rouge1"] is None) == (row["document_id"] == "d7")
    assert {"lead", "abstractive"} <= {row["system"] for row in table}


def test_a_line_break_of_pegasus_is_no_word():
    lines = "Rain fell on the coast.<n>Nobody was hurt."
    row = dict.fromkeys(scoring.NEEDED_COLUMNS) | {"reference_summary": lines}
    row |= {"summary": lines.replace("<n>", "\n"), "other_references": [lines]}
    _, scores = score_rows([row], number=0, split_sentences=False)
    np.testing.assert_array_equal(scores.scores["summary"], [[1, 1, 1, 1]])


def test_unsplit_texts_are_warned_of_and_can_be_split(tmp_path, capsys):
    """Of six rows, three have several sentences on one line."""
    line = "Rain fell on the coast. Roads were closed. Nobody was hurt."
    other = "Nobody was hurt. Rain fell on the coast."
    rows = [
        *rows_of(range(1, 4), network=True),
        make_row(4, reference_summary=line),
        make_row(5, abstractive_summary="The roads were closed. Rain fell."),
        make_row(6, reference_summary=line, abstractive_summary=other),
    ]
    run = write_run(tmp_path / "run", [[rows]])
    plain = evaluate(input=run, resamples=10)
    warning = (
        "warning: ROUGE-Lsum of 3 of 6 rows is too low, as several sentences are on "
        "one line (reference 2, abstractive 2); give --split_sentences"
    )
    assert warning in capsys.readouterr().out.splitlines()
    split = evaluate(input=run, resamples=10, split_sentences=True)
    assert "warning" not in capsys.readouterr().out
    assert split["variant"] == plain["variant"] + ", unsplit texts cut into sentences"
    means = []
    texts = [(row["reference_summary"], row["abstractive_summary"]) for row in rows]
    for result, end in ((plain, ". "), (split, ".\n")):
        cut = [[text.replace(". ", end) for text in each] for each in texts]
        scores = [direct("rougeLsum", *each) for each in cut]
        means.append(result["systems"][-1]["rougeLsum"]["mean"])
        assert means[-1] == pytest.approx(np.mean(scores))
    assert means[0] < means[1]


def phrases(method, *names):
    """Phrases of a method, the best first, in the order of the alphabet."""
    places = sorted((name, 1.0 - place / 10) for place, name in enumerate(names))
    return [{"method": method, "phrase": name, "score": x} for name, x in places]


def test_keyphrases_against_the_reference_phrases_by_hand(tmp_path, capsys):
    # All three are among the first five.
    seven = phrases("classifier", "Rain", "coasts", "road", "z", "y", "x", "w")
    train = phrases("classifier", "train")
    first = seven + phrases("frequency", "z", "rain")
    pairs = [(first, ["coast", "rain", "road"]), (train, ["train"]), (train, [])]
    pairs += [(train, None), (None, ["train"])]
    rows = [
        make_row(number, keyphrases=written, reference_keyphrases=references)
        for number, (written, references) in enumerate(pairs, 1)
    ]
    run = write_run(tmp_path / "run", [[rows[:1]], [rows[1:]]])
    figures = {}
    for each in evaluate(input=run, resamples=10)["keyphrases"]:
        means = [each[name]["mean"] for name in ("f1_at_5", "f1_at_10")]
        figures[each["system"]] = [each["rows"], *means]
    assert figures == {
        "classifier": [2, (2 * 3 / (5 + 3) + 1) / 2, (2 * 3 / (7 + 3) + 1) / 2],
        "frequency": [1, pytest.approx(0.4), pytest.approx(0.4)],
    }
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    place = printed.index(["keyphrases", "rows", "F1@5", "F1@10"])
    assert printed[place + 1][:3] == ["classifier", "2", "87.5"]
