"""The runner of Beam that a command names: whether it answers, and which version."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from precis.pipelines.beam_runner import pipeline_options
from precis.pipelines.doctor_checks.findings import (
    NOTE,
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
)
from precis.pipelines.doctor_checks.request import Request
from precis.pipelines.flags import option_names

_SECONDS = 10.0


def check_engine(request: Request) -> Check[None]:
    """Asks the engine of a command.

    Raises:
      UsageError: Beam refuses its flags, or there is no such runner.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PortableOptions, StandardOptions

    own_flags = option_names([type(concern) for concern in request.concerns])
    options = pipeline_options(request.beam_args, own_flags=own_flags)
    runner = str(options.view_as(StandardOptions).runner)
    endpoint = options.view_as(PortableOptions).job_endpoint
    if endpoint and not request.is_local:
        yield _ask_job_service(runner, endpoint)
        return
    if runner == "FlinkRunner":
        yield from _check_flink(options)
    elif runner == "PrismRunner":
        yield from _check_prism(options)
    elif runner == "DataflowRunner":
        yield from _check_dataflow(options)
    elif request.is_local:
        yield from _check_local(runner, beam.__version__)
    elif runner == "PortableRunner":
        yield Diagnosis(
            PROBLEM,
            "engine",
            "--runner PortableRunner names no job service",
            "give --job_endpoint HOST:PORT",
        )
    else:
        yield Diagnosis(
            NOTE,
            "engine",
            f"{runner} is not one that the doctor can ask",
            "try the job with a small corpus first",
        )


def _check_local(runner: str, version: str) -> Iterator[Diagnosis]:
    if runner.lower() == "directrunner":
        yield Diagnosis(
            WARNING,
            "engine",
            "DirectRunner may first download another runner, and waits for it",
            "leave --runner out; the local runner needs nothing",
        )
    else:
        yield Diagnosis(OK, "engine", f"{runner} of apache-beam {version}, here")


def _ask_job_service(runner: str, endpoint: str) -> Diagnosis:
    """Connects to a job service and asks it a question that changes nothing."""
    import grpc
    from apache_beam.portability.api import beam_job_api_pb2 as api
    from apache_beam.portability.api import beam_job_api_pb2_grpc as service

    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_SECONDS)
            service.JobServiceStub(channel).DescribePipelineOptions(
                api.DescribePipelineOptionsRequest(), timeout=_SECONDS
            )
        except (grpc.FutureTimeoutError, grpc.RpcError) as error:
            code = getattr(error, "code", lambda: "no connection")()
            return Diagnosis(
                PROBLEM,
                "engine",
                f"no job service of Beam answers at {endpoint} ({code})",
                "start the job server, or correct --job_endpoint",
            )
    return Diagnosis(OK, "engine", f"{runner}: a job service answers at {endpoint}")


def _check_flink(options: Any) -> Iterator[Diagnosis]:
    """Asks the job manager for its version and slots, and looks for what starts jobs.

    The REST interface of Flink: https://nightlies.apache.org/flink/flink-docs-stable/
    """
    from apache_beam.options.pipeline_options import FlinkRunnerOptions

    flink = options.view_as(FlinkRunnerOptions)
    master = flink.flink_master
    if master not in ("[auto]", "[local]"):
        yield _ask_flink(master, flink.flink_version, flink.PUBLISHED_FLINK_VERSIONS)
    else:
        yield Diagnosis(
            NOTE,
            "engine",
            f"--flink_master {master}: Flink {flink.flink_version} is started here",
            "give --flink_master HOST:PORT to use a cluster",
        )
    if not flink.flink_submit_uber_jar:
        yield from _check_java(flink.flink_version)


