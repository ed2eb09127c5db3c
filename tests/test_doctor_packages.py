"""Tests of what `precis doctor` says of Python and packages; the faults are real: a
hidden module, metadata of another version.
"""

import pytest
from support.doctor_runs import (
    hide_module,
    install_metadata,
    problems,
    request_of,
    the_problem,
)

import precis
from precis.pipelines.doctor.packages import check_packages, needed_extras

SUMMARIZE = {"corpus": "sample:20", "output": "o"}


def levels(findings):
    return {finding.level for finding in findings}


@pytest.mark.parametrize(
    ("command", "beam_args", "flags", "extras"),
    [
        ("summarize", (), SUMMARIZE, ["beam"]),
        ("summarize", (), {**SUMMARIZE, "bundle": "b"}, ["beam", "inference"]),
        ("summarize", (), {**SUMMARIZE, "keyphrase_bundle": "b"}, ["beam"]),
        (
            "summarize",
            ("--runner", "apache_beam.runners.DataflowRunner"),
            {**SUMMARIZE, "output": "gs://b/o", "table": "delta://t"},
            ["beam", "dataflow", "delta", "gcs"],
        ),
        (
            "prepare",
            (),
            {**SUMMARIZE, "corpus": "tfds:x", "output": "s3://b/o"},
            ["beam", "inference", "s3", "tfds"],
        ),
        ("export", (), {"bundle": "b", "output": "o"}, ["inference"]),
        ("import", (), {"checkpoint": "c", "output": "o"}, ["inference"]),
        ("train", (), {"records": "r", "output": "b"}, ["network"]),
        (
            "attention",
            (),
            {"bundle": "b", "text": "t", "output": "o"},
            ["inference", "plot"],
        ),
        ("loaders", (), {"run": "r", "for_": "duckdb"}, []),
        ("load", (), {"run": "r", "table": "iceberg+sqlite://w/n.t"}, ["iceberg"]),
    ],
)
def test_a_command_needs_the_extras_of_what_it_does(command, beam_args, flags, extras):
    assert needed_extras(request_of(command, *beam_args, **flags)) == extras


def test_an_installation_without_faults_has_no_problem():
    findings = list(check_packages(request_of("summarize", **SUMMARIZE)))
    assert levels(findings) == {"ok"}
    assert [finding.subject for finding in findings] == ["python", "packages"]


def test_a_missing_extra_is_a_problem_for_the_command_that_needs_it(monkeypatch):
    hide_module(monkeypatch, "matplotlib")
    flags = {"bundle": "b", "text": "t", "output": "o"}
    problem = the_problem(check_packages(request_of("attention", **flags)))
    assert problem.found == "matplotlib of extra plot cannot be imported"
    assert problem.advice == "pip install 'precis[plot]'"
    assert not problems(check_packages(request_of("summarize", **SUMMARIZE)))
    notes = [each for each in check_packages(request_of("")) if each.level == "note"]
    assert "plot (matplotlib)" in notes[0].found
    assert notes[0].advice.startswith("pip install 'precis[EXTRA]'")


def test_the_package_that_tfds_needs_and_does_not_declare_is_looked_for(monkeypatch):
    hide_module(monkeypatch, "importlib_resources")
    flags = {**SUMMARIZE, "corpus": "tfds:cnn_dailymail"}
    problem = the_problem(check_packages(request_of("summarize", **flags)))
    assert problem.found == "importlib_resources of extra tfds cannot be imported"
    assert problem.advice == "pip install 'precis[tfds]'"


def test_what_precis_itself_needs_may_be_missing_too(monkeypatch):
    hide_module(monkeypatch, "yaml")
    problem = the_problem(check_packages(request_of("summarize", **SUMMARIZE)))
    assert problem.found == "pyyaml of precis itself cannot be imported"
    assert problem.advice == "pip install 'precis'"


def test_a_package_of_a_wrong_version_is_a_problem(tmp_path, monkeypatch):
    install_metadata(tmp_path, "keras", "2.15.0")
    monkeypatch.syspath_prepend(tmp_path)
    flags = {"records": "r", "output": "b"}
    problem = the_problem(check_packages(request_of("train", **flags)))
    assert problem.found == "keras is 2.15.0, and precis works with <4,>=3.15"
    assert problem.advice == "pip install 'keras<4,>=3.15'"


def test_a_package_that_another_one_cannot_work_with_is_a_warning(
    tmp_path, monkeypatch
):
    install_metadata(tmp_path, "protobuf", "3.20.0")
    monkeypatch.syspath_prepend(tmp_path)
    findings = list(check_packages(request_of("summarize", **SUMMARIZE)))
    assert levels(findings) == {"ok", "warning"}
    (found,) = {each.found for each in findings if "apache-beam" in each.found}
    assert found.startswith("protobuf is 3.20.0, and apache-beam requires ")


def test_a_python_that_precis_does_not_run_on_is_a_problem(tmp_path, monkeypatch):
    install_metadata(tmp_path, "precis", "0.1.0", "Requires-Python: >=3.99")
    monkeypatch.syspath_prepend(tmp_path)
    problem = the_problem(check_packages(request_of("")))
    assert problem.subject == "python"
    assert problem.found.endswith("and precis runs on >=3.99")
    assert "make an environment with a Python of that range" in problem.advice


def test_an_extra_that_this_version_does_not_have_is_a_problem(tmp_path, monkeypatch):
    install_metadata(tmp_path, "precis", "0.1.0", "Provides-Extra: beam")
    monkeypatch.syspath_prepend(tmp_path)
    flags = {"records": "r", "output": "b"}
    problem = the_problem(check_packages(request_of("train", **flags)))
    assert problem.found == "this precis has no extra network"
    assert problem.advice == "install a newer precis"


def test_an_extra_of_a_package_is_missing_where_what_it_brings_is(
    tmp_path, monkeypatch
):
    lines = ["Provides-Extra: beam", "Requires-Dist: orjson[gcp]; extra == 'beam'"]
    install_metadata(tmp_path, "precis", "0.1.0", *lines)
    needed = "Requires-Dist: no-such-package; extra == 'gcp'"
    install_metadata(tmp_path, "orjson", "4.0", "Provides-Extra: gcp", needed)
    monkeypatch.syspath_prepend(tmp_path)
    problem = the_problem(check_packages(request_of("summarize", **SUMMARIZE)))
    assert problem.found == "orjson[gcp] of extra beam cannot be imported"


def test_without_its_packages_a_command_is_not_tried(monkeypatch, tmp_path):
    hide_module(monkeypatch, "apache_beam")
    flags = {"corpus": "sample:20", "output": tmp_path / "out"}
    findings = precis.doctor(command="summarize", flags=flags)
    assert the_problem(findings).advice == "pip install 'precis[beam]'"
    assert "what needs those packages was not checked" in [
        finding.found for finding in findings
    ]
    assert "trial" not in {finding.subject for finding in findings}
    assert not list(tmp_path.iterdir())
