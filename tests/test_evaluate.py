"""Tests of the evaluation and of the flags for Beam."""

import datetime
import json
import random

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import DirectOptions, SetupOptions, StandardOptions
from rouge_score import rouge_scorer

from model.errors import UsageError
from pipelines import schema
from pipelines.evaluate import EvaluateOptions, RowGroup, combine, evaluate, extractive_summaries, parquet_files, score_row_group
from pipelines.runner import pipeline_options

WORDS = ["the", "mayor", "opened", "a", "new", "bridge", "on", "Monday", "after", "years", "of", "delay", "and", "cost"]
NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


def sentence(generator):
    return " ".join(generator.choices(WORDS, k=generator.randint(3, 8))) + "."


def item(method, rank, start, text):
    return {"method": method, "rank": rank, "score": 1.0 / rank, "start": start, "end": start + len(text), "text": text}


def make_row(number, *, network=True, reference=True):
    generator = random.Random(number)
    sentences = [sentence(generator) for _ in range(6)]
    starts = [sum(len(s) + 1 for s in sentences[:n]) for n in range(6)]
    count = 3 if number else 2
    extractive = [item("lead", n + 1, starts[n], sentences[n]) for n in range(count)]
    extractive += [item("frequency", 1, starts[5], sentences[5]), item("frequency", 2, starts[1], sentences[1])]
    abstract = sentence(generator)
    return {
        "document_id": f"d{number}",
        "split": "test",
        "content_sha256": "0" * 64,
        "source_tokens": 12 if network else None,
        "seen_tokens": 10 if network else None,
        "truncated": number % 4 == 0 if network else None,
        "article_words": 9,
        "extractive_summary": "\n".join(sentences[:count]),
        "extractive_method": "lead",
        "extractive": extractive,
        "abstractive_summary": abstract if network else None,
        "abstractive": [{"rank": 1, "score": -0.5, "text": abstract}] if network else None,
        "reference_summary": f"{sentence(generator)}\n{sentence(generator)}" if reference else [None, "", " \n"][number % 3],
        "model_id": "m" if network else None,
        "decode_id": "k" if network else None,
        "run_id": "r",
        "schema_version": 1,
        "created_at": NOW,
    }


def write_run(folder, files_of_row_groups):
    """A run with the given rows: a list of files, each a list of row groups, each a list of rows."""
    (folder / "summaries").mkdir(parents=True)
    total = len(files_of_row_groups)
    for number, groups in enumerate(files_of_row_groups):
        path = folder / "summaries" / f"part-{number:05d}-of-{total:05d}.parquet"
        schema.write_parquet(str(path), map(schema.summary_table, groups), schema.SUMMARY_SCHEMA)
    (folder / "manifest.json").write_text("{}")
    (folder / "_SUCCESS").write_text("")
    return str(folder)


def rows_of(numbers, **settings):
    return [make_row(number, **settings) for number in numbers]


def direct_mean(rows, summary_of, measure):
    scorer = rouge_scorer.RougeScorer([measure], use_stemmer=True)
    return np.mean([scorer.score(row["reference_summary"], summary_of(row))[measure].fmeasure for row in rows])


def lines_of(row, method):
    chosen = sorted((s["start"], s["text"]) for s in row["extractive"] if s["method"] == method)
    return "\n".join(text for _, text in chosen)


@pytest.fixture
def run(tmp_path):
    skipped = rows_of(range(20, 25), reference=False)
    return write_run(tmp_path / "run", [[rows_of(range(0, 5)), rows_of(range(5, 7))], [skipped + rows_of(range(7, 16))]])


def test_figures_agree_with_a_direct_use_of_rouge_score(run):
    result = evaluate(input=run, resamples=50)
    rows = rows_of(range(16))
    summaries = {
        "lead-3": lambda row: lines_of(row, "lead"),
        "frequency": lambda row: lines_of(row, "frequency"),
        "abstractive": lambda row: row["abstractive_summary"],
    }
    assert [system["system"] for system in result["systems"]] == list(summaries)
    for system in result["systems"]:
        assert system["rows"] == 16
        for measure in ("rouge1", "rouge2", "rougeLsum"):
            expected = direct_mean(rows, summaries[system["system"]], measure)
            assert system[measure]["mean"] == pytest.approx(expected, abs=1e-9)
            assert system[measure]["low"] < system[measure]["mean"] < system[measure]["high"]
    assert (result["rows"], result["rows_scored"], result["rows_without_reference"]) == (21, 16, 5)
    assert result["truncated_share"] == 4 / 16


