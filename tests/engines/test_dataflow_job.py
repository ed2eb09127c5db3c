"""Tests of the job that Dataflow would get, built offline against an emulated store,
and of its steps in a worker environment that holds what the job stages.

Nothing here has run on Google Cloud.
"""

import io
import os
import posixpath
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gcsfs
import pytest

pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs precis[dataflow]")

from apache_beam.portability.api import beam_runner_api_pb2
from support.saved_jobs import (
    BUCKET,
    ROOT,
    SavedJob,
    emulated_store,
    install,
    run_job,
    save_job,
)

from precis.pipelines.engines.tasks import _RunTask
from precis.pipelines.verification.digest import digest

pytestmark = pytest.mark.engines

IMAGE = "region-docker.pkg.dev/project-1/images/precis:1"
ACCELERATOR = "worker_accelerator=type:nvidia-tesla-t4;count:1;install-nvidia-driver"
SECRET = "a-secret-of-this-machine"


@pytest.fixture(scope="module")
def store() -> Iterator[gcsfs.GCSFileSystem]:
    with emulated_store() as opened:
        yield opened


@pytest.fixture(scope="module")
def remote_flags(store: gcsfs.GCSFileSystem, flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of the runs of this machine, with the files in the store."""
    pattern = flags["corpus"].partition(":")[2]
    for path in sorted(Path(pattern).parent.glob(Path(pattern).name)):
        store.put_file(str(path), f"{BUCKET}/corpus/{path.name}")
    bundle = Path(flags["bundle"])
    for path in bundle.rglob("*"):
        if path.is_file():
            name = path.relative_to(bundle).as_posix()
            store.put_file(str(path), f"{BUCKET}/bundle/{name}")
    corpus = f"jsonl:gs://{BUCKET}/corpus/{Path(pattern).name}"
    return {**flags, "corpus": corpus, "bundle": f"gs://{BUCKET}/bundle"}


@pytest.fixture(scope="module")
def saved(store: gcsfs.GCSFileSystem, remote_flags: dict[str, Any]) -> SavedJob:
    """A job with a network whose packages are staged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return save_job(
            store,
            "staged",
            **remote_flags,
            setup_file="./setup.py",
            num_workers=3,
            max_num_workers=20,
            worker_machine_type="n1-standard-4",
            disk_size_gb=50,
            number_of_worker_harness_threads=1,
            dataflow_service_options=ACCELERATOR,
            resource_hint="min_ram=12GB",
        )


@pytest.fixture(scope="module")
def without_network(remote_flags: dict[str, Any]) -> dict[str, Any]:
    """The flags of a job without a network."""
    of_network = ("bundle", "beam_width", "n_best", "long_documents")
    return {
        name: value for name, value in remote_flags.items() if name not in of_network
    }


@pytest.fixture(scope="module")
def extractive_job(
    store: gcsfs.GCSFileSystem, without_network: dict[str, Any]
) -> SavedJob:
    """A job without a network whose packages are staged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        flags = {**without_network, "setup_file": "setup.py"}
        return save_job(store, "extractive", **flags)


@pytest.fixture(scope="module")
def with_image(store: gcsfs.GCSFileSystem, without_network: dict[str, Any]) -> SavedJob:
    """A job whose workers run an image."""
    return save_job(store, "image", **without_network, sdk_container_image=IMAGE)


def steps(job: SavedJob) -> set[str]:
    """The names of the steps, without their folders."""
    transforms = job.pipeline.components.transforms.values()
    return {transform.unique_name.rpartition("/")[2] for transform in transforms}


def test_saving_a_job_leaves_the_output_alone(store, saved):
    assert not store.exists(f"{BUCKET}/staged/run")


def test_the_command_says_that_nothing_ran(store, without_network, capsys):
    save_job(store, "again", **without_network, sdk_container_image=IMAGE)
    output = capsys.readouterr().out.splitlines()
    assert output[-3:] == [
        f"nothing ran yet: the job that writes gs://{BUCKET}/again/run is saved",
        f"wrote gs://{BUCKET}/again/job",
        "next: gcloud dataflow jobs run summaries --project project-1 --region "
        f"us-central1 --gcs-location gs://{BUCKET}/again/job",
    ]


def test_the_steps(saved):
    assert {
        *("BeginJob", "ScanKeys", "JoinKeys", "Summarize", "PublishParts"),
        *("SpreadBuckets", "SpreadTasks", "SpreadParts", "WriteManifest", "FinishRun"),
    } <= steps(saved)


def test_the_options_reach_the_job(saved):
    pool = saved.pool
    assert pool["numWorkers"] == 3
    assert pool["autoscalingSettings"] == {"maxNumWorkers": 20}
    assert pool["machineType"] == "n1-standard-4"
    assert pool["diskSizeGb"] == 50
    assert pool["numThreadsPerWorker"] == 1
    assert saved.environment["serviceOptions"] == [ACCELERATOR]
    (environment,) = saved.pipeline.components.environments.values()
    assert environment.resource_hints == {
        "beam:resources:min_ram_bytes:v1": b"12000000000"
    }


@pytest.mark.parametrize("name", ["temp_location", "staging_location"])
def test_files_on_the_way_lie_where_the_flags_say(saved, name):
    folder = name.partition("_")[0].replace("temp", "tmp")
    assert saved.options[name].startswith(f"gs://{BUCKET}/staged/{folder}/summaries.")


def test_the_packages_are_staged(saved):
    assert set(saved.staged) == {"workflow.tar.gz", "requirements.txt"}
    staged = {
        package["name"]: package["location"] for package in saved.pool["packages"]
    }
    assert set(staged) == set(saved.staged)
    prefix = f"storage.googleapis.com/{BUCKET}/staged/staging/summaries."
    assert all(location.startswith(prefix) for location in staged.values())
    lines = saved.staged["requirements.txt"].decode().split()
    assert {line.partition("==")[0] for line in lines} >= {
        *("tensorflow", "tensorflow-text", "keras", "tokenizers"),
        *("pyarrow", "gcsfs"),
    }


def test_the_staged_package_holds_what_is_installed(saved):
    with tarfile.open(fileobj=io.BytesIO(saved.staged["workflow.tar.gz"])) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    modules = {
        path.relative_to(ROOT).as_posix()
        for folder in ("model", "pipelines", "precis")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert modules <= names
    assert not any(name.startswith("tests") for name in names)


def test_an_image_takes_the_place_of_packages(with_image):
    assert with_image.staged == {}
    assert with_image.pool["workerHarnessContainerImage"] == IMAGE
    (environment,) = with_image.pipeline.components.environments.values()
    payload = beam_runner_api_pb2.DockerPayload.FromString(environment.payload)
    assert payload.container_image == IMAGE
    assert "tensorflow" not in with_image.text


@pytest.mark.parametrize("name", ["saved", "with_image"])
def test_no_path_of_this_machine_and_no_secret_is_in_a_job(name, request):
    job = request.getfixturevalue(name)
    content = job.text.encode() + job.pipeline_bytes
    content += job.staged.get("requirements.txt", b"")
    local = (ROOT, Path.home(), Path(os.path.realpath(".")), "/tmp/pytest", "/tmp/tmp")
    for text in (SECRET, *map(str, local)):
        assert text.encode() not in content
    # Beam's own files, and the store's, are the only paths.
    absolute = re.findall(r'"(/[^"]*)"', job.text)
    assert absolute == []


@pytest.mark.parametrize(
    ("job_name", "folder", "run_name"),
    [
        ("extractive_job", "extractive", "extractive"),
        ("saved", "staged", "undisturbed"),
    ],
)
def test_workers_that_hold_what_is_staged_run_the_job(
    job_name, folder, run_name, request, store, tmp_path, monkeypatch
):
    """A worker of a job without a network has no TensorFlow."""
    job = request.getfixturevalue(job_name)
    expected = digest(run=str(request.getfixturevalue(run_name)))
    install(tmp_path, job)
    packages = {path.name for path in tmp_path.glob("worker/lib/*/site-packages/*")}
    assert ("tensorflow" in packages) == (job_name == "saved")
    assert {"precis", "gcsfs"} <= packages

    def fail(*_: Any) -> None:
        raise AssertionError("a task ran in the process that started the job")

    monkeypatch.setattr(_RunTask, "process", fail)
    run_job(job, tmp_path)
    store.invalidate_cache()
    output = f"{BUCKET}/{folder}/run"
    # The workers have finished the run.
    names = {posixpath.basename(path) for path in store.ls(output, detail=False)}
    assert {"_SUCCESS", "manifest.json", "data"} <= names and "_tasks" not in names
    assert digest(run=f"gs://{output}") == expected
    # A job that is started again stops, and leaves the result.
    with pytest.raises(RuntimeError, match="holds the finished result of this job"):
        run_job(job, tmp_path)
    store.invalidate_cache()
    assert digest(run=f"gs://{output}") == expected
