"""Tests of the command line: exit codes, and what it says in one line."""

import re

import pytest
from support.command_line import (
    NEEDED,
    contents,
    error_lines,
    exit_code,
    precis,
    write_jsonl,
)

from precis.pipelines.cli import COMMANDS

BEAM_COMMANDS = [name for name, command in COMMANDS.items() if command.uses_beam]


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, so that what is written by mistake shows."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_and_version_exit_with_0(capsys):
    for argv in (["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)):
        assert exit_code(*argv) == 0
    lines = capsys.readouterr().out
    assert all(
        f"{name} " in lines and command.help in lines
        for name, command in COMMANDS.items()
    )
    assert (
        lines.count("Flags that are not listed here go to Beam")
        == len(BEAM_COMMANDS)
        == 3
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            [],
            "precis: the following arguments are required: COMMAND; see `precis "
            "--help`",
        ),
        (
            ["summarise"],
            "precis: argument COMMAND: invalid choice: 'summarise' (choose from ",
        ),
        (
            ["prepare"],
            "precis prepare: the following arguments are required: --corpus, "
            "--output; see `precis prepare --help`",
        ),
        (
            ["train", "--output", "out"],
            "precis train: the following arguments are required: --records; see",
        ),
        (
            ["import", "--output", "out"],
            "precis import: the following arguments are required: DIR; see",
        ),
        (
            ["import", *NEEDED["import"]],
            "precis import: checkpoint: there is no such folder; name one that a "
            "checkpoint was downloaded to",
        ),
        (
            ["import", "out", "--output", "./out"],
            "precis import: --output ./out is the checkpoint itself, whose files the "
            "bundle would",
        ),
        (
            ["export", "--output", "out"],
            "precis export: the following arguments are required: BUNDLE; see",
        ),
        (
            ["export", *NEEDED["export"]],
            "precis export: bundle: this is no complete bundle (no manifest.json); "
            "name the --output of",
        ),
        (
            ["evaluate"],
            "precis evaluate: the following arguments are required: --input; see",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--task_bytes", "many"],
            "precis prepare: argument --task_bytes: invalid int value: 'many'; see",
        ),
        (
            ["train", *NEEDED["train"], "--network", "huge"],
            "precis train: argument --network: invalid choice: 'huge' (choose from ",
        ),
        (
            ["train", *NEEDED["train"], "--stepps", "3"],
            "precis train: there is no flag --stepps 3; see `precis train --help`",
        ),
        (
            ["train", *NEEDED["train"], "--step", "3"],
            "precis train: there is no flag --step 3; see `precis train --help`",
        ),
        (
            ["train", *NEEDED["train"], "--runner", "FnApiRunner"],
            "precis train: there is no flag --runner FnApiRunner; see",
        ),
        (
            ["train", *NEEDED["train"]],
            "precis train: records: there are no records here",
        ),
        (
            ["evaluate", *NEEDED["evaluate"]],
            "precis evaluate: run does not exist; give the --output of `precis "
            "summarize`",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--bundle", "b"],
            "precis summarize: b: this is no complete bundle (no manifest.json); name",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", "lead,best"],
            "precis summarize: --extractive: there is no method 'best'; known",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", ","],
            "precis summarize: --extractive names no method; known are",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", "lead,lead"],
            "precis summarize: --extractive names a method twice: lead,lead;",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--n_best", "9"],
            "precis summarize: --n_best must lie between 1 and --beam_width (4), not "
            "be 9",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--tokenizer", "t"],
            "precis prepare: --tokenizer t is no tokenizer folder (no tokenizer.json)",
        ),
        (
            ["prepare", "--corpus", "jsonl:*.jsonl", "--output", "out"],
            "precis prepare: no file matches *.jsonl (in the working directory);",
        ),
        (
            ["prepare", "--corpus", "xml:a", "--output", "out"],
            "precis prepare: unknown corpus 'xml:a'; write scheme:where",
        ),
        (
            ["prepare", "--corpus", "sample:20", "--output", ""],
            "precis prepare: --output is empty; name the folder to write to",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--max_failed_share", "2"],
            "precis prepare: --max_failed_share is a share from 0 to 1, not 2.0",
        ),
    ],
)
def test_a_wrong_command_exits_with_2_and_one_line_and_writes_nothing(
    argv, message, capsys, workplace
):
    assert exit_code(*argv) == 2
    output = capsys.readouterr()
    assert output.err.startswith(message), output.err
    assert (
        output.err.count("\n") == 1 and output.err.endswith("\n") and output.out == ""
    )
    assert contents(workplace) == {}


@pytest.mark.parametrize("name", BEAM_COMMANDS)
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nonsuch", "3"], "'--nonsuch' is a flag neither of precis nor of Beam"),
        (["stray"], "'stray' is a flag neither of precis nor of Beam"),
        (["--runner", "SlowRunner"], "--runner SlowRunner is unknown; "),
        (
            ["--direct_num_workers", "many"],
            "Beam refuses its flags: argument --direct_num_workers: invalid int "
            "value: 'many'",
        ),
    ],
)
def test_a_flag_that_beam_does_not_know_either_is_refused(
    name, argv, message, capsys, workplace
):
    assert exit_code(name, *NEEDED[name], *argv) == 2
    output = capsys.readouterr()
    assert (
        output.err.startswith(f"precis {name}: {message}")
        and output.err.count("\n") == 1
    )
    assert contents(workplace) == {}


def test_an_abbreviated_flag_is_not_taken_for_the_long_one(capsys, workplace):
    assert exit_code("summarize", *NEEDED["summarize"], "--sentence", "1") == 2
    assert (
        "'--sentence' is a flag neither of precis nor of Beam; did you mean "
        "--sentences?" in capsys.readouterr().err
    )
    assert contents(workplace) == {}


def test_a_finished_command_exits_with_0_and_names_its_output(workplace, capsys):
    assert (
        precis(
            "summarize",
            corpus="sample:20",
            output="out",
            extractive="lead",
            max_failed_share=0,
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    counts = "duplicates 0, failed 0, read 20, skipped 0, truncated 0, written 20"
    assert lines[0] == f"documents: {counts}"
    assert lines[1] == "summaries: lead 20"
    assert re.fullmatch("run [0-9a-f]{16}", lines[2]) and lines[3] == "wrote out"


def test_data_that_fail_the_job_exit_with_1(workplace, capsys):
    corpus = write_jsonl(
        workplace / "c.jsonl", [{"article": "Rain fell."}, "{broken", "[]"]
    )
    assert precis("summarize", corpus=corpus, output="out") == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert (
        "2 of 3 records failed (read/invalid_json 1, read/not_an_object 1), more than "
        "--max_failed_share 0.5 allows" in line
    )
