"""Tests of `--estimate`: its arithmetic by hand, its flags, and a run of it."""

import dataclasses
from pathlib import Path

import pytest
from support.command_line import exit_code

from precis.model.errors import UsageError
from precis.pipelines.beam import local_processes
from precis.pipelines.beam.beam_runner import pipeline_options
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sampling import CorpusSample, sample_corpus
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import Task
from precis.pipelines.estimation import estimate as estimate_module
from precis.pipelines.estimation.estimate import (
    Estimate,
    JobFigures,
    SampledRun,
    estimate_job,
    fit,
    next_size,
    worker_count,
)
from precis.pipelines.estimation.estimate_report import report
from precis.pipelines.options.estimate import EstimateOptions, split_values
from precis.pipelines.terminal.last_lines import duration


def sampled_run(records: int, seconds: float, search_seconds: float = 0.0):
    counts = {"read": records, "written": records - 1, "failed": 1}
    figures = JobFigures(counts, 30.0 * records, 4.0 * records, 500 * records)
    return SampledRun(seconds, figures._replace(search_seconds=search_seconds))


# 2 s of each later run, 10 ms of a record, and 5 s of the first run alone.
RUNS = [sampled_run(100, 8.0), sampled_run(400, 6.0), sampled_run(1600, 18.0)]


def test_two_runs_tell_the_time_of_a_record_and_the_first_one_that_of_a_start():
    assert fit(RUNS) == pytest.approx((0.01, 2.0, 5.0))


def test_noise_makes_no_time_negative():
    runs = [sampled_run(100, 1.0), sampled_run(400, 6.0), sampled_run(1600, 5.0)]
    assert fit(runs) == (0.0, 5.0, 0.0)


def next_of(runs, records=1e6, workers=1, seconds_left=50.0):
    return next_size(runs, records, workers, seconds_left=seconds_left)


def test_samples_grow_until_they_tell_the_time_of_a_record():
    assert next_of([]) == 64
    # 15 s at the rate of the first run, and not more than a window of each worker.
    assert next_of([sampled_run(64, 12.0)]) == 80
    assert next_of([sampled_run(64, 12.0, search_seconds=2.0)]) == 480
    assert next_of([sampled_run(64, 2.0)], workers=2) == 960
    assert next_of(RUNS[:2]) == 1600
    assert next_of(RUNS) == 0
    close = [*RUNS[:2], sampled_run(1600, 10.0)]
    assert next_of(close) == 6400
    assert next_of(close, seconds_left=39.0) == 0
    # Two later runs are made whatever time they take.
    assert next_of(RUNS[:2], seconds_left=-1.0) == 600


def test_samples_are_at_most_half_of_a_corpus():
    assert next_of([], records=80) == 10
    assert next_of([sampled_run(10, 1.0)], records=80) == 20
    runs = [sampled_run(10, 1.0), sampled_run(20, 1.1)]
    assert next_of(runs, records=80) == 40
    assert next_of([*runs, sampled_run(40, 1.3)], records=80) == 0


def estimate(workers: int = 2) -> Estimate:
    sizes = (500, 300, 200)
    tasks = [Task(number, "jsonl", (), size_bytes=s) for number, s in enumerate(sizes)]
    return Estimate(
        corpus=CorpusSample(tasks, tasks, 16_000.0, 400, 4.0, 1.0, 0.0),
        run=RUNS[-1],
        seconds_per_record=0.01,
        fixed_seconds=2.0,
        first_seconds=5.0,
        start_seconds=3.0,
        workers=workers,
        took_seconds=41.0,
    )


def test_workers_divide_the_work_down_to_the_largest_task():
    two = estimate()
    # 11 s that no worker shortens, and 16,000 records of 10 ms with two workers.
    assert two.seconds(2) == pytest.approx(11 + 160)
    assert two.seconds(1) == pytest.approx(11 + 320)
    assert two.seconds(4) == two.seconds(100) == pytest.approx(11 + 320 / 2)


def test_more_workers_are_never_slower_in_a_corpus_of_one_task():
    corpus = estimate().corpus._replace(tasks=estimate().corpus.tasks[:1])
    one_task = dataclasses.replace(estimate(), corpus=corpus)
    assert one_task.seconds(1) == pytest.approx(11 + 320)
    assert one_task.seconds(2) == one_task.seconds(8) == pytest.approx(11 + 160)


def test_workers_share_the_reading_of_what_a_sample_left_out():
    corpus = estimate().corpus._replace(skipping_seconds=8.0)
    sampled = dataclasses.replace(estimate(), corpus=corpus)
    assert sampled.seconds(1) == pytest.approx(estimate().seconds(1) + 8)
    assert sampled.seconds(2) == pytest.approx(estimate().seconds(2) + 4)


def test_the_report_scales_a_sample_to_the_corpus():
    lines = list(report(estimate(), price_per_hour=3.6))
    assert lines[0] == "documents: about 16,000 in 3 tasks (400 counted)"
    counts = "written 15,990, failed 10"
    assert lines[1] == f"of a sample of 1,600, scaled: {counts}"
    assert "tokens: 480,000 read, 64,000 written" in lines
    assert "output: 8.0 MB" in lines
    (own,) = (line for line in lines if line.endswith("this command"))
    assert own.split()[:5] == ["2", "171.0", "2", "min", "51"]
    # 171 s of two workers, each 3.60 an hour.
    assert own.split()[6] == "0.34"


