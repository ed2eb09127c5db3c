"""Tests of what is refused before a job elsewhere begins."""

from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import DebugOptions
from support.command_line import error_lines, precis

from precis.model.errors import UsageError
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.remote_checks import check_remote, job_paths

DATAFLOW = ("--runner=DataflowRunner",)
PLACED = (
    *DATAFLOW,
    *("--project=p-1", "--region=us-central1", "--temp_location=gs://bucket/tmp"),
)
IMAGE = (*PLACED, "--sdk_container_image=registry/precis:1")
FLINK = ("--runner=FlinkRunner", "--environment_type=PROCESS")
RUN = {"corpus": "jsonl:gs://bucket/news/*.jsonl", "output": "gs://bucket/run"}


@pytest.mark.parametrize(
    ("arguments", "flags", "message"),
    [
        (
            DATAFLOW,
            RUN,
            "^--runner DataflowRunner needs --project, --region, --temp_location too$",
        ),
        (PLACED[:-1], RUN, "^--runner DataflowRunner needs --temp_location too$"),
        (
            (*IMAGE[:-2], "--temp_location=/tmp/x", IMAGE[-1]),
            RUN,
            "^--temp_location /tmp/x: Dataflow needs a folder gs://BUCKET/...$",
        ),
        (
            (*IMAGE, "--staging_location=s"),
            RUN,
            "^--staging_location s: Dataflow needs a folder gs://BUCKET/",
        ),
        (
            IMAGE,
            {**RUN, "output": "runs/today"},
            "^--output runs/today: the workers of Dataflow cannot reach this mac",
        ),
        (
            IMAGE,
            {**RUN, "corpus": "jsonl:news/*.jsonl"},
            r"^--corpus news/\*.jsonl: the workers of Dataflow cannot reach this",
        ),
        (
            IMAGE,
            {**RUN, "bundle": Path("bundle")},
            "^--bundle bundle: the workers of Dataflow cannot reach this machine; give",
        ),
        (
            IMAGE,
            {**RUN, "reuse": ["gs://bucket/a", "file:///runs/b"]},
            "^--reuse file:///runs/b: the workers of Dataflow cannot reach",
        ),
        (
            PLACED,
            RUN,
            "^the workers of Dataflow would not have precis and its packages",
        ),
        (
            (*PLACED, "--setup_file=./setup.py"),
            RUN,
            "^the workers of Dataflow would not have precis and its packages",
        ),
        (
            (*IMAGE, "--template_location=gs://bucket/job"),
            RUN,
            "^--template_location: precis does not save jobs; start the command when",
        ),
        (
            (*FLINK, "--environment_options=process_command=w"),
            {"output": "runs/today"},
            "^--output runs/today: workers of --environment_type PROCESS have another "
            "working directory; write /.*/runs/today, on a disk that all",
        ),
        (
            FLINK,
            {"output": "/shared/runs"},
            "^Beam refuses its flags: Option process_command is required for",
        ),
    ],
)
def test_a_job_that_cannot_work_is_refused(arguments, flags, message):
    with pytest.raises(UsageError, match=message) as refusal:
        check_remote(pipeline_options(arguments), flags)
    assert "\n" not in str(refusal.value)


def test_a_refused_job_leaves_nothing_and_says_one_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = {"corpus": "sample:10", "output": "runs", "runner": "DataflowRunner"}
    assert precis("summarize", **flags) == 2
    assert error_lines(capsys.readouterr().err, "summarize") == [
        "precis summarize: --runner DataflowRunner needs --project, --region, "
        "--temp_location too"
    ]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ((), {"corpus": "jsonl:news/*.jsonl", "output": "runs/today"}),
        (("--runner=FlinkRunner",), {"output": "runs/today"}),
        (
            (*FLINK, "--environment_options=process_command=w"),
            {"output": "/shared/runs"},
        ),
        (IMAGE, RUN),
        ((*PLACED, "--setup_file=setup.py", "--requirements_file=packages"), RUN),
        # These are read where the command runs.
        (IMAGE, {**RUN, "table": "delta://tables/news"}),
        (IMAGE, {**RUN, "corpus": "sample:100"}),
    ],
)
def test_a_job_that_can_work_is_taken(arguments, flags):
    options = pipeline_options(arguments)
    check_remote(options, flags)
    # Beam would upload the list of this machine's packages, with their addresses.
    assert options.view_as(DebugOptions).lookup_experiment(
        "disable_logging_submission_environment"
    )


def test_the_paths_of_a_job():
    flags = {
        "corpus": "parquet:gs://b/*.parquet",
        "reuse": "runs/a, runs/b",
        "bundle": "",
        "split": "test",
    }
    assert [named for named, _ in job_paths(flags)] == [
        "--corpus gs://b/*.parquet",
        "--reuse runs/a",
        "--reuse runs/b",
    ]
