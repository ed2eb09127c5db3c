"""`precis-worker`: a worker of a Beam engine that starts its workers as processes.

    --environment_type PROCESS --environment_config '{"command": ".../precis-worker"}'

Flink and Prism start it with the address of the service that describes a worker, as
they start `boot` in Beam's containers. Unlike `boot` it fetches no packages: it runs in
the environment that it is installed in. It ends with the connection to its engine, also
in the middle of a task, because the engine runs that task again elsewhere.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
)
from google.protobuf import json_format, text_format

_CONNECTION_SECONDS = 60.0


def main(argv: Sequence[str] | None = None) -> None:
    """Runs a worker until its engine ends it; does not return."""
    parser = argparse.ArgumentParser(prog="precis-worker", description=__doc__)
    parser.add_argument("--id", required=True, help="the worker's name")
    parser.add_argument("--provision_endpoint", required=True, help="HOST:PORT")
    flags, _ = parser.parse_known_args(argv)
    worker = flags.id.strip("'")  # Prism puts the name in quotes.
    info = _provision_info(flags.provision_endpoint, worker)
    os.environ.update(worker_environment(worker, info))
    # Beam reads the variables during this import.
    from apache_beam.runners.worker import sdk_worker_main

    code = 1
    try:
        sdk_worker_main.main([])
        code = 0
    finally:
        # Threads that still run a task must not keep the process alive.
        sys.stderr.flush()
        os._exit(code)


def worker_environment(
    worker: str, info: beam_provision_api_pb2.ProvisionInfo
) -> dict[str, str]:
    """The environment variables from which Beam's worker knows its engine.

    Args:
      worker: the name of the worker.
      info: the engine's description of the worker.
    """
    options = json_format.MessageToDict(info.pipeline_options)
    variables = {
        "WORKER_ID": worker,
        "PIPELINE_OPTIONS": json.dumps(options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    for service in ("control", "logging", "status"):
        endpoint = getattr(info, f"{service}_endpoint")
        if endpoint.url:
            text = text_format.MessageToString(endpoint, as_one_line=True)
            variables[f"{service.upper()}_API_SERVICE_DESCRIPTOR"] = text
    return variables


def _provision_info(endpoint: str, worker: str) -> beam_provision_api_pb2.ProvisionInfo:
    """Asks the engine for its description of a worker."""
    with grpc.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        response = service.GetProvisionInfo(
            beam_provision_api_pb2.GetProvisionInfoRequest(),
            metadata=[("worker_id", worker)],
            timeout=_CONNECTION_SECONDS,
            wait_for_ready=True,
        )
    return response.info
