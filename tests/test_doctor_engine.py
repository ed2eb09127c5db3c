"""Tests of what `precis doctor` says of the engines of Beam; each answers, or does not,
over a real connection of this machine.
"""

import pytest
from support.doctor_runs import (
    request_of,
    serve_json,
    the_problem,
)
from support.processes import closed_port

from precis.model.errors import UsageError
from precis.pipelines.doctor.engine import check_engine
from precis.pipelines.doctor.findings import checked

OVERVIEW = {
    "flink-version": "2.2.1",
    "taskmanagers": 2,
    "slots-total": 4,
    "slots-available": 3,
}


PAGES = {"/overview": OVERVIEW, "/jobmanager/config": []}


@pytest.fixture(autouse=True)
def short_wait(monkeypatch):
    monkeypatch.setattr("precis.pipelines.engines.engine_options._ANSWER_SECONDS", 0.5)


FLINK = ("--runner=FlinkRunner", "--flink_master")


def ask(*beam_args):
    request = request_of("summarize", *beam_args, corpus="sample:20", output="/o")
    return check_engine(request)


def findings(*beam_args):
    return list(ask(*beam_args))


def test_the_local_runner_is_there():
    (finding,) = findings()
    assert finding.level == "ok"
    assert finding.found.startswith("FnApiRunner of apache-beam ")


@pytest.mark.parametrize("name", ["DirectRunner", "direct"])
def test_the_direct_runner_may_wait_for_a_download(name):
    (finding,) = findings("--runner", name)
    assert finding.level == "warning"
    assert finding.advice.startswith("leave --runner out")


def flink(address, *more):
    return findings(*FLINK, address, *more)


def test_a_flink_that_answers_is_described():
    with serve_json(PAGES) as address:
        finding = flink(address)[0]
    assert finding.level == "ok"
    assert finding.found == f"Flink 2.2.1 at {address}: 2 task managers, 4 slots"


def test_an_engine_that_does_not_answer_is_a_problem():
    with closed_port() as port:
        address = f"127.0.0.1:{port}"
        problem = the_problem(checked("engine", ask(*FLINK, address)))
    assert problem.found.startswith(
        f"--flink_master {address}: no Flink job manager answers there ("
    )
    assert "Connection refused" in problem.found
    assert problem.advice.startswith("start the cluster, or give the address")


def test_workers_are_counted_on_this_machine_alone():
    with serve_json(PAGES) as address:
        request = request_of(
            "summarize", *FLINK, address, corpus="sample:20", output="/o", workers=3
        )
        with pytest.raises(UsageError, match="--workers counts processes of this"):
            list(check_engine(request))


def test_a_flink_that_is_started_here_needs_its_job_server(monkeypatch, tmp_path):
    cache = tmp_path / "jars"
    monkeypatch.setattr(
        "apache_beam.utils.subprocess_server.JavaJarServer.JAR_CACHE", str(cache)
    )
    first, jar = flink("[auto]")
    assert "is started here" in first.found and first.level == "note"
    assert "Beam's cache has no beam-runners-flink-" in jar.found
    cache.mkdir()
    (cache / jar.found.split()[4].rstrip(";")).write_text("jar")
    assert flink("[auto]") == [first]


def test_a_job_service_that_answers_is_found():
    from apache_beam.runners.portability.local_job_service import LocalJobServicer

    service = LocalJobServicer()
    port = service.start_grpc_server(0)
    try:
        address = f"127.0.0.1:{port}"
        (finding,) = findings("--runner=PortableRunner", f"--job_endpoint={address}")
    finally:
        service.stop()
    expected = f"PortableRunner: a job server answers at {address}"
    assert finding[:3] == ("ok", "engine", expected)


def test_a_job_service_that_does_not_answer_is_a_problem():
    with closed_port() as port:
        address = f"127.0.0.1:{port}"
        argv = ("--runner=PortableRunner", f"--job_endpoint={address}")
        problem = the_problem(checked("engine", ask(*argv)))
    assert problem.found == (
        f"--job_endpoint {address}: no Beam job server answers there"
    )
    assert problem.advice == "start one, or correct HOST:PORT"


def test_a_portable_runner_needs_an_address():
    problem = the_problem(findings("--runner=portable"))
    assert problem.advice == "give --job_endpoint HOST:PORT"


def test_a_runner_that_nobody_can_ask_is_a_note():
    (finding,) = findings("--runner=SparkRunner")
    assert finding.level == "note"


def prism(path):
    return findings("--runner=PrismRunner", f"--prism_location={path}")


def test_prism_is_run_for_its_help(tmp_path):
    program = tmp_path / "prism"
    program.write_text("#!/bin/sh\necho '  -job_port int' >&2\nexit 2\n")
    program.chmod(0o755)
    (finding,) = prism(program)
    assert finding[:3] == ("ok", "engine", f"Prism at {program} runs")
    program.write_text("#!/bin/sh\necho hello\n")
    assert "is not Prism" in the_problem(prism(program)).found
    program.chmod(0o644)
    assert "does not run: " in the_problem(prism(program)).found
    with pytest.raises(UsageError, match="there is no such file; build it with `go"):
        prism(tmp_path / "none")


def test_prism_may_be_loaded_from_elsewhere():
    (finding,) = prism("https://example.org/prism.zip")
    assert finding.level == "note"
    (finding,) = findings("--runner=prism")
    assert finding.level == "warning" and "from GitHub" in finding.found


def test_flags_that_beam_refuses_are_refused():
    with pytest.raises(UsageError, match="--runner Flnk is unknown"):
        findings("--runner=Flnk")
