"""Tests of what an engine needs: refused where it cannot run a job, and set where the
command line does not say. Small servers stand for a job manager and a job server.
"""

import http.server
import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES
from support.processes import closed_port

from precis.model.errors import UsageError
from precis.pipelines.engines import engine_options
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.engine_worker import worker_environment


@pytest.fixture
def overview():
    """What the job manager says; a test may change it."""
    return {"taskmanagers": 2, "slots-total": 6, "flink-version": "1.19.0"}


@pytest.fixture
def master(overview):
    """The address of a job manager."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/overview" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(overview).encode())

        def log_message(self, *_): ...

    with http.server.HTTPServer(("localhost", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def job_server():
    """The address of a job server, of which nothing is asked."""
    server = grpc.server(ThreadPoolExecutor(2))
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


def flink_options(*flags):
    return pipeline_options(["--runner", "FlinkRunner", *flags])


def test_a_flink_cluster_decides_what_the_command_line_does_not_say(master, job_server):
    options = flink_options("--flink_master", master, "--job_endpoint", job_server)
    assert options.view_as(FlinkRunnerOptions).parallelism == 6
    portable = options.view_as(PortableOptions)
    assert portable.environment_type == "PROCESS"
    worker = Path(sys.executable).with_name("precis-worker")
    assert json.loads(portable.environment_config) == {"command": str(worker)}
    name = options.view_as(GoogleCloudOptions).job_name
    assert re.fullmatch("precis-[0-9a-f]{8}", name)


def test_what_the_command_line_says_of_flink_is_kept(master, job_server):
    options = flink_options(
        *("--flink_master", master, "--job_endpoint", job_server),
        *("--parallelism=2", "--checkpoint_every=4"),
        *("--environment_type", "EXTERNAL", "--environment_config", "localhost:5000"),
    )
    assert options.view_as(FlinkRunnerOptions).parallelism == 2
    # A flag that Beam does not know is left to the job server.
    unknown = options.get_all_options(retain_unknown_options=True)
    assert unknown["checkpoint_every"] == "4"
    portable = options.view_as(PortableOptions)
    assert portable.environment_type == "EXTERNAL"
    assert portable.environment_config == "localhost:5000"
    # Without a job server Beam starts its own, of the version of the cluster.
    options = flink_options("--flink_master", master.removeprefix("http://"))
    assert options.view_as(FlinkRunnerOptions).flink_version == "1.19"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"slots-total": 0}, "the cluster has no slots, .* forever; start a task mana"),
        ({"flink-version": "1.17.2"}, "Beam rejects .* invalid choice: '1.17' .* '1.1"),
    ],
)
def test_a_cluster_that_cannot_run_the_job_is_refused(master, overview, said, message):
    overview |= said
    with pytest.raises(UsageError, match=message):
        flink_options("--flink_master", master)


def test_an_engine_that_does_not_answer_is_refused(monkeypatch):
    monkeypatch.setattr(engine_options, "_ANSWER_SECONDS", 0.2)
    with closed_port() as port:
        nobody = f"localhost:{port}"
        with pytest.raises(UsageError, match="no Beam job server answers there; start"):
            flink_options("--job_endpoint", nobody)
        with pytest.raises(UsageError, match="no Flink job manager answers there .* s"):
            flink_options("--flink_master", nobody)


def test_a_worker_knows_its_engine():
    info = beam_provision_api_pb2.ProvisionInfo(runner_capabilities=["a", "b"])
    info.pipeline_options.update({"beam:option:job_name:v1": "x"})
    info.control_endpoint.url = "localhost:1"
    info.logging_endpoint.url = "localhost:2"
    assert worker_environment("7-1", info) == {
        "WORKER_ID": "7-1",
        "PIPELINE_OPTIONS": '{"beam:option:job_name:v1": "x"}',
        "RUNNER_CAPABILITIES": "a b",
        "CONTROL_API_SERVICE_DESCRIPTOR": 'url: "localhost:1"',
        "LOGGING_API_SERVICE_DESCRIPTOR": 'url: "localhost:2"',
    }


def test_addresses_without_a_cluster_are_those_of_beam():
    assert list(engine_options._NO_CLUSTER) == MAGIC_HOST_NAMES


def test_a_job_on_this_machine_imports_no_clients_of_services(tmp_path):
    """They stay importable, for whoever needs them later in the process."""
    for name in ("pandas", "IPython"):  # Perhaps they are not installed.
        (tmp_path / f"{name}.py").touch()
    code = (
        "import sys; from precis.pipelines.run import job_progress; "
        "from precis.pipelines.command_line.cli import main; "
        "assert not main('summarize --corpus sample:2 --output o --quiet'.split()); "
        "names = (*job_progress.BEAM_CLIENTS, 'IPython'); "
        "print([name for name in names if name in sys.modules]); "
        "import apache_beam.io.gcp.bigquery, google.cloud.storage, pandas, IPython"
    )
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path)
    assert said.splitlines()[-1] == b"[]"
