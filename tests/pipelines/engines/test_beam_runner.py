"""Tests of Beam's own flags: the pinned runner, and what is refused before a job
elsewhere begins.
"""

from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DebugOptions
from apache_beam.runners.worker.statesampler import StateSampler
from support.command_line import precis

from precis.model.errors import UsageError
from precis.model.progress.stages import Stage
from precis.pipelines.engines import beam_runner
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.remote_checks import check_remote
from precis.pipelines.summarize.options import SUMMARIZE


def test_local_runner_is_pinned_and_starts_no_processes_of_its_own():
    options = pipeline_options([])
    assert type(beam.Pipeline(options=options).runner).__name__ == "FnApiRunner"
    for flag in ("num_workers=2", "running_mode=multi_processing"):
        with pytest.raises(UsageError, match="leave them out and set .* --workers"):
            pipeline_options([f"--direct_{flag}"])


@pytest.mark.parametrize(
    ("arguments", "name", "counts_here"),
    [
        ("--runner DataflowRunner", "DataflowRunner", False),
        ("--runner=dataflow", "DataflowRunner", False),
        ("--runner direct", "DirectRunner", True),
        ("--runner=FNAPIRUNNER", "FnApiRunner", True),
        ("--runner=other.DirectRunner", "other.DirectRunner", False),
        ("--runner=PrismRunner", "PrismRunner", True),
        ("--runner=PrismRunner --environment_type=PROCESS", "PrismRunner", False),
        ("--runner=FlinkRunner --environment_type=LOOPBACK", "FlinkRunner", True),
    ],
)
def test_a_runner_is_named_as_its_class_and_counts_here(arguments, name, counts_here):
    options = pipeline_options(arguments.split())
    assert beam_runner.runner_name(options) == name
    is_local = name in beam_runner.LOCAL_RUNNERS
    assert beam_runner.works_in_this_process(options) == is_local
    assert beam_runner.counts_progress(options) == counts_here


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_job_elsewhere_is_cancelled_when_it_is_interrupted(kind, monkeypatch):
    asked = []

    def wait():
        raise kind

    def cancel():
        asked.append("cancel")
        raise OSError("the engine is gone")

    pipeline = beam.Pipeline(options=pipeline_options([]))
    result = SimpleNamespace(wait_until_finish=wait, cancel=cancel)
    monkeypatch.setattr(pipeline, "run", lambda: result)
    with pytest.raises(kind):
        beam_runner.run_pipeline(pipeline, [Stage(name="x")])
    assert asked == ["cancel"]


DATAFLOW = "--runner=DataflowRunner"
PLACED = f"{DATAFLOW} --project=p-1 --region=us-central1 --temp_location=gs://b/tmp"
IMAGE = f"{PLACED} --sdk_container_image=registry/precis:1"
FLINK = "--runner=FlinkRunner --environment_type=PROCESS"
WORKER = f"{FLINK} --environment_options=process_command=w"
RUN = {"corpus": "jsonl:gs://bucket/news/*.jsonl", "output": "gs://bucket/run"}
REACH = ": the workers of Dataflow cannot .*; copy the files to gs://.* and give that"
LACK = "the workers .* lack precis and its packages; give --sdk_container_image"


@pytest.mark.parametrize(
    ("arguments", "flags", "message"),
    [
        (DATAFLOW, {}, "--runner DataflowRunner needs .*, --temp_location too"),
        (PLACED.replace("temp_", "x"), {}, "neither .*--xlocation; did you mean --sdk"),
        (f"{IMAGE} --temp_location=/x", {}, "--temp_location /x: .* a folder gs://"),
        (f"{IMAGE} --staging_location=s", {}, "--staging_location s: .* folder gs://"),
        (IMAGE, {"output": "runs/today"}, f"--output runs/today{REACH}"),
        (IMAGE, {"corpus": "jsonl:in/a.jsonl"}, f"--corpus in/a.jsonl{REACH}"),
        (IMAGE, {"bundle": "bundle"}, f"--bundle bundle{REACH}"),
        (IMAGE, {"bundle": "hf://a/b"}, "--bundle hf://a/b: .*; run `precis import hf"),
        (WORKER, {"checker": "hf://a/b"}, "--checker hf://a/b: .*; run `precis import"),
        (IMAGE, {"reuse": "gs://b/a, file:///b"}, f"--reuse file:///b{REACH}"),
        (PLACED, {}, LACK),
        (f"{PLACED} --setup_file=./setup.py", {}, LACK),
        (f"{IMAGE} --template_location=gs://b/j", {}, "--template_l.*; leave it out "),
        (WORKER, {"output": "o"}, "--output o: .*PROCESS .*; write .*/o, if it is on"),
        (FLINK, {"output": "/o"}, "Beam rejects .* process_command is required"),
    ],
)
def test_a_job_that_cannot_work_is_refused(arguments, flags, message):
    with pytest.raises(UsageError, match=f"^{message}") as refusal:
        check_remote(pipeline_options(arguments.split()), SUMMARIZE, {**RUN, **flags})
    assert "\n" not in str(refusal.value)


def test_a_refused_job_leaves_nothing_and_says_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = {"corpus": "sample:10", "output": "runs", "runner": "DataflowRunner"}
    needed = "--runner DataflowRunner needs --project, --region, --temp_location too"
    for command in ("summarize", "prepare"):
        assert precis(command, **flags) == 2
        assert capsys.readouterr().err == f"precis {command}: {needed}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ("", {"corpus": "jsonl:news/*.jsonl", "output": "runs/today"}),
        ("--runner=FlinkRunner", {"output": "runs/today"}),
        (WORKER, {"corpus": "sample:9", "output": "/shared/runs"}),
        (f"{PLACED} --setup_file=setup.py --requirements_file=packages", {}),
        # Workers have it in their package.
        (IMAGE, {"extractive_bundle": "builtin:news-en"}),
        # These are read where the command runs.
        (IMAGE, {"table": "delta://tables/news", "corpus": "sample:100"}),
    ],
)
def test_a_job_that_can_work_is_taken(arguments, flags):
    options = pipeline_options(arguments.split())
    check_remote(options, SUMMARIZE, {**RUN, **flags})
    # Beam would upload the list of this machine's packages, with their addresses.
    off = "disable_logging_submission_environment"
    assert options.view_as(DebugOptions).lookup_experiment(off)


def test_stages_of_a_command_are_sampled_often(tmp_path, monkeypatch):
    """Beam waits for the sampler of a stage, which by default wakes up every 0.2 s."""
    periods = set()
    start = StateSampler.start

    def noted(sampler):
        periods.add(sampler.sampling_period_ms)
        start(sampler)

    monkeypatch.setattr(StateSampler.__init__, "__defaults__", (200,))
    monkeypatch.setattr(StateSampler, "start", noted)
    assert precis("summarize", corpus="sample:2", output=tmp_path / "summaries") == 0
    assert periods == {10}