def test_output_and_printed_table(run, tmp_path, capsys):
    result = evaluate(input=run, output=str(tmp_path / "out"), resamples=200, confidence=0.9)
    assert json.loads((tmp_path / "out" / "rouge.json").read_text()) == result
    printed = capsys.readouterr().out.splitlines()
    lead = result["systems"][0]["rouge1"]
    cell = f"{100 * lead['mean']:.1f} [{100 * lead['low']:.1f}, {100 * lead['high']:.1f}]"
    assert printed[0].split() == ["system", "rows", "ROUGE-1", "ROUGE-2", "ROUGE-Lsum"]
    assert printed[1].startswith("lead-3       16    " + cell)
    assert [line.index("[") for line in printed[1:4]] == [printed[1].index("[")] * 3
    notes = "\n".join(printed[4:])
    assert "rougeLsum split at line breaks; x100, 90 % intervals from 200 bootstrap samples" in notes
    assert "rows scored: 16; without a reference: 5" in notes
    assert "truncated: 25.0 % of the documents" in notes
    markdown = (tmp_path / "out" / "rouge.md").read_text()
    assert f"| lead-3 | 16 | {cell} |" in markdown and "rougeLsum split" in markdown


def test_result_goes_into_the_run_unless_told_otherwise(run, tmp_path):
    evaluate(input=run, resamples=1)
    assert (tmp_path / "run" / "evaluation" / "rouge.json").exists()


def test_confidence_widens_the_interval(run):
    narrow, wide = (evaluate(input=run, confidence=c)["systems"][0]["rouge1"] for c in (0.5, 0.99))
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_show_prints_documents_with_a_reference(tmp_path, capsys):
    run = write_run(tmp_path / "run", [[rows_of([20], reference=False), rows_of([3])], [rows_of([4, 5])]])
    evaluate(input=run, resamples=1, show=2)
    printed = capsys.readouterr().out
    assert printed.index("document d3\n") < printed.index("document d5\n") < printed.index("system")
    assert "document d20" not in printed and "document d4" not in printed
    row = make_row(3)
    for text in (row["reference_summary"], row["extractive_summary"], row["abstractive_summary"]):
        assert all(f"\n  {line}\n" in printed for line in text.split("\n"))


def test_run_without_a_network_has_no_abstractive_system(tmp_path, capsys):
    run = write_run(tmp_path / "run", [[rows_of(range(1, 4), network=False)]])
    result = evaluate(input=run, resamples=10, show=1)
    assert [system["system"] for system in result["systems"]] == ["lead-3", "frequency"]
    assert result["truncated_share"] is None
    printed = capsys.readouterr().out
    assert "truncated: no network ran" in printed and "abstractive\n  (none)" in printed


def test_rows_that_a_system_has_no_summary_of_do_not_count_for_it(tmp_path):
    run = write_run(tmp_path / "run", [[rows_of([1, 2]) + rows_of([3], network=False)]])
    rows = {system["system"]: system["rows"] for system in evaluate(input=run, resamples=10)["systems"]}
    assert rows == {"lead-3": 3, "frequency": 3, "abstractive": 2}


def test_result_does_not_depend_on_the_order_of_the_parts(run):
    paths = parquet_files(run)
    parts = [score_row_group(group) for group in (RowGroup(paths[0], 0, 2), RowGroup(paths[0], 1, 2), RowGroup(paths[1], 0, 2))]
    expected = combine(parts, resamples=100, confidence=0.95)
    assert combine(parts[::-1], resamples=100, confidence=0.95) == expected
    assert evaluate(input=run, resamples=100) == expected


def test_result_does_not_depend_on_the_number_of_workers(run):
    alone = evaluate(input=run, resamples=100)
    together = evaluate(input=run, resamples=100, beam_args=["--direct_num_workers=2", "--direct_running_mode=multi_threading"])
    assert together == alone


def test_sentences_are_joined_in_document_order_one_a_line():
    sentences = [item("lead", 1, 9, "Second\n one."), item("lead", 2, 0, "First."), item("other", 1, 5, "Else.")]
    assert extractive_summaries(sentences) == {"lead": "First.\nSecond one.", "other": "Else."}


def test_a_pattern_of_files(run, tmp_path):
    pattern = f"{run}/summaries/part-00000-*.parquet"
    result = evaluate(input=pattern, output=str(tmp_path / "out"), resamples=10)
    assert result["rows"] == 7
    with pytest.raises(UsageError, match="--output is needed where --input is a pattern"):
        evaluate(input=pattern)


