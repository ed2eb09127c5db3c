"""Tests of `precis evaluate --group_references`: scores of groups against rouge-score,
what is missing on either side, and what is refused.
"""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rouge_score import rouge_scorer
from support import read_table
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
    ("storm", ["Ferries stayed in port.\nStorm 5 hit the harbour.", " ", "Storm 0."]),
    ("vote", None),
    ("lost", "Nobody knows this group."),
    ("storm", " "),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    text = "Storm {0} hit the harbour. Ferries stayed in port {0} days."
    lines = [
        {"id": f"d{n}", "article": text.format(n), "topic": TOPICS[n % len(TOPICS)]}
        for n in range(15)
    ]
    flags = {"extractive": "lead", "min_source_words": 0, "sentences": 2}
    flags |= {"flat": True, "rows": "groups"}
    corpus = write_jsonl(folder / "news.jsonl", lines)
    summarize(corpus=corpus, output=folder / "run", group_by="topic", **flags)
    return folder / "run"


def write(path, references=REFERENCES):
    lines = [{"group_id": group, "highlights": text} for group, text in references]
    return write_jsonl(path, lines)


@pytest.mark.parametrize(("is_split", "of_parquet"), [(False, 0), (True, 3)])
def test_groups_have_scores_of_rouge_score(run, tmp_path, capsys, is_split, of_parquet):
    """The first references are in Parquet, the others in lines."""
    source = write(tmp_path / "a.jsonl", REFERENCES[of_parquet:])
    places = np.cumsum([0, *map(len, open(tmp_path / "a.jsonl", "rb"))])
    if of_parquet:
        first = [(group and str(group), text) for group, text in REFERENCES[:3]]
        columns = [pa.array(column) for column in zip(*first, strict=True)]
        table = pa.table(columns, ["group_id", "highlights"])
        pq.write_table(table, tmp_path / "b.parquet")
        source = f"parquet:{tmp_path}/b.parquet,{source}"
    words = ["evaluate", "--input", str(run), "--resamples", "5"]
    words += ["--group_references", source]
    assert exit_code(*words, *["--split_sentences"] * is_split) == 0
    output = run.parent / "run-evaluation" / "groups"
    assert sorted(os.listdir(output)) == ["rouge.json", "rouge.md", "scores"]
    result = json.loads((output / "rouge.json").read_bytes())
    summarized = pq.read_table(run / "groups").to_pylist()
    summaries = {row["group_id"]: row for row in summarized}
    given = {}
    for group, texts in REFERENCES:
        texts = texts if isinstance(texts, list) else [texts or ""]
        for text in filter(str.strip, texts):
            text = text.replace(". ", ".\n") if is_split else text
            given.setdefault(group and str(group), []).append(text)
    selector = rouge_scorer.RougeScorer(list(rouge.MEASURES), use_stemmer=True)
    rows = pq.read_table(output / "scores").to_pylist()
    named = {(row["group_id"], row["system"]) for row in rows}
    # The method of a group is no system: others would be judged by other groups.
    assert named == {(group, "summary") for group in ("storm", "2015", None)}
    for row in rows:
        summary = summaries[row["group_id"]]["summary"]
        expected = selector.score_multi(given[row["group_id"]], summary)
        found = [row[name] for name in rouge.MEASURES]
        assert found == [expected[name].fmeasure for name in rouge.MEASURES]
    assert {row["run_id"] for row in rows} == {summaries["storm"]["run_id"]}
    assert [each["rows"] for each in result["systems"]] == [3]
    lines = [places[number - of_parquet] for number in (4, 6)]
    without = sorted(f"{tmp_path}/a.jsonl, byte {line}" for line in lines)
    assert result["groups"] == {
        "groups_without_reference": {"count": 2, "first": ["match", "vote"]},
        "references_without_group": {"count": 1, "first": ["lost"]},
        "references_without_highlights": {"count": 2, "first": without},
    }
    printed = capsys.readouterr().out
    first = "with the first examples"
    assert (
        f"groups scored: 3\ngroups without reference, {first}: 2 ('match', 'vote')\n"
        f"references without group, {first}: 1 ('lost')\n"
        f"references without highlights, {first}: 2 ('{without[0]}', "
    ) in printed
    # Without rows of documents `precis report` makes no page.
    assert f"wrote {output}: rouge.json" in printed and "next:" not in printed


@pytest.mark.parametrize(("lines", "message"), read_table("refusals")["references"])
def test_references_that_cannot_be_read_are_named(run, tmp_path, lines, message):
    source = write_jsonl(tmp_path / "a.jsonl", lines.splitlines())
    error = DataError if ", byte " in message else UsageError
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
    with pytest.raises(UsageError, match="unknown system 'lead'; the run has summary"):
        references = write(tmp_path / "a.jsonl")
        evaluate(input=run, group_references=references, baseline="lead")
