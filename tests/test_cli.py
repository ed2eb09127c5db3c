"""Tests of the command line: exit codes, and what it says in one line."""

import logging
import os
import re
import signal

import pytest
from command_line import contents, error_lines, exit_code, precis, write_jsonl

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines import beam_runner
from precis.pipelines.cli import COMMANDS

BEAM_COMMANDS = [name for name, command in COMMANDS.items() if command.uses_beam]
# What each command needs at least; nothing of it exists.
NEEDED = {
    "prepare": ("--corpus", "sample:20", "--output", "out"),
    "train": ("--records", "records", "--output", "out"),
    "summarize": ("--corpus", "sample:20", "--output", "out"),
    "evaluate": ("--input", "run"),
    "import": ("checkpoint", "--output", "out"),
    "export": ("bundle", "--output", "out"),
}


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


def raise_in_pipeline(monkeypatch, error):
    """Makes every task of `precis summarize` fail."""
    from precis.pipelines.summarize_task import SummarizeWorker

    def fail(*_):
        raise error

    monkeypatch.setattr(SummarizeWorker, "run", fail)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("the flag is wrong"), 2, "precis summarize: the flag is wrong"),
        (DataError("the file is damaged"), 1, "precis summarize: the file is damaged"),
        (
            OSError(28, "No space left on device"),
            1,
            "precis summarize: the pipeline failed: OSError: [Errno 28] No space left "
            "on device",
        ),
        (
            ZeroDivisionError("a defect"),
            1,
            "precis summarize: the pipeline failed: ZeroDivisionError: a defect",
        ),
    ],
)
def test_an_error_of_a_task_is_one_line(
    error, code, message, monkeypatch, capsys, caplog
):
    raise_in_pipeline(monkeypatch, error)
    assert exit_code("summarize", *NEEDED["summarize"]) == code
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "summarize")
    assert line.startswith(message) and "Traceback" not in stderr
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    if isinstance(error, UsageError | DataError):
        assert line == message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "Traceback\n  File x\nmodel.errors.DataError: a: damaged [while running "
            "'Encode']\n",
            DataError("a: damaged"),
        ),
        (
            "Traceback\nmodel.errors.UsageError: no: such [while running "
            "'A']\n\nworker logs\n",
            UsageError("no: such"),
        ),
        (
            "Traceback\nOSError: [Errno 28] full\n",
            JobError("the pipeline failed: OSError: [Errno 28] full"),
        ),
        ("", JobError("the pipeline failed: RuntimeError: ")),
    ],
)
def test_an_error_of_another_process_is_read_from_its_traceback(message, expected):
    found = beam_runner._as_precis_error(RuntimeError(message))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_verbose_shows_the_cause(monkeypatch, capsys, caplog):
    raise_in_pipeline(monkeypatch, DataError("the file is damaged"))
    with caplog.at_level(logging.ERROR, logger="precis"):
        assert exit_code("summarize", "--verbose", *NEEDED["summarize"]) == 1
    (record,) = [record for record in caplog.records if record.name == "precis"]
    assert record.exc_info and error_lines(capsys.readouterr().err, "summarize") == [
        "precis summarize: the file is damaged"
    ]


def test_a_disk_that_fails_outside_of_a_task_exits_with_1_and_one_line(
    monkeypatch, capsys
):
    def fail(*_):
        raise OSError(28, "No space left on device", "out/_SUCCESS")

    monkeypatch.setattr("precis.pipelines.summarize.finish_job", fail)
    assert exit_code("summarize", *NEEDED["summarize"]) == 1
    stderr = capsys.readouterr().err
    assert error_lines(stderr, "summarize") == [
        "precis summarize: [Errno 28] No space left on device: 'out/_SUCCESS'"
    ]
    assert "Traceback" not in stderr and not os.path.exists("out/_SUCCESS")


def test_a_defect_keeps_its_traceback(monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("precis.pipelines.summarize.summarize", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        exit_code("summarize", *NEEDED["summarize"])


def test_a_stopped_training_exits_with_143(monkeypatch, capsys):
    from precis.model.training.loop import Interrupted

    def stop(**_):
        raise Interrupted("stopped at step 3")

    monkeypatch.setattr("precis.pipelines.train.train", stop)
    assert exit_code("train", *NEEDED["train"]) == 143 == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "precis train: stopped at step 3\n"


def test_tensorflow_is_imported_and_stderr_left_as_it_was(monkeypatch, capfd):
    import os
    import sys

    from precis.model.tensorflow_import import import_tensorflow

    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    imported = []
    monkeypatch.setattr(
        "importlib.import_module",
        lambda name: imported.append(name) or os.write(2, b"a note"),
    )
    import_tensorflow()
    os.write(2, b"a message")
    sys.stderr.flush()
    assert imported == ["tensorflow"] and capfd.readouterr().err == "a message"


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_pipeline_that_does_not_end_in_done_has_failed(state):
    from types import SimpleNamespace

    from precis.model.errors import JobError
    from precis.pipelines.beam_runner import run_pipeline

    pipeline = SimpleNamespace(
        run=lambda: SimpleNamespace(wait_until_finish=lambda: state)
    )
    with pytest.raises(JobError, match=f"the pipeline ended {state} and not DONE"):
        run_pipeline(pipeline, label="job", size=1)