def test_no_reference_at_all(run, tmp_path):
    evaluate(input=run, output=str(tmp_path / "out"), resamples=10)
    bare = write_run(tmp_path / "bare", [[rows_of(range(20, 23), reference=False)]])
    with pytest.raises(UsageError, match="no row of .*bare has a reference summary; run `precis summarize` on a corpus with highlights"):
        evaluate(input=bare, output=str(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == [], "the result of an earlier evaluation must not stay"


def test_a_run_without_rows(tmp_path):
    with pytest.raises(UsageError, match="no row of .* has a reference summary"):
        evaluate(input=write_run(tmp_path / "run", [[]]))


def test_inputs_that_are_no_finished_run(run, tmp_path):
    with pytest.raises(UsageError, match="nothing does not exist; give the --output of `precis summarize`"):
        evaluate(input=str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="is no run: it has no folder `summaries`"):
        evaluate(input=str(tmp_path))
    with pytest.raises(UsageError, match=r"no file matches .*no-\*.parquet"):
        evaluate(input=f"{run}/no-*.parquet", output=str(tmp_path / "out"))
    (tmp_path / "run" / "_SUCCESS").unlink()
    with pytest.raises(UsageError, match="has not finished: it has no _SUCCESS; run the same `precis summarize` again"):
        evaluate(input=run)


def test_files_that_are_no_summaries(tmp_path):
    pq.write_table(pa.table({"reference_summary": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_text("text")
    with pytest.raises(UsageError, match="a.parquet has no column 'extractive'"):
        evaluate(input=str(tmp_path / "a.parquet"), output=str(tmp_path / "out"))
    with pytest.raises(UsageError, match="b.parquet is no Parquet file"):
        evaluate(input=str(tmp_path / "b.parquet"), output=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input": ""}, "--input is empty"),
        ({"show": -1}, "--show must be 0 or more, not -1"),
        ({"resamples": 0}, "--resamples must be 1 or more, not 0"),
        ({"confidence": 1.0}, "--confidence must lie between 0 and 1, not 1.0"),
    ],
)
def test_wrong_options(flags, message):
    with pytest.raises(UsageError, match=message):
        EvaluateOptions(**({"input": "run"} | flags))


def test_local_runner_is_pinned_and_the_main_session_is_not_saved():
    options = pipeline_options(["--direct_num_workers", "2", "--save_main_session"])
    assert options.view_as(StandardOptions).runner == "FnApiRunner"
    assert options.view_as(SetupOptions).save_main_session is False
    assert options.view_as(DirectOptions).direct_num_workers == 2
    assert type(beam.Pipeline(options=options).runner).__name__ == "FnApiRunner"


@pytest.mark.parametrize("arguments", [["--runner", "DataflowRunner"], ["--runner=DataflowRunner"]])
def test_a_runner_that_is_named_is_kept(arguments):
    assert pipeline_options(arguments).view_as(StandardOptions).runner == "DataflowRunner"


def test_flags_of_a_job_server_are_left_to_it():
    options = pipeline_options(["--runner=FlinkRunner", "--checkpoint_every=4"])
    assert options.get_all_options(retain_unknown_options=True)["checkpoint_every"] == "4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--direct_num_worker", "2"], "'--direct_num_worker' is a flag neither of precis nor of Beam; did you mean --direct_num_workers"),
        (["--resample=7"], "'--resample' is a flag neither of precis nor of Beam; did you mean --resamples"),
        (["--xyzzyqq"], "'--xyzzyqq' is .* see --help"),
        (["--direct_num_workers=two"], "Beam refuses its flags: argument --direct_num_workers: invalid int value"),
        (["--runner=FlinkRuner"], "--runner FlinkRuner is unknown; did you mean FlinkRunner"),
        (["--runner=xyzzy"], "--runner xyzzy is unknown; known: DataflowRunner"),
    ],
)
def test_flags_that_nobody_knows_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        pipeline_options(arguments, own_flags=["resamples"])


def test_evaluate_refuses_unknown_flags_before_it_reads_anything():
    with pytest.raises(UsageError, match="unknown option 'inputs'; did you mean 'input'"):
        evaluate(inputs="run")
    with pytest.raises(UsageError, match="did you mean --confidence"):
        evaluate(input="run", beam_args=["--confidenc=0.9"])
