"""What a Beam engine needs to run a job: checked before the job begins, and set where
the command line does not say.

    --runner FlinkRunner   with --flink_master, a cluster, or --job_endpoint, the job
                           server of one; without either Beam starts a Flink itself
    --runner PrismRunner   the program `prism`
"""

import argparse
import json
import os
import secrets
import shutil
import sysconfig
import urllib.request
from collections.abc import Sequence
from typing import Any, NamedTuple

import apache_beam.version
import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES

from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.engines.runner_names import runner_name

# The program that an engine starts as a worker: `engines.engine_worker`.
WORKER_PROGRAM = "precis-worker"
_ANSWER_SECONDS = 10.0
# The runners that start workers elsewhere.
_ENGINES = (
    *("FlinkRunner", "PrismRunner", "PortableRunner"),
    *("SparkRunner", "DataflowRunner"),
)
# The names of the setting by which Flink starts a job again that lost a worker.
_RESTART_SETTINGS = ("restart-strategy.type", "restart-strategy")
_NO_RESTARTS = ("none", "off", "disable")
_ENDED = ("CANCELED", "CANCELLING", "FAILED", "FINISHED", "SUSPENDED")


class FlinkCluster(NamedTuple):
    """What the job manager of a Flink cluster says of it."""

    task_managers: int
    slots: int
    version: str
    restarts_jobs: bool


def engine_flags(runner: str, known: argparse.Namespace) -> list[str]:
    """The flags that an engine needs beside those of the command line.

    Args:
      runner: the name of its class.
      known: the values of Beam's flags.

    Raises:
      UsageError: the engine cannot be reached, has no task manager or cannot be used.
    """
    if runner == "PrismRunner":
        return _prism_flags(known)
    is_flink = runner == "FlinkRunner"
    has_cluster = is_flink and known.flink_master not in MAGIC_HOST_NAMES
    flags = _flink_flags(known) if has_cluster else []
    is_portable = is_flink or runner == "PortableRunner"
    if is_portable and (has_cluster or known.job_endpoint):
        flags += _worker_flags(known)
    if is_flink and known.job_endpoint and not has_cluster and known.parallelism < 1:
        _note(
            "--parallelism is not given, so Flink runs as many tasks at once as its "
            "parallelism.default says, often one; name the slots that the job may use"
        )
    return flags


def counts_progress(options: PipelineOptions) -> bool:
    """Whether workers run in this process or its children, where they count what is
    done of a job.
    """
    runner = runner_name(options)
    if runner not in _ENGINES:
        return True
    environment = options.view_as(PortableOptions).environment_type
    if not environment:
        return runner == "PrismRunner"
    return environment.upper() == "LOOPBACK"


def job_server_flags(known: argparse.Namespace) -> list[Any] | None:
    """The flags that a running job server takes; None where none is named.

    Raises:
      UsageError: the job server does not answer.
    """
    endpoint = known.job_endpoint
    if not endpoint or endpoint == "embed":
        return None
    request = beam_job_api_pb2.DescribePipelineOptionsRequest()
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        try:
            grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
            answer = service.DescribePipelineOptions(request, timeout=_ANSWER_SECONDS)
        except (grpc.RpcError, grpc.FutureTimeoutError) as error:
            raise UsageError(
                f"--job_endpoint {endpoint}: no Beam job server answers there; start "
                "one, or correct HOST:PORT"
            ) from error
    return list(answer.options)


def flags_unknown_to(options: Sequence[Any], unknown: Sequence[str]) -> list[str]:
    """The flags among `unknown` that a job server does not take either.

    Args:
      options: as `job_server_flags` gives them.
      unknown: flags that Beam does not know, and their values.
    """
    kinds = beam_job_api_pb2.PipelineOptionType
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in options:
        # As Beam reads them: a flag that is true or false takes no value.
        is_boolean = option.type == kinds.BOOLEAN
        action = "store_true" if is_boolean else "store"
        parser.add_argument(f"--{option.name}", action=action)
    return parser.parse_known_args(list(unknown))[1]


