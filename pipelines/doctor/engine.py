"""The runner of Beam that a command names: whether it answers, and which version."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
)
from precis.pipelines.doctor.request import Request
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.engine_options import build_prism_advice, read_cluster
from precis.pipelines.engines.runner_names import LOCAL_RUNNERS, runner_name
from precis.pipelines.flags.flags import option_names, recorded_flags

_SECONDS = 10.0


def check_engine(request: Request) -> Check[None]:
    """Asks the engine of a command, with the job's own checks.

    Raises:
      UsageError: Beam refuses its flags, the engine does not answer or cannot run the
        job, or workers cannot reach what they need.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PortableOptions

    from precis.pipelines.engines.local_processes import count_workers
    from precis.pipelines.engines.remote_checks import check_remote

    own_flags = option_names([type(concern) for concern in request.concerns])
    options = pipeline_options(request.beam_args, own_flags=own_flags)
    flags = recorded_flags(request.concerns)
    check_remote(options, request.command, {**flags, "output": request.output})
    count_workers(int(request.value("workers", 0)), options, tasks=1, size=0)
    runner = runner_name(options)
    endpoint = options.view_as(PortableOptions).job_endpoint
    if runner == "FlinkRunner" and not endpoint:
        yield from _describe_flink(options)
    elif runner == "PrismRunner" and not endpoint:
        yield from _check_prism(options)
    elif runner in LOCAL_RUNNERS:
        yield from _check_local(runner, beam.__version__)
    elif endpoint:
        found = f"{runner}: a job server answers at {endpoint}"
        yield Diagnosis(OK, "engine", found)
    elif runner == "DataflowRunner":
        found = "Dataflow: flags, packages, credentials and buckets are there"
        yield Diagnosis(OK, "engine", found)
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
    if runner == "DirectRunner":
        yield Diagnosis(
            WARNING,
            "engine",
            "DirectRunner may first download another runner, and waits for it",
            "leave --runner out; the local runner needs nothing",
        )
    else:
        yield Diagnosis(OK, "engine", f"{runner} of apache-beam {version}, here")


def _describe_flink(options: Any) -> Iterator[Diagnosis]:
    """What `pipeline_options` found of a cluster, and the jar that starts jobs."""
    from apache_beam.options.pipeline_options import FlinkRunnerOptions
    from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES

    flink = options.view_as(FlinkRunnerOptions)
    master = flink.flink_master
    if master in MAGIC_HOST_NAMES:
        yield Diagnosis(
            NOTE,
            "engine",
            f"--flink_master {master}: Flink {flink.flink_version} is started here",
            "give --flink_master HOST:PORT to use a cluster",
        )
    else:
        cluster = read_cluster(master)
        yield Diagnosis(
            OK,
            "engine",
            f"Flink {cluster.version} at {master}: {cluster.task_managers} task "
            f"managers, {cluster.slots} slots",
        )
    if not flink.flink_job_server_jar and not flink.flink_submit_uber_jar:
        yield from _check_jar(flink.flink_version)


def _check_jar(flink_version: str) -> Iterator[Diagnosis]:
    """Looks for the program that starts jobs on Flink."""
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

    location = options.view_as(PrismRunnerOptions).prism_location
    if not location:
        yield Diagnosis(
            WARNING,
            "engine",
            "--prism_location is not given, so Beam downloads Prism from GitHub",
            build_prism_advice(),
        )
    elif "://" in location:
        yield Diagnosis(NOTE, "engine", f"Prism is loaded from {location}", "nothing")
    else:
        yield _run_prism(location)


def _run_prism(location: str) -> Diagnosis:
    """Runs the program for its help, as the file may be for another processor."""
    advice = build_prism_advice()
    try:
        done = subprocess.run(
            [location, "-h"], capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnosis(PROBLEM, "engine", f"{location} does not run: {error}", advice)
    if b"job_port" not in done.stdout + done.stderr:
        return Diagnosis(PROBLEM, "engine", f"{location} is not Prism", advice)
    return Diagnosis(OK, "engine", f"Prism at {location} runs")
