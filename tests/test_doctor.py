"""Tests of `precis doctor`: how findings read, its command line, and faults that are
seeded for real. Nothing is left behind.
"""

import json
import shutil

import pytest
from support.command_line import contents, exit_code, write_jsonl
from support.doctor_runs import (
    diagnose,
    hide_distribution,
    install_metadata,
    serve_json,
    the_problem,
)
from support.processes import closed_port
from support.summarize_runs import story

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.doctor.doctor import needed_extras, read_request, read_words
from precis.pipelines.doctor.findings import (
    Diagnosis,
    as_json,
    as_lines,
    checked,
    last_line,
    problem_of,
)
from precis.pipelines.doctor.needs import stored_paths

FINDINGS = [
    Diagnosis("ok", "python", "Python 3.11.7"),
    Diagnosis("problem", "disk", "it is full", "make room"),
]
SUMMARIZE = ("summarize", "--corpus", "sample:20", "--output", "out")


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, and a machine on which nobody has logged in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def check(capsys, workplace):
    """A function that runs the doctor over a command line and returns its only problem;
    the folder is as it was.
    """

    def run(*words):
        before = contents(workplace)
        code, findings = diagnose(capsys, *words)
        assert code == 1
        assert contents(workplace) == before
        return the_problem(findings)

    return run


def request_of(*words):
    return read_request(*read_words(words, COMMANDS), COMMANDS)


def test_a_finding_is_a_line_and_long_ones_are_cut_for_a_terminal():
    assert list(as_lines(FINDINGS, width=10**6)) == [
        "ok       python  Python 3.11.7",
        "problem  disk    it is full -> make room",
    ]
    long = Diagnosis("problem", "disk", "it is full", "make room, or take another")
    (line,) = as_lines([long], width=40)
    first, second = line.split("\n")
    assert first == "problem  disk  it is full -> make room,"
    assert second == "               or take another"
    assert last_line(FINDINGS, "train") == ("1 problem, 0 warnings for `precis train`")
    assert last_line([], "") == "0 problems, 0 warnings for this installation"


def test_the_findings_are_a_json_document():
    assert json.loads(as_json(FINDINGS, command="train", version="1")) == {
        "precis_version": "1",
        "command": "train",
        "problems": 1,
        "warnings": 0,
        "findings": [
            {
                "level": "ok",
                "subject": "python",
                "found": "Python 3.11.7",
                "advice": "",
            },
            {
                "level": "problem",
                "subject": "disk",
                "found": "it is full",
                "advice": "make room",
            },
        ],
    }


@pytest.mark.parametrize(
    ("error", "found", "advice"),
    [
        (DataError("a: damaged (x; y);\n copy it"), "a: damaged (x; y)", "copy it"),
        (UsageError("no way out"), "no way out", "run `precis doctor` again"),
        (OSError(13, "no", "a"), "a: no", "let this user use it, or name another"),
        (RuntimeError("first\nsecond"), "RuntimeError: first", "again"),
    ],
)
def test_what_a_check_raises_is_its_last_finding(error, found, advice):
    def failing():
        yield FINDINGS[0]
        raise error

    first, last = checked("corpus", failing())
    assert first == FINDINGS[0]
    assert last[:3] == ("problem", "corpus", found)
    assert advice in last.advice


def test_the_function_checks_as_the_command_does(tmp_path):
    with pytest.raises(UsageError, match="no command 'prepre' to check; did you mean"):
        precis.doctor(command="prepre")
    findings = precis.doctor(command="digest", flags={"run": "none"})
    assert the_problem(findings).found.startswith("none ")


def test_a_message_without_a_way_out_is_the_finding():
    assert problem_of("x", "it is so").found == "it is so"


def test_the_words_behind_doctor_are_a_command_line(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("corpus: sample:20\nbeam_width: 2\nrunner: FnApiRunner\n")
    words = ["summarize", "--config", str(config), "--output", "o", "--beam_width", "3"]
    request = request_of(*words, "--verbose", "--parallelism", "2")
    assert request.beam_args == ["--runner=FnApiRunner", "--parallelism", "2"]
    flags = request.flags
    assert (flags["output"], flags["beam_width"]) == ("o", 3)
    assert request_of().command == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sumarize"], "precis doctor: there is no command 'sumarize' to check; did"),
        (["doctor"], "precis doctor: there is no command 'doctor' to check; "),
        (["xyz"], "`precis --help` shows them"),
        (["--jsn"], "precis doctor: there is no flag --jsn; did you mean --json?"),
        (
            ["train", "--recods=r"],
            "precis doctor: there is no flag --recods; did you mean --records?",
        ),
        (["verify", "a", "b"], "precis doctor: 'b' is no flag; a flag begins with --"),
        (["summarize"], "precis doctor: --corpus is needed: the corpus"),
        (
            ["summarize", "--text", "a"],
            "precis doctor: --text a: doctor checks jobs over",
        ),
        (
            ["prepare", "--corpus", "sample:9", "--output", "o", "--task_bytes", "0"],
            "precis doctor: --task_bytes must be at least 1, not 0",
        ),
    ],
)
def test_a_wrong_command_line_exits_with_2(argv, message, capsys):
    assert exit_code("doctor", *argv) == 2
    output = capsys.readouterr()
    assert message in output.err and not output.out