def read_cluster(address: str) -> FlinkCluster:
    """What the job manager of a Flink cluster says of it.

    Args:
      address: `HOST:PORT` of its REST service, or a URL.

    Raises:
      UsageError: it does not answer.
    """
    try:
        overview = _ask(address, "overview")
        settings = {
            entry["key"]: entry["value"] for entry in _ask(address, "jobmanager/config")
        }
        strategies = [settings.get(name, "none") for name in _RESTART_SETTINGS]
        return FlinkCluster(
            overview["taskmanagers"],
            overview["slots-total"],
            overview["flink-version"],
            restarts_jobs=not set(strategies) <= set(_NO_RESTARTS),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--flink_master {address}: no Flink job manager answers there ({error}); "
            "start the cluster, or give the address of its REST service, as in "
            "http://HOST:8081"
        ) from error


def cancel_on_flink(options: PipelineOptions) -> None:
    """Cancels a job on a Flink cluster whose address is known.

    Beam's job server does not: it ends its own wait for the job, which goes on.

    Raises:
      OSError: the job manager does not answer.
    """
    # Beam has forgotten the runner by now.
    address = options.view_as(FlinkRunnerOptions).flink_master
    if address in MAGIC_HOST_NAMES:
        return
    name = options.view_as(GoogleCloudOptions).job_name
    for job in _ask(address, "jobs/overview")["jobs"]:
        if job["name"] == name and job["state"] not in _ENDED:
            _ask(address, f"jobs/{job['jid']}", method="PATCH")


def _ask(address: str, page: str, *, method: str = "GET") -> Any:
    """A page of the REST service of a job manager."""
    url = address if "://" in address else f"http://{address}"
    request = urllib.request.Request(f"{url.rstrip('/')}/{page}", method=method)
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)


def _flink_flags(known: argparse.Namespace) -> list[str]:
    """The flags that a cluster determines."""
    address = known.flink_master
    cluster = read_cluster(address)
    if not cluster.slots:
        raise UsageError(
            f"--flink_master {address}: the cluster has {cluster.task_managers} task "
            "managers and no slot, so a job would wait for ever; start a task manager"
        )
    if not cluster.restarts_jobs:
        _note(
            "this Flink cluster ends a job that loses a worker; set "
            "restart-strategy.type: fixed-delay in its configuration, or run the same "
            "command again then"
        )
    flags = []
    if not known.job_name:  # By which it is cancelled; several may run at once.
        flags.append(f"--job_name=precis-{secrets.token_hex(4)}")
    if known.parallelism < 1:
        flags.append(f"--parallelism={cluster.slots}")
    if known.job_endpoint or known.flink_job_server_jar:
        return flags
    # Beam starts a job server, which must be of the version of the cluster.
    version = ".".join(cluster.version.split(".")[:2])
    supported = FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS
    if version not in supported:
        raise UsageError(
            f"--flink_master {address}: Beam does not run on Flink {cluster.version}; "
            f"it runs on {', '.join(supported)}"
        )
    if shutil.which("java") is None and not known.flink_submit_uber_jar:
        raise UsageError(
            "--runner FlinkRunner: `java` is not found, with which Beam starts its job "
            "server; install Java 17, or name a job server that runs with "
            "--job_endpoint"
        )
    return [*flags, f"--flink_version={version}"]


def build_prism_advice() -> str:
    """How to get the program of Prism, of the version of Beam that is installed."""
    return (
        "build it with `go install github.com/apache/beam/sdks/v2/go/cmd/prism@v"
        f"{apache_beam.version.__version__}` and give --prism_location"
    )


def _prism_flags(known: argparse.Namespace) -> list[str]:
    location = known.prism_location
    if location:
        if "://" not in location and not os.path.isfile(location):
            raise UsageError(
                f"--prism_location {location}: there is no such file; "
                f"{build_prism_advice()}"
            )
        return []
    # Without a program Beam downloads one.
    program = shutil.which("prism")
    return [f"--prism_location={program}"] if program and not known.job_endpoint else []


def _worker_flags(known: argparse.Namespace) -> list[str]:
    """Workers that run where precis is installed, at the same place on every machine.

    Beam's own default is the process that submits the job, or a container without
    precis.
    """
    if known.environment_type or known.environment_config or known.environment_options:
        return []
    command = os.path.join(sysconfig.get_path("scripts"), WORKER_PROGRAM)
    config = json.dumps({"command": command})
    return ["--environment_type=PROCESS", f"--environment_config={config}"]


def _note(text: str) -> None:
    say(f"precis: {text}")
