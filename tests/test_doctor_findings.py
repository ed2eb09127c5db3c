"""Tests of the findings of `precis doctor`: how they read, and its command line."""

import json

import pytest
from support.command_line import exit_code
from support.doctor_runs import request_of

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.corpus.task import FileFailure
from precis.pipelines.doctor.findings import (
    Diagnosis,
    as_json,
    as_lines,
    checked,
    last_line,
    problem_of,
    readable_bytes,
)
from precis.pipelines.doctor.request import CONCERNS, read_request, read_words
from precis.pipelines.options.one_document import OneDocumentOptions
from precis.pipelines.options.summarize import SummarizeOptions

FINDINGS = [
    Diagnosis("ok", "python", "Python 3.11.7"),
    Diagnosis("problem", "disk", "it is full", "make room"),
]


def failing(error):
    yield FINDINGS[0]
    raise error


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
        (FileFailure("a", "file_changed", "it is gone"), "a: it is gone", "restore"),
        (
            ModuleNotFoundError("No module", name="gcsfs.core"),
            "gcsfs cannot be imported",
            "install the packages",
        ),
        (RuntimeError("first\nsecond"), "RuntimeError: first", "again"),
    ],
)
def test_what_a_check_raises_is_its_last_finding(error, found, advice):
    first, last = checked("corpus", failing(error))
    assert first == FINDINGS[0]
    assert last[:3] == ("problem", "corpus", found)
    assert advice in last.advice


def test_what_a_check_returns_is_passed_on():
    def check():
        yield FINDINGS[0]
        return 7

    def outer():
        result = yield from checked("x", check())
        yield Diagnosis("ok", "x", str(result))

    assert [finding.found for finding in outer()] == ["Python 3.11.7", "7"]


def test_a_message_without_a_way_out_is_the_finding():
    assert problem_of("x", "it is so").found == "it is so"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (25e9, "25 GB")],
)
def test_bytes_have_a_unit(size, text):
    assert readable_bytes(size) == text
    assert readable_bytes(5e15) == "5000 TB"


def test_every_command_of_its_own_is_checked_with_its_own_flags():
    others = {
        name: tuple(kind for kind in command.concerns if kind is not OneDocumentOptions)
        for name, command in COMMANDS.items()
        if name != "doctor"
    }
    assert {name: tuple(kinds) for name, kinds in CONCERNS.items()} == others


def test_the_words_behind_doctor_are_a_command_line(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("corpus: sample:20\nbeam_width: 2\nrunner: FnApiRunner\n")
    words = ["summarize", "--config", str(config), "--output", "o", "--beam_width", "3"]
    line = read_words([*words, "--verbose", "--parallelism", "2"], COMMANDS)
    assert line.beam_args == ["--runner=FnApiRunner", "--parallelism", "2"]
    request = read_request(line)
    assert request.options(SummarizeOptions).output == "o"
    assert request.value("beam_width") == 3
    assert (request.runner, request.beam_flag("parallelism")) == ("FnApiRunner", "2")
    assert request.is_local and not request.is_network_used
    assert read_request(read_words([], COMMANDS)).command == ""


@pytest.mark.parametrize(
    ("runner", "is_local"),
    [
        ("direct", True),
        ("apache_beam.runners.direct.direct_runner.DirectRunner", True),
        ("flink", False),
    ],
)
def test_a_runner_of_this_machine_is_known_by_each_of_its_names(runner, is_local):
    flags = {"corpus": "sample:20", "output": "o"}
    assert request_of("summarize", "--runner", runner, **flags).is_local == is_local


def test_the_paths_of_a_command_line_are_all_known():
    request = request_of(
        "summarize",
        "--temp_location=gs://t/tmp",
        corpus="jsonl:gs://in/news/*.jsonl",
        output="gs://out/x",
        extractive_bundle="b",
        reuse=["r1", "r2"],
    )
    assert set(request.paths) == {
        *("gs://in/news/*.jsonl", "gs://out/x", "b", "r1", "r2", "gs://t/tmp"),
    }


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
        (["train", "--verbos"], "no flag --verbos; did you mean --verbose?"),
        (["train", "--xyzzyqq"], "`precis train --help all` shows those that there"),
        (["verify", "a", "b"], "precis doctor: 'b' is no flag; a flag begins with --"),
        (["summarize"], "precis doctor: --corpus is needed: the corpus"),
        (
            ["summarize", "--text", "a"],
            "precis doctor: --text a: doctor checks jobs over",
        ),
        (["prepare", "--vocabulary_size", "x"], "invalid int value: 'x'"),
        (
            ["prepare", "--corpus", "sample:9", "--output", "o", "--task_bytes", "0"],
            "precis doctor: --task_bytes must be at least 1, not 0",
        ),
        (["train", "--config", "none.yaml"], "--config none.yaml: there is no such"),
    ],
)
def test_a_wrong_command_line_exits_with_2(argv, message, capsys):
    assert exit_code("doctor", *argv) == 2
    output = capsys.readouterr()
    assert message in output.err and not output.out


def test_the_function_refuses_an_unknown_command():
    with pytest.raises(UsageError, match="no command 'prepre' to check; did you mean"):
        precis.doctor(command="prepre")