def test_a_report_says_where_a_sample_is_too_small_to_tell_the_rate():
    small = dataclasses.replace(estimate(), seconds_per_record=0.0)
    assert (
        "rate: the sample is too small to tell the time of a document; before the "
        "first and after the last document 11.0 s"
    ) in list(report(small, price_per_hour=0.0))


def test_a_run_without_network_and_price_has_no_tokens_and_no_cost():
    figures = RUNS[-1].figures._replace(source_tokens=0, written_tokens=0)
    plain = dataclasses.replace(estimate(), run=SampledRun(18.0, figures))
    text = "\n".join(report(plain, price_per_hour=0.0))
    assert "tokens" not in text and "cost" not in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.4, "12 s"),
        (200, "3 min 20 s"),
        (3900, "1 h 5 min"),
        (183_600, "2 d 3 h"),
    ],
)
def test_durations_have_two_units(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"price_per_hour": -1.0, "estimate": True}, "must not be negative, but is -1"),
        ({"price_per_hour": 1.0}, "--price_per_hour goes with --estimate alone"),
    ],
)
def test_flags_that_cannot_be_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        EstimateOptions(**values)


def test_the_flags_of_the_estimate_are_not_those_of_the_job():
    values = {"corpus": "sample:9", "estimate": True, "price_per_hour": 2.0}
    options, others = split_values(values)
    assert options == EstimateOptions(estimate=True, price_per_hour=2.0)
    assert others == {"corpus": "sample:9"}


def test_a_corpus_is_counted_by_the_records_that_the_job_takes():
    options = CorpusOptions(corpus="sample:2000", split="test")
    of_split = sum(1 for task in list_tasks(options) for _ in read_task(task, options))
    corpus = sample_corpus(options)
    assert corpus.records == pytest.approx(of_split)
    assert corpus.counted_records == 2000
    assert taken(corpus, options, records=of_split) == of_split


def test_a_sample_is_estimated_by_documents_that_it_left_out():
    options = CorpusOptions(corpus="sample:2000", split="test", sample=5)
    corpus = sample_corpus(options)
    assert corpus.records == 5
    assert taken(corpus, options, records=60) == pytest.approx(60, abs=20)
    assert corpus.skipping_seconds == corpus.listing_seconds


def taken(corpus: CorpusSample, options: CorpusOptions, records: int) -> int:
    tasks = corpus.sampled_tasks(records, 1)
    return sum(1 for task in tasks for _ in read_task(task, options))


def test_a_job_on_an_engine_is_not_estimated():
    flags = {"corpus": "sample:9", "output": "gs://bucket/run"}
    with pytest.raises(UsageError, match="samples on this machine; leave --runner"):
        estimate_job("summarize", flags, ["--runner=DataflowRunner"])


def test_records_that_are_tried_again_are_not_estimated():
    with pytest.raises(UsageError, match="--retry_failures reads a part of it"):
        estimate_job("summarize", {"corpus": "sample:9", "retry_failures": "run"}, [])


@pytest.mark.parametrize(
    ("command", "values", "size", "workers"),
    [
        ("summarize", {}, 10**8, 3),
        ("prepare", {}, 2 * 10**7, 1),  # which is faster
        ("prepare", {}, 10**9, 3),
        ("summarize", {}, 10**5, 1),  # a small job
        ("prepare", {"workers": 2}, 10**5, 2),
        ("prepare", {"workers": 7}, 10**8, 5),  # of five tasks
        ("summarize", {"bundle": "b"}, 10**5, 3),  # the searches
        ("summarize", {"bundle": "b", "search_processes": 2}, 10**8, 2),
    ],
)
def test_the_workers_are_those_of_the_job(monkeypatch, command, values, size, workers):
    for module in (estimate_module, local_processes):
        monkeypatch.setattr(module, "usable_cores", lambda: 3)
    tasks = [Task(number, "jsonl", (), size_bytes=size // 5) for number in range(5)]
    assert worker_count(command, values, pipeline_options([]), tasks) == workers


def test_samples_are_run_by_the_workers_of_the_job(monkeypatch):
    """A sample is as small as a job that starts no processes."""
    seen = []

    def run(tasks, flags, beam_args):
        seen.append((flags.get("workers"), len(tasks)))
        return sampled_run(10**6, 1.0).figures

    monkeypatch.setattr(estimate_module, "_run_summarize", run)
    monkeypatch.setattr(estimate_module, "_start_seconds", lambda _: 1.0)
    monkeypatch.setattr(local_processes, "usable_cores", lambda: 3)
    flags = {"corpus": "sample:20000", "output": "runs"}
    assert estimate_job("summarize", flags, []).workers == 3
    assert set(seen) == {(3, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prepare", "summarize"])
def test_an_estimate_counts_the_corpus_and_writes_nothing(command, tmp_path, capsys):
    flags = {"vocabulary_size": "400"} if command == "prepare" else {}
    output = tmp_path / "out"
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    given = ("--corpus", "sample:400", "--output", str(output), *arguments)
    assert exit_code(command, *given, "--estimate", "--price_per_hour", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("documents: about 400 in 1 tasks (")
    assert any(line.endswith("this command") for line in lines)
    assert not list(Path(tmp_path).iterdir())
