"""Tests of what `precis doctor` says of the engines of Beam; each answers, or does not,
over a real connection of this machine.
"""

import pytest
from support.doctor_runs import (
    closed_port,
    request_of,
    serve_json,
    the_problem,
)

from precis.model.errors import UsageError
from precis.pipelines.doctor_checks import engine
from precis.pipelines.doctor_checks.engine import check_engine

OVERVIEW = {
    "flink-version": "2.2.1",
    "taskmanagers": 2,
    "slots-total": 4,
    "slots-available": 3,
}


@pytest.fixture(autouse=True)
def short_wait(monkeypatch):
    monkeypatch.setattr(engine, "_SECONDS", 5.0)


def findings(*beam_args):
    request = request_of("summarize", *beam_args, corpus="sample:20", output="o")
    return list(check_engine(request))


def test_the_local_runner_is_there():
    (finding,) = findings()
    assert finding.level == "ok"
    assert finding.found.startswith("FnApiRunner of apache-beam ")


def test_the_direct_runner_may_wait_for_a_download():
    (finding,) = findings("--runner", "DirectRunner")
    assert finding.level == "warning"
    assert finding.advice.startswith("leave --runner out")


def flink(address, *more):
    return findings("--runner=FlinkRunner", "--flink_master", address, *more)


def test_a_flink_that_answers_is_described():
    with serve_json(OVERVIEW) as address:
        finding = flink(address)[0]
    assert finding.level == "ok"
    assert finding.found == (
        f"Flink 2.2.1 at http://{address}: 2 task managers, 3 of 4 slots free"
    )


def test_an_engine_that_does_not_answer_is_a_problem():
    address = f"127.0.0.1:{closed_port()}"
    problem = the_problem(flink(address))
    assert problem.found.startswith(
        f"no job manager of Flink answers at http://{address} ("
    )
    assert "Connection refused" in problem.found
    assert problem.advice.startswith("start the cluster, or correct --flink_master")


def test_a_server_that_is_not_flink_is_a_problem():
    with serve_json({"hello": "world"}) as address:
        assert "no job manager of Flink" in the_problem(flink(address)).found


@pytest.mark.parametrize(
    ("change", "beam_args", "advice"),
    [
        ({"flink-version": "1.8.0"}, (), "run one of the versions that Beam supports"),
        ({"flink-version": "1.20.3"}, (), "give --flink_version 1.20"),
        ({"slots-total": 0}, (), "start a task manager"),
    ],
)
def test_a_flink_that_cannot_run_the_job_is_a_problem(change, beam_args, advice):
    with serve_json({**OVERVIEW, **change}) as address:
        problem = the_problem(flink(address, *beam_args))
    assert problem.advice.startswith(advice)


def test_a_flink_of_the_version_that_is_given_is_right():
    with serve_json({**OVERVIEW, "flink-version": "1.20.3"}) as address:
        assert flink(address, "--flink_version=1.20")[0].level == "ok"


def test_a_flink_that_is_started_here_needs_java_and_its_job_server(
    monkeypatch, tmp_path
):
    cache = tmp_path / "jars"
    monkeypatch.setattr(
        "apache_beam.utils.subprocess_server.JavaJarServer.JAR_CACHE", str(cache)
    )
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    first, jar = flink("[auto]")
    assert "is started here" in first.found and first.level == "note"
    assert "Beam's cache has no beam-runners-flink-" in jar.found
    cache.mkdir()
    (cache / jar.found.split()[4].rstrip(";")).write_text("jar")
    assert flink("[auto]") == [first]
    monkeypatch.setattr("shutil.which", lambda name: None)
    problem = the_problem(flink("[auto]"))
    assert problem.found.startswith("there is no java")
    assert problem.advice.startswith("install Java 17")


def test_a_job_service_that_answers_is_found():
    from apache_beam.runners.portability.local_job_service import LocalJobServicer

    service = LocalJobServicer()
    port = service.start_grpc_server(0)
    try:
        address = f"127.0.0.1:{port}"
        (finding,) = findings("--runner=PortableRunner", f"--job_endpoint={address}")
    finally:
        service.stop()
    expected = f"PortableRunner: a job service answers at {address}"
    assert finding[:3] == ("ok", "engine", expected)


def test_a_job_service_that_does_not_answer_is_a_problem(monkeypatch):
    monkeypatch.setattr(engine, "_SECONDS", 0.5)
    address = f"127.0.0.1:{closed_port()}"
    for runner in ("PortableRunner", "FlinkRunner", "PrismRunner"):
        problem = the_problem(
            findings(f"--runner={runner}", f"--job_endpoint={address}")
        )
        assert f"no job service of Beam answers at {address}" in problem.found
        assert problem.advice == "start the job server, or correct --job_endpoint"


def test_a_portable_runner_needs_an_address():
    problem = the_problem(findings("--runner=PortableRunner"))
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
    problem = the_problem(prism(tmp_path / "none"))
    assert "is no program" in problem.found
    assert "go install github.com/apache/beam/sdks/v2/go/cmd/prism@v" in problem.advice


def test_prism_may_be_loaded_from_elsewhere():
    (finding,) = prism("https://example.org/prism.zip")
    assert finding.level == "note"
    (finding,) = findings("--runner=PrismRunner")
    assert finding.level == "warning" and "from GitHub" in finding.found


def test_what_dataflow_needs_is_asked_before_anything_is_sent():
    problem = the_problem(findings("--runner=DataflowRunner", "--project=p"))
    assert problem.found == (
        "Dataflow needs --region, --temp_location, --setup_file ./setup.py or "
        "--sdk_container_image"
    )
    whole = findings(
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=europe-west4",
        "--temp_location=gs://bucket/tmp",
        "--setup_file=./setup.py",
    )
    assert [each.level for each in whole] == ["ok"]
    assert whole[0].found == "Dataflow, project my-project, region europe-west4"


def test_flags_that_beam_refuses_are_refused():
    with pytest.raises(UsageError, match="--runner Flnk is unknown"):
        findings("--runner=Flnk")
