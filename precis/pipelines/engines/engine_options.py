"""Checks what a Beam engine needs before a job begins, and sets flags that the command
line leaves out.

    --runner FlinkRunner   with --flink_master, a cluster, or --job_endpoint, its job
                           server; without either, Beam starts Flink itself
    --runner PrismRunner   the program `prism`
"""

import argparse
import json
import os
import secrets
import shutil
import sysconfig
import urllib.request
from typing import Any

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
)

from precis.model.errors import UsageError

# The program that an engine starts as a worker: `engines.engine_worker`.
WORKER_PROGRAM = "precis-worker"
_ANSWER_SECONDS = 10.0
# Beam's MAGIC_HOST_NAMES, whose module takes 0.2 s to import: it starts Flink itself.
_NO_CLUSTER = ("[local]", "[auto]")
_ENDED = ("CANCELED", "CANCELLING", "FAILED", "FINISHED", "SUSPENDED")


def engine_flags(runner: str, known: argparse.Namespace) -> list[str]:
    """The flags that an engine needs in addition to the command line.

    Args:
      runner: the class name of the runner.
      known: the values of Beam's flags.

    Raises:
      UsageError: the engine cannot be reached, or has no task manager.
    """
    endpoint = known.job_endpoint
    if endpoint and endpoint != "embed":
        _check_job_server(endpoint)
    if runner == "PrismRunner":
        # Without this program, Beam downloads it.
        program = None if endpoint or known.prism_location else shutil.which("prism")
        return [f"--prism_location={program}"] if program else []
    is_flink = runner == "FlinkRunner"
    has_cluster = is_flink and known.flink_master not in _NO_CLUSTER
    flags = _cluster_flags(known) if has_cluster else []
    is_portable = is_flink or runner == "PortableRunner"
    if is_portable and (has_cluster or endpoint):
        flags += _worker_flags(known)
    return flags


def _check_job_server(endpoint: str) -> None:
    """Refuses a job server that does not answer; Beam would wait for a minute."""
    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
        except grpc.FutureTimeoutError as error:
            raise UsageError(
                f"--job_endpoint {endpoint}: no Beam job server answers there; start "
                "a server, or correct HOST:PORT"
            ) from error


def _cluster_flags(known: argparse.Namespace) -> list[str]:
    """The flags that a cluster of Flink determines."""
    address = known.flink_master
    try:
        overview = _ask(address, "overview")
        slots, version = overview["slots-total"], overview["flink-version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--flink_master {address}: no Flink job manager answers there ({error}); "
            "start the cluster, or give the address of its REST service, such as "
            "http://HOST:8081"
        ) from error
    if not slots:
        raise UsageError(
            f"--flink_master {address}: the cluster has no slots, so a job would wait "
            "forever; start a task manager"
        )
    flags = []
    if not known.job_name:  # It is cancelled by name, and several jobs may run at once.
        flags.append(f"--job_name=precis-{secrets.token_hex(4)}")
    if known.parallelism < 1:
        flags.append(f"--parallelism={slots}")
    if not known.job_endpoint and not known.flink_job_server_jar:
        # Beam starts a job server, whose version must match the cluster.
        flags.append(f"--flink_version={'.'.join(version.split('.')[:2])}")
    return flags


def _worker_flags(known: argparse.Namespace) -> list[str]:
    """The flags of workers that run precis from the same path on every machine.

    Beam's default is the process that submits the job, or a container without precis.
    """
    if known.environment_type or known.environment_config or known.environment_options:
        return []
    command = os.path.join(sysconfig.get_path("scripts"), WORKER_PROGRAM)
    config = json.dumps({"command": command})
    return ["--environment_type=PROCESS", f"--environment_config={config}"]


def cancel_on_flink(options: PipelineOptions) -> None:
    """Cancels a job on a Flink cluster whose address is known.

    Beam's job server only stops waiting for the job, which continues.

    Raises:
      OSError: the job manager does not answer.
    """
    # Beam has forgotten its runner by now.
    address = options.view_as(FlinkRunnerOptions).flink_master
    if address in _NO_CLUSTER:
        return
    name = options.view_as(GoogleCloudOptions).job_name
    for job in _ask(address, "jobs/overview")["jobs"]:
        if job["name"] == name and job["state"] not in _ENDED:
            _ask(address, f"jobs/{job['jid']}", method="PATCH")


def _ask(address: str, page: str, *, method: str = "GET") -> Any:
    """Requests a page of the REST service of a job manager."""
    url = address if "://" in address else f"http://{address}"
    request = urllib.request.Request(f"{url.rstrip('/')}/{page}", method=method)
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)