def _ask_flink(master: str, version: str, supported: list[str]) -> Diagnosis:
    address = master if "://" in master else f"http://{master}"
    try:
        with urllib.request.urlopen(f"{address}/overview", timeout=_SECONDS) as answer:
            overview = json.load(answer)
        running = str(overview["flink-version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", error)
        return Diagnosis(
            PROBLEM,
            "engine",
            f"no job manager of Flink answers at {address} ({reason})",
            "start the cluster, or correct --flink_master HOST:PORT (the REST port, "
            "8081 by default)",
        )
    found = (
        f"Flink {running} at {address}: {overview.get('taskmanagers', 0)} task "
        f"managers, {overview.get('slots-available', 0)} of "
        f"{overview.get('slots-total', 0)} slots free"
    )
    minor = ".".join(running.split(".")[:2])
    if minor not in supported:
        advice = f"run one of the versions that Beam supports: {', '.join(supported)}"
        return Diagnosis(PROBLEM, "engine", found, advice)
    if minor != version:
        return Diagnosis(
            PROBLEM,
            "engine",
            f"{found}; --flink_version is {version}",
            f"give --flink_version {minor}",
        )
    if not overview.get("slots-total"):
        return Diagnosis(
            PROBLEM, "engine", found, "start a task manager; without one no task runs"
        )
    return Diagnosis(OK, "engine", found)


def _check_java(flink_version: str) -> Iterator[Diagnosis]:
    """Looks for what starts the job server: Java, and its jar."""
    if not shutil.which("java"):
        yield Diagnosis(
            PROBLEM,
            "engine",
            "there is no java, which the job server of Flink runs on",
            "install Java 17, or give --job_endpoint of a server that runs elsewhere",
        )
        return
    from apache_beam.utils.subprocess_server import JavaJarServer
    from apache_beam.version import __version__

    name = f"beam-runners-flink-{flink_version}-job-server-{__version__}.jar"
    if not os.path.exists(os.path.join(JavaJarServer.JAR_CACHE, name)):
        yield Diagnosis(
            NOTE,
            "engine",
            f"Beam's cache has no {name}; it is loaded from Maven Central",
            f"without a way there, put the jar into {JavaJarServer.JAR_CACHE}",
        )


def _check_prism(options: Any) -> Iterator[Diagnosis]:
    """Looks for the program of Prism."""
    from apache_beam.options.pipeline_options import PrismRunnerOptions
    from apache_beam.version import __version__

    location = options.view_as(PrismRunnerOptions).prism_location
    advice = (
        "build it with `go install github.com/apache/beam/sdks/v2/go/cmd/prism@v"
        f"{__version__}` and give --prism_location"
    )
    if not location:
        yield Diagnosis(
            WARNING,
            "engine",
            "--prism_location is not given, so Beam downloads Prism from GitHub",
            advice,
        )
    elif "://" in location:
        yield Diagnosis(NOTE, "engine", f"Prism is loaded from {location}", "nothing")
    elif not os.path.isfile(location):
        yield Diagnosis(PROBLEM, "engine", f"{location} is no program", advice)
    else:
        yield _run_prism(location, advice)


def _run_prism(location: str, advice: str) -> Diagnosis:
    """Runs the program for its help, as the file may be for another processor."""
    try:
        done = subprocess.run(
            [location, "-h"], capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnosis(PROBLEM, "engine", f"{location} does not run: {error}", advice)
    if b"job_port" not in done.stdout + done.stderr:
        return Diagnosis(PROBLEM, "engine", f"{location} is not Prism", advice)
    return Diagnosis(OK, "engine", f"Prism at {location} runs")


def _check_dataflow(options: Any) -> Iterator[Diagnosis]:
    """Looks for the flags that Dataflow needs.

    Beam's own validation would make a bucket where none is named.
    """
    from apache_beam.options.pipeline_options import (
        GoogleCloudOptions,
        SetupOptions,
        WorkerOptions,
    )

    cloud = options.view_as(GoogleCloudOptions)
    needed = ("project", "region", "temp_location")
    missing = [f"--{name}" for name in needed if not getattr(cloud, name)]
    image = options.view_as(WorkerOptions).sdk_container_image
    if not options.view_as(SetupOptions).setup_file and not image:
        missing.append("--setup_file ./setup.py or --sdk_container_image")
    if missing:
        listed = ", ".join(missing)
        yield Diagnosis(
            PROBLEM, "engine", f"Dataflow needs {listed}", "give those flags"
        )
        return
    yield Diagnosis(
        OK, "engine", f"Dataflow, project {cloud.project}, region {cloud.region}"
    )
