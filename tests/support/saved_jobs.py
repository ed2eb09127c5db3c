"""Jobs for Dataflow, saved in an emulated store, and environments of workers that hold
what such a job stages.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gcsfs
from apache_beam.internal.gcp.auth import _Credentials
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2, endpoints_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from pytest import MonkeyPatch

from support.command_line import precis
from support.gcs_emulator import gcs_emulator
from support.processes import free_port

ROOT = Path(__file__).parent.parent.parent
BUCKET = "news-bucket"
_START_SECONDS = 120
_INSTALL_SECONDS = 900


class SavedJob(NamedTuple):
    """A job that `--template_location` saved.

    Attributes:
      text: the job as JSON.
      pipeline: its steps.
      pipeline_bytes: the same as they were staged.
      staged: the other staged files: name -> content.
    """

    text: str
    pipeline: beam_runner_api_pb2.Pipeline
    pipeline_bytes: bytes
    staged: Mapping[str, bytes]

    @property
    def environment(self) -> dict[str, Any]:
        """The part of the job that describes its workers and options."""
        content: dict[str, Any] = json.loads(self.text)["environment"]
        return content

    @property
    def pool(self) -> dict[str, Any]:
        """Its workers."""
        (pool,) = self.environment["workerPools"]
        return dict(pool)

    @property
    def options(self) -> dict[str, Any]:
        """The options of Beam that reach the workers."""
        options: dict[str, Any] = self.environment["sdkPipelineOptions"]["options"]
        return options


@contextlib.contextmanager
def emulated_store() -> Iterator[gcsfs.GCSFileSystem]:
    """A store with the bucket `BUCKET`, for this process and those it starts."""
    with (
        gcs_emulator(buckets=[BUCKET]) as endpoint,
        MonkeyPatch.context() as patch,
    ):
        patch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        # Beam looks for credentials for 20 seconds, which the emulator does not need.
        patch.setattr(_Credentials, "_credentials_init", True)
        patch.chdir(ROOT)
        gcsfs.GCSFileSystem.clear_instance_cache()
        yield gcsfs.GCSFileSystem()
        gcsfs.GCSFileSystem.clear_instance_cache()


def save_job(store: gcsfs.GCSFileSystem, name: str, **flags: Any) -> SavedJob:
    """Saves a job of `precis summarize` that writes to `BUCKET/NAME/run`."""
    folder = f"{BUCKET}/{name}"
    code = precis(
        "summarize",
        output=f"gs://{folder}/run",
        runner="DataflowRunner",
        project="project-1",
        region="us-central1",
        job_name="summaries",
        temp_location=f"gs://{folder}/tmp",
        staging_location=f"gs://{folder}/staging",
        template_location=f"gs://{folder}/job",
        **flags,
    )
    assert code == 0
    store.invalidate_cache()
    staged = {
        path.rpartition("/")[2]: store.cat_file(path)
        for path in store.find(f"{folder}/staging")
    }
    content = staged.pop("pipeline.pb")
    return SavedJob(
        store.cat_file(f"{folder}/job").decode(),
        beam_runner_api_pb2.Pipeline.FromString(content),
        content,
        staged,
    )


def install(folder: Path, job: SavedJob) -> None:
    """Makes an environment as a worker does that has Beam: the staged requirements,
    and then the staged package.
    """
    package = folder / "workflow.tar.gz"
    requirements = folder / "requirements.txt"
    package.write_bytes(job.staged["workflow.tar.gz"])
    requirements.write_bytes(job.staged["requirements.txt"])
    python = folder / "worker" / "bin" / "python"
    _run(sys.executable, "-m", "venv", folder / "worker")
    uv = Path(sys.executable).with_name("uv")
    program = str(uv) if uv.exists() else shutil.which("uv")
    if program:
        pip: list[Any] = [program, "pip", "install", "--quiet", "--python", python]
    else:
        pip = [python, "-m", "pip", "install", "--quiet"]
    _run(*pip, "apache-beam==2.77.0", "--requirement", requirements)
    _run(*pip, package)


def _run(*command: Any) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=_INSTALL_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_job(job: SavedJob, folder: Path) -> None:
    """Runs the very steps of a job, each of them in workers of an environment that
    `install` made in the folder.
    """
    with _worker_pool(folder) as address:
        pipeline = beam_runner_api_pb2.Pipeline()
        pipeline.CopyFrom(job.pipeline)
        for environment in pipeline.components.environments.values():
            assert environment.urn == common_urns.environments.DOCKER.urn
            environment.urn = common_urns.environments.EXTERNAL.urn
            environment.payload = beam_runner_api_pb2.ExternalPayload(
                endpoint=endpoints_pb2.ApiServiceDescriptor(url=address)
            ).SerializeToString()
            del environment.dependencies[:]
        options = PipelineOptions(["--environment_type=EXTERNAL"])
        result = FnApiRunner().run_via_runner_api(pipeline, options)
        assert result.wait_until_finish() == "DONE"


@contextlib.contextmanager
def _worker_pool(folder: Path) -> Iterator[str]:
    """Starts worker processes on demand; in another working directory."""
    programs = folder / "worker" / "bin"
    port = free_port()
    environment = {
        "HOME": str(folder),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "STORAGE_EMULATOR_HOST": os.environ["STORAGE_EMULATOR_HOST"],
    }
    module = "apache_beam.runners.worker.worker_pool_main"
    with open(folder / "worker.log", "wb") as log:
        process = subprocess.Popen(
            [programs / "python", "-m", module, f"--service_port={port}"],
            env=environment,
            cwd=folder,
            stderr=log,
        )
        try:
            _wait_for(port)
            yield f"localhost:{port}"
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("localhost", port), timeout=5).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the worker pool does not answer"
            time.sleep(0.2)
