"""Tests of what `precis doctor` says of the engines of Beam."""

import pytest
from support.doctor_runs import request_of, serve_json, the_problem
from support.processes import closed_port

from precis.model.errors import UsageError
from precis.pipelines.doctor.engine import check_engine
from precis.pipelines.doctor.findings import checked

FLINK = ("--runner=FlinkRunner", "--flink_master")


def ask(*beam_args, **flags):
    request = request_of(
        "summarize", *beam_args, corpus="sample:20", output="/o", **flags
    )
    return check_engine(request)


def test_the_local_runner_is_there():
    (finding,) = ask()
    assert finding.level == "ok"
    assert finding.found.startswith("FnApiRunner of apache-beam ")


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
    overview = {"flink-version": "2.2.1", "slots-total": 4}
    with serve_json({"/overview": overview}) as address:
        with pytest.raises(UsageError, match="--workers counts processes of this"):
            list(ask(*FLINK, address, workers=3))


def test_flags_that_beam_refuses_are_refused():
    with pytest.raises(UsageError, match="--runner Flnk is unknown"):
        list(ask("--runner=Flnk"))
