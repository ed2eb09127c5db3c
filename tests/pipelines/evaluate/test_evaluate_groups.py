"""Tests of `precis evaluate --group_references`: scores of groups against rouge-score,
what is missing on either side, and what is refused.
"""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rouge_score import rouge_scorer
from support.command_line import exit_code, write_jsonl

from precis.model import rouge
from precis.model.errors import DataError, UsageError
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.summarize.summarize import summarize

TOPICS = ("storm", "vote", None, "match", "2015")
REFERENCES = [
    ("storm", "The storm closed three roads.\nNobody was hurt."),
    (2015, "It rained in 2015. The harbour was closed."),
    (None, "Ferries stayed in port 2 days."),
    ("storm", "Ferries stayed in port.\nStorm 5 hit the harbour."),
    ("vote", None),
    ("lost", "Nobody knows this group."),
    ("storm", " "),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    lines = [
        {
            "id": f"d{n}",
            "article": f"Storm {n} hit the harbour. Ferries stayed in port {n} days.",
            "topic": TOPICS[n % len(TOPICS)],
        }
        for n in range(15)
    ]
    flags = {"extractive": "lead", "min_source_words": 0, "sentences": 2}
    corpus = write_jsonl(folder / "news.jsonl", lines)
    summarize(corpus=corpus, output=folder / "run", group_by="topic", **flags)
    return folder / "run"


def write(path, references=REFERENCES):
    lines = [{"group_id": group, "highlights": text} for group, text in references]
    return write_jsonl(path, lines)


@pytest.mark.parametrize("is_split", [False, True])
def test_each_group_has_the_scores_of_rouge_score(run, tmp_path, capsys, is_split):
    corpus = write(tmp_path / "a.jsonl")
    flags = {"group_references": corpus, "split_sentences": is_split}
    result = evaluate(input=run, resamples=5, **flags)
    output = f"{run}-evaluation/groups"
    assert sorted(os.listdir(output)) == ["rouge.json", "rouge.md", "scores"]
    summaries = {
        row["group_id"]: row for row in pq.read_table(run / "groups").to_pylist()
    }
    given = {}
    for group, text in REFERENCES:
        if (text or "").strip():
            text = text.replace(". ", ".\n") if is_split else text
            given.setdefault(group and str(group), []).append(text)
    scorer = rouge_scorer.RougeScorer(list(rouge.MEASURES), use_stemmer=True)
    rows = pq.read_table(f"{output}/scores").to_pylist()
    named = {(row["group_id"], row["system"]) for row in rows}
    groups = ("storm", "2015", None)
    systems = ("centrality", "summary")
    assert named == {(group, name) for group in groups for name in systems}
    for row in rows:
        summary = summaries[row["group_id"]]["summary"]
        expected = scorer.score_multi(given[row["group_id"]], summary)
        found = [row[name] for name in rouge.MEASURES]
        assert found == [expected[name].fmeasure for name in rouge.MEASURES]
    assert {row["run_id"] for row in rows} == {summaries["storm"]["run_id"]}
    assert [each["rows"] for each in result["systems"]] == [3, 3]
    assert result["groups"] == {
        "without_reference": {"count": 2, "first": ["match", "vote"]},
        "without_row": {"count": 1, "first": ["lost"]},
    }
    assert (
        "groups scored: 3\n"
        "groups without a reference, and the first of them: 2 ('match', 'vote')\n"
        "references without a group, and the first of them: 1 ('lost')\n"
    ) in capsys.readouterr().out


def test_references_of_several_files_and_formats(run, tmp_path):
    """Parquet by its name, and as a part of a list of corpora."""
    flags = {"input": run, "resamples": 5}
    whole = evaluate(group_references=write(tmp_path / "a.jsonl"), **flags)
    rows = [
        {"group_id": str(group) if group else None, "highlights": text}
        for group, text in REFERENCES
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pylist(rows[:3]), tmp_path / "b.parquet")
    write(tmp_path / "c.jsonl", REFERENCES[3:])
    for source in (
        f"{tmp_path}/a.parquet",
        f"parquet:{tmp_path}/b.parquet,jsonl:{tmp_path}/c.jsonl",
    ):
        other = evaluate(group_references=source, output=tmp_path / "out", **flags)
        assert other["systems"] == whole["systems"]
        assert other["groups"] == whole["groups"]


@pytest.mark.slow
def test_the_command_scores_groups_of_a_flat_run_alone(run, tmp_path, capsys):
    references = write(tmp_path / "a.jsonl")
    flags = {"extractive": "lead", "min_source_words": 0, "flat": True}
    flags |= {"group_by": "topic", "rows": "groups", "sentences": 2}
    corpus = f"jsonl:{run.parent}/news.jsonl"
    summarize(corpus=corpus, output=tmp_path / "run", **flags)
    words = ("evaluate", "--input", str(tmp_path / "run"), "--resamples", "5")
    assert exit_code(*words, "--group_references", references) == 0
    output = tmp_path / "run-evaluation" / "groups"
    printed = capsys.readouterr().out
    # Without rows of documents `precis report` makes no page.
    assert f"wrote {output}: rouge.json" in printed and "next:" not in printed
    whole = evaluate(input=run, group_references=references, resamples=5)
    assert (
        json.loads((output / "rouge.json").read_bytes())["systems"]
        == (whole["systems"])
    )


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (
            [{"group_id": "a", "text": "b"}],
            UsageError,
            "--group_references: .* has no field 'highlights', it has 'group_id', "
            "'text'.*; a reference has the fields group_id and highlights$",
        ),
        (
            [{"group_id": "vote", "highlights": ["a", "b"]}],
            DataError,
            "a.jsonl, byte 0: 'highlights' holds a value of type list; mend it or le",
        ),
        (
            [{"group_id": "x", "highlights": "b"}],
            UsageError,
            r"no group of .*run has a reference: its groups begin with \[None, '2015', "
            r".*\], those of --group_references .* with \['x'\]; write the same group",
        ),
    ],
)
def test_references_that_cannot_be_read_are_refused(
    run, tmp_path, lines, error, message
):
    source = write_jsonl(tmp_path / "a.jsonl", lines)
    with pytest.raises(error, match=message):
        evaluate(input=run, group_references=source, output=tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_a_run_without_groups_and_a_path_without_a_format_are_refused(run, tmp_path):
    flags = {"corpus": "sample:3", "output": tmp_path / "run", "extractive": "lead"}
    summarize(**flags)
    message = "run has no rows of groups; run `precis summarize` with --group_by again"
    with pytest.raises(UsageError, match=message):
        evaluate(input=tmp_path / "run", group_references="a.jsonl")
    with pytest.raises(UsageError, match="--group_references: unknown corpus 'a.bin'"):
        evaluate(input=run, group_references="a.bin")
    with pytest.raises(UsageError, match="no system 'lead'; there are centrality, su"):
        references = write(tmp_path / "a.jsonl")
        evaluate(input=run, group_references=references, baseline="lead")