@pytest.mark.parametrize(
    ("words", "extras"),
    [
        (SUMMARIZE, {"beam"}),
        ((*SUMMARIZE, "--bundle", "b"), {"beam", "inference"}),
        (
            (*SUMMARIZE[:3], "--output", "gs://b/o", "--table", "delta://t"),
            {"beam", "delta", "gcs"},
        ),
        ((*SUMMARIZE, "--runner", "dataflow"), {"beam", "dataflow"}),
        (
            ("prepare", "--corpus", "tfds:x", "--output", "s3://b/o"),
            {"beam", "inference", "s3", "tfds"},
        ),
        (("train", "--records", "r", "--output", "b"), {"network"}),
        (("loaders", "r", "--for", "duckdb"), set()),
        (("load", "r", "--table", "iceberg+sqlite://w/n.t"), {"iceberg"}),
    ],
)
def test_a_command_needs_the_extras_of_what_it_does(words, extras):
    assert needed_extras(request_of(*words)) == extras


def test_each_bucket_of_a_command_line_is_asked_for_once():
    flags = {"corpus": "jsonl:gs://in/*", "reuse": "gs://a/r,s3://b/r", "output": "o"}
    paths = stored_paths(flags, ["--temp_location=gs://in/tmp"])
    assert {path.split("/")[2] for path in paths} == {"in", "a", "b"}
    assert len(paths) == 3


@pytest.mark.slow
def test_an_installation_says_what_it_has(capsys):
    code, findings = diagnose(capsys)
    assert code == 0
    subjects = [finding.subject for finding in findings]
    assert {"python", "packages", "cores", "accelerator"} <= set(subjects)
    (found,) = (each.found for each in findings if each.subject == "accelerator")
    assert found.startswith("TensorFlow ") and "1 CPU" in found


def test_without_a_fault_there_is_no_problem(capsys, workplace):
    write_jsonl(workplace / "news.jsonl", map(story, range(12)))
    argv = ("summarize", "--corpus", "jsonl:news.jsonl", "--output", "out")
    code, findings = diagnose(capsys, *argv)
    assert (code, {finding.level for finding in findings}) == (0, {"ok"})
    subjects = [finding.subject for finding in findings]
    assert subjects == ["python", "packages", "engine", "corpus"]
    assert list(contents(workplace)) == ["news.jsonl"]


def test_a_missing_package_is_a_problem_for_the_command_that_needs_it(
    check, capsys, monkeypatch
):
    hide_distribution(monkeypatch, "matplotlib")
    problem = check("attention", "--bundle", "b", "--text", "t", "--output", "o")
    assert problem.found == "extra plot: matplotlib is not installed"
    assert problem.advice == "pip install 'precis[plot]'"
    code, _ = diagnose(capsys, "digest", "r")
    assert code == 1  # There is no run r, and no package is missing.
    hide_distribution(monkeypatch, "pyyaml")
    assert check("digest", "r").found.startswith("precis itself: pyyaml is not")


def test_a_package_of_a_wrong_version(check, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site")
    install_metadata(folder, "keras", "2.15.0")
    monkeypatch.syspath_prepend(folder)
    problem = check("train", "--records", "r", "--output", "b")
    expected = "extra network: keras is 2.15.0, and precis works with <4,>=3.15"
    assert problem.found == expected


def test_a_python_that_precis_does_not_run_on(check, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site")
    install_metadata(folder, "precis", "0.1.0", "Requires-Python: >=3.99")
    monkeypatch.syspath_prepend(folder)
    problem = check("digest", "r")
    assert problem.subject == "python"
    assert problem.found.endswith("and precis runs on >=3.99")


def test_a_corpus_that_is_not_there(check):
    problem = check("summarize", "--corpus", "jsonl:none/*.jsonl", "--output", "out")
    assert problem.subject == "corpus"
    assert problem.found.startswith("no file matches none/*.jsonl")


@pytest.mark.slow
def test_inputs_that_are_not_there(check, bundle, workplace):
    problem = check(*SUMMARIZE, "--bundle", "none")
    assert (problem.subject, problem.found[:4]) == ("inputs", "none")
    folder = shutil.copytree(bundle, workplace / "bundle")
    (folder / "manifest.json").write_text("{")
    problem = check(*SUMMARIZE, "--bundle", "bundle")
    assert problem.found.startswith("bundle/manifest.json: damaged")
    problem = check("train", "--records", "none", "--output", "b")
    assert problem.subject == "inputs" and "none" in problem.found
    problem = check("report", "none")
    assert problem.subject == "inputs" and "none" in problem.found


def test_an_engine_that_does_not_answer(check):
    with closed_port() as port:
        flags = ("--runner", "FlinkRunner", "--flink_master", f"127.0.0.1:{port}")
        problem = check(*SUMMARIZE, *flags)
    assert problem.subject == "engine"
    assert f"127.0.0.1:{port}: no Flink job manager answers there" in problem.found
    assert problem.advice.startswith("start the cluster, or give the address")
    overview = {"flink-version": "2.2.1", "slots-total": 4}
    with serve_json({"/overview": overview}) as address:
        flags = ("--runner", "FlinkRunner", "--flink_master", address)
        problem = check(*SUMMARIZE[:4], "/out", *flags, "--workers", "3")
    assert problem.found.startswith("--workers counts processes of this machine")
    assert "--runner Flnk is unknown" in check(*SUMMARIZE, "--runner=Flnk").found


def test_buckets_are_asked_for(check, capsys, monkeypatch):
    words = (*SUMMARIZE[:3], "--output", "gs://out/run")
    pages = {"/storage/v1/b/out": {"name": "out"}}
    with serve_json(pages) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{address}")
        _, findings = diagnose(capsys, *words)
        assert Diagnosis("ok", "bucket", "gs://out answers") in findings
        problem = check(*SUMMARIZE[:3], "--output", "gs://other/run")
        assert "there is no such object, or no bucket other" in problem.found
    with closed_port() as port:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        assert "cannot be reached (Connection refused)" in check(*words).found
