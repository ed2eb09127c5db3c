"""Tests of what is refused before a job elsewhere begins, and of what its workers
install.
"""

import http.server
import importlib.metadata
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import fsspec
import gcsfs
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
)
from precis.pipelines.engines.worker_packages import worker_requirements

CLIENT = "apache_beam.runners.dataflow.internal.apiclient"
DATAFLOW = ("--runner=DataflowRunner",)
PLACED = (
    *DATAFLOW,
    *("--project=p-1", "--region=us-central1", "--temp_location=gs://bucket/tmp"),
)
IMAGE = (*PLACED, "--sdk_container_image=registry/precis:1")
RUN = {"corpus": "jsonl:gs://bucket/news/*.jsonl", "output": "gs://bucket/run"}


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nobody has logged in, with the packages of Dataflow."""
    monkeypatch.setitem(sys.modules, CLIENT, types.ModuleType(CLIENT))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """A store that answers every request with one status, 403 if it is not changed."""
    answer = {"status": 403}

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"error": {"message": "no\\nright", "code": 403}}'
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    gcsfs.GCSFileSystem.clear_instance_cache()
    yield answer
    server.shutdown()
    server.server_close()
    gcsfs.GCSFileSystem.clear_instance_cache()


@pytest.fixture
def open_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that are not asked."""
    monkeypatch.setattr(
        "precis.pipelines.engines.remote_checks._check_stores", lambda _: None
    )


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
            "^--output runs/today: the workers of Dataflow cannot write to this",
        ),
        (
            IMAGE,
            {**RUN, "corpus": "jsonl:news/*.jsonl"},
            r"^--corpus news/\*.jsonl: the workers of Dataflow cannot reach this",
        ),
        (
            IMAGE,
            {**RUN, "bundle": Path("bundle")},
            "^--bundle bundle: the workers of Dataflow cannot reach this machine; copy",
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
            "^--setup_file nowhere/setup.py is no file setup.py; give --setup_file ./",
        ),
        (
            ("--template_location=gs://bucket/job",),
            {"output": "runs/today"},
            "^--template_location saves a job for Dataflow; give --runner Dataflow",
        ),
        (
            ("--runner=FlinkRunner", "--environment_type=PROCESS"),
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
            (),
            {"output": "abfs://container/run"},
            "^--output abfs://container/run: the package that reads abfs:// is not",
        ),
        (
            (),
            {"output": "xyz://container/run"},
            "^--output xyz://container/run: xyz:// is unknown; name a path on gs://",
        ),
        (
            (),
            {"bundle": "gs://bucket/bundle"},
            "^--bundle gs://bucket/bundle: there are no credentials for gs://; run "
            "`gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENT",
        ),
    ],
)
def test_a_job_that_cannot_work_is_refused(arguments, flags, message):
    with pytest.raises(UsageError, match=message) as refusal:
        check(arguments, **flags)
    assert "\n" not in str(refusal.value)


def test_the_packages_of_dataflow_are_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, CLIENT, None)
    message = "^--runner DataflowRunner needs packages .* 'precis\\[dataflow\\]'$"
    with pytest.raises(UsageError, match=message):
        check(IMAGE, **RUN)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_the_extra_of_a_store_is_named(scheme, monkeypatch):
    def fail(protocol):
        raise ImportError(f"Install {protocol}fs")

    monkeypatch.setattr(fsspec, "get_filesystem_class", fail)
    extra = {"s3": "s3", "gs": "gcs"}[scheme]
    message = (
        f"^--corpus {scheme}://bucket/news: the package that reads {scheme}:// is not "
        rf"installed; pip install 'precis\[{extra}\]'$"
    )
    with pytest.raises(UsageError, match=message):
        check(IMAGE, corpus=f"jsonl:{scheme}://bucket/news", output="gs://bucket/run")


@pytest.mark.parametrize("command", ["prepare", "evaluate"])
def test_only_summarize_is_saved_as_a_template(command):
    message = f"^--template_location: `precis {command}` is more than one job of Beam"
    with pytest.raises(UsageError, match=message):
        check((*IMAGE, "--template_location=gs://bucket/job"), command, **RUN)


def test_a_file_of_credentials_that_is_missing_is_named(monkeypatch, tmp_path):
    path = str(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
    message = f"^--output gs://bucket/run: GOOGLE_APPLICATION_CREDENTIALS {path}: .*not"
    with pytest.raises(UsageError, match=message):
        check((), output="gs://bucket/run")


def test_s3_needs_credentials(monkeypatch, tmp_path):
    pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    message = "^--output s3://bucket/run: there are no credentials for s3://; run `aws"
    with pytest.raises(UsageError, match=message):
        check((), output="s3://bucket/run")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "gs://bucket cannot be read: .*no right.; name credentials that may"),
        (404, "there is no bucket gs://bucket; make it, or check the name$"),
    ],
)
def test_a_bucket_that_cannot_be_read_is_refused(store, status, message):
    store["status"] = status
    with pytest.raises(
        UsageError, match=r"^--corpus gs://bucket/news/\*.jsonl: " + message
    ) as refusal:
        check((), **RUN)
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
            ("--runner=FlinkRunner", "--environment_type=PROCESS"),
            {"output": "/shared/runs"},
        ),
        (IMAGE, RUN),
        # These are read where the command runs.
        (IMAGE, {**RUN, "retry_failures": "runs/a", "table": "delta://tables/news"}),
        (IMAGE, {**RUN, "corpus": "sample:100"}),
    ],
)
def test_a_job_that_can_work_is_left_as_it_is(open_stores, arguments, flags):
    options = check(arguments, **flags)
    assert options.view_as(SetupOptions).requirements_file is None


def test_the_paths_of_a_job():
    flags = {
        "corpus": "parquet:gs://b/*.parquet",
        "reuse": "runs/a, runs/b",
        "bundle": "",
        "split": "test",
    }
    assert [str(path) for path in job_paths(flags)] == [
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
    open_stores, tmp_path, command, flags, present, absent
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


def test_a_setup_file_in_the_working_directory_gets_a_folder(
    open_stores, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.py").touch()
    setup = check((*PLACED, "--setup_file=setup.py"), **RUN).view_as(SetupOptions)
    assert setup.setup_file == "./setup.py"
    assert setup.requirements_file == "./build/worker-requirements.txt"


def test_a_check_alone_writes_nothing(open_stores, tmp_path):
    (tmp_path / "setup.py").touch()
    options = pipeline_options((*PLACED, f"--setup_file={tmp_path}/setup.py"))
    check_remote(options, "summarize", RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["setup.py"]
    assert options.view_as(SetupOptions).requirements_file is None


def test_a_wheel_stands_for_the_sources(open_stores, tmp_path):
    wheel = tmp_path / "precis-0.1.0-py3-none-any.whl"
    options = check((*PLACED, f"--extra_package={wheel}"), **RUN)
    path = options.view_as(SetupOptions).requirements_file
    assert path == f"{tmp_path}/worker-requirements.txt"


def test_a_requirements_file_of_the_user_is_kept(open_stores, tmp_path):
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
