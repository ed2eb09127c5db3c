"""Tests of what is refused before a job elsewhere begins, and of what its workers
install.
"""

import importlib.metadata
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    PipelineOptions,
    SetupOptions,
)
from support.command_line import error_lines, precis

from precis.model.errors import UsageError
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.remote_checks import (
    check_remote,
    job_paths,
    stage_remote,
    worker_requirements,
)

DATAFLOW = ("--runner=DataflowRunner",)
PLACED = (
    *DATAFLOW,
    *("--project=p-1", "--region=us-central1", "--temp_location=gs://bucket/tmp"),
)
IMAGE = (*PLACED, "--sdk_container_image=registry/precis:1")
FLINK = ("--runner=FlinkRunner", "--environment_type=PROCESS")
RUN = {"corpus": "jsonl:gs://bucket/news/*.jsonl", "output": "gs://bucket/run"}


def check(arguments, command="summarize", **flags) -> PipelineOptions:
    options = pipeline_options(arguments)
    stage_remote(options, command, flags)
    return options


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
            "^the workers of Dataflow would not have precis; give --setup_file",
        ),
        (
            (*PLACED, "--setup_file=nowhere/setup.py"),
            RUN,
            "^nowhere/setup.py: there is no such file to stage$",
        ),
        (
            ("--template_location=gs://bucket/job",),
            {"output": "runs/today"},
            "^--template_location saves a job for Dataflow; give --runner Dataflow",
        ),
        (
            (*FLINK, "--environment_options=process_command=w"),
            {"output": "runs/today"},
            "^--output runs/today: workers of --environment_type PROCESS have another "
            "working directory; write /.*/runs/today, on a disk that all",
        ),
        (
            (*IMAGE, "--template_location=gs://bucket/job"),
            {**RUN, "table": "delta://tables/news"},
            "^--table delta://tables/news: nobody loads the result of a job that is",
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
        check(arguments, **flags)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("command", ["prepare", "evaluate"])
def test_only_summarize_is_saved_as_a_template(command):
    message = f"^--template_location: `precis {command}` is more than one job of Beam"
    with pytest.raises(UsageError, match=message):
        check((*IMAGE, "--template_location=gs://bucket/job"), command, **RUN)


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
        # These are read where the command runs.
        (IMAGE, {**RUN, "retry_failures": "runs/a", "table": "delta://tables/news"}),
        (IMAGE, {**RUN, "corpus": "sample:100"}),
    ],
)
def test_a_job_that_can_work_is_left_as_it_is(arguments, flags):
    options = check(arguments, **flags)
    assert options.view_as(SetupOptions).requirements_file is None


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


@pytest.mark.parametrize(
    ("command", "flags", "present", "absent"),
    [
        ("summarize", RUN, {"pyarrow", "gcsfs", "numpy"}, {"tensorflow"}),
        (
            "summarize",
            {**RUN, "bundle": "gs://bucket/bundle"},
            {"tensorflow", "tensorflow-text", "keras", "tokenizers", "safetensors"},
            {"apache-beam", "scikit-learn", "tensorboard", "pytest"},
        ),
        ("prepare", RUN, {"tensorflow-text"}, {"scikit-learn"}),
        (
            "prepare",
            {**RUN, "corpus": "tfds:cnn_dailymail"},
            {"tensorflow-datasets"},
            {"deltalake"},
        ),
        ("evaluate", {"input": "gs://bucket/run"}, {"pyarrow"}, {"tensorflow"}),
    ],
)
def test_workers_install_what_their_command_needs(
    tmp_path, command, flags, present, absent
):
    (tmp_path / "setup.py").touch()
    options = check((*PLACED, f"--setup_file={tmp_path}/setup.py"), command, **flags)
    setup = options.view_as(SetupOptions)
    assert setup.requirements_file == f"{tmp_path}/build/worker-requirements.txt"
    assert setup.requirements_cache == "skip"
    lines = Path(setup.requirements_file).read_text().splitlines()
    pinned = dict(line.split("==") for line in lines)
    assert present <= set(pinned) and not absent & set(pinned)
    assert pinned["pyarrow"] == importlib.metadata.version("pyarrow")
    # Beam would upload the list of this machine's packages, with their addresses.
    assert options.view_as(DebugOptions).lookup_experiment(
        "disable_logging_submission_environment"
    )


def test_a_setup_file_in_the_working_directory_gets_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").touch()
    setup = check((*PLACED, "--setup_file=setup.py"), **RUN).view_as(SetupOptions)
    assert setup.setup_file == "./setup.py"
    assert setup.requirements_file == "./build/worker-requirements.txt"


def test_a_check_alone_writes_nothing(tmp_path):
    (tmp_path / "setup.py").touch()
    options = pipeline_options((*PLACED, f"--setup_file={tmp_path}/setup.py"))
    check_remote(options, "summarize", RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["setup.py"]
    assert options.view_as(SetupOptions).requirements_file is None


def test_a_wheel_stands_for_the_sources(tmp_path):
    wheel = tmp_path / "precis-0.1.0-py3-none-any.whl"
    wheel.touch()
    options = check((*PLACED, f"--extra_package={wheel}"), **RUN)
    path = options.view_as(SetupOptions).requirements_file
    assert path == f"{tmp_path}/build/worker-requirements.txt"


def test_a_requirements_file_of_the_user_is_kept(tmp_path):
    (tmp_path / "setup.py").touch()
    flags = (f"--setup_file={tmp_path}/setup.py", "--requirements_file=mine.txt")
    setup = check((*PLACED, *flags), **RUN).view_as(SetupOptions)
    assert setup.requirements_file == "mine.txt"
    assert not (tmp_path / "build").exists()


def test_a_package_that_is_not_installed_here_keeps_its_range(monkeypatch):
    monkeypatch.setattr(
        importlib.metadata, "requires", lambda _: ['xyzzy>=2; extra == "s3"', "numpy"]
    )
    numpy = importlib.metadata.version("numpy")
    assert worker_requirements(["s3"]) == [f"numpy=={numpy}", "xyzzy>=2"]
    assert worker_requirements([]) == [f"numpy=={numpy}"]
