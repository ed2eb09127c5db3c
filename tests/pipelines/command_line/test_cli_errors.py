"""Tests of the command line: an error of a job is one line and an exit code."""

import logging
import os
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from support.command_line import error_lines, exit_code

from precis.model.errors import DataError, JobError, UsageError, describe_system_error
from precis.model.progress.stages import Stage
from precis.pipelines.command_line import run_command
from precis.pipelines.engines.beam_runner import as_precis_error, run_pipeline
from precis.pipelines.summarize.summarize import SummarizeWorker

SUMMARIZE = ("summarize", "--corpus", "sample:20", "--output", "out")
ROOM = "free some space, and run the same command again"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, so that what is written by mistake shows."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


DEFECT = "ZeroDivisionError: a defect"
NO_SPACE = OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("the flag is wrong"), 2, "the flag is wrong"),
        (DataError("the file is damaged"), 1, "the file is damaged"),
        (NO_SPACE, 1, "the pipeline failed: the output, or "),
        (ZeroDivisionError("a defect"), 1, f"the pipeline failed: {DEFECT}"),
    ],
)
def test_an_error_of_a_task(error, code, message, monkeypatch, capsys, caplog):
    def fail(*_):
        raise error

    monkeypatch.setattr(SummarizeWorker, "run", fail)
    assert exit_code(*SUMMARIZE) == code
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "summarize")
    assert line.startswith(f"precis summarize: {message}")
    assert "Traceback" not in stderr
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


DAMAGED = "model.errors.DataError: a: damaged [while running 'Encode']"
FAILED = "the pipeline failed: "


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Traceback\n  File x\n{DAMAGED}\n", DataError("a: damaged")),
        (
            "Traceback\nmodel.errors.UsageError: no: such [while running 'A']\n\nx\n",
            UsageError("no: such"),
        ),
        (
            "Traceback\nRuntimeError: OSError: [Errno 28] full: 'a' [while running X]",
            JobError(f"{FAILED}a: full; {ROOM}"),
        ),
        (
            "Traceback\nPermissionError: [Errno 13] no\n",
            JobError(f"{FAILED}no; give this user access, or name another place"),
        ),
        (
            "Traceback\n  File x\npackage.ValueError: one\ntwo\nthree [while running "
            "'A']\n\nTraceback\n  File y\n",
            JobError(f"{FAILED}ValueError: one two three"),
        ),
        # A message of gRPC that holds the log of a worker, and one of Java.
        (
            'log_entries { severity: ERROR message: "RuntimeError: Traceback (most '
            f'recent call last):\\n  File x\\n{DAMAGED}\\n" }} instruction_id: 4',
            DataError("a: damaged"),
        ),
        (
            "java.lang.RuntimeException: Error received from SDK harness: Traceback "
            "(most recent call last):\n  File x\nZeroDivisionError: by zero [while "
            "running 'A']\n\n\tat org.apache.beam.sdk.X(X.java:1)\n",
            JobError(f"{FAILED}ZeroDivisionError: by zero"),
        ),
        ("x" * 500, JobError(f"{FAILED}RuntimeError: {'x' * 386} ...")),
        ("", JobError(f"{FAILED}RuntimeError: ")),
    ],
)
def test_an_error_of_another_process_is_read_from_its_traceback(message, expected):
    found = as_precis_error(RuntimeError(message))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_a_disk_that_fails_outside_of_a_task_is_one_line(monkeypatch, capsys):
    def fail(*_):
        raise OSError(28, "No space left on device", "out/_SUCCESS")

    monkeypatch.setattr("precis.pipelines.run.job.finish_job", fail)
    assert exit_code(*SUMMARIZE) == 1
    stderr = capsys.readouterr().err
    assert error_lines(stderr, "summarize") == [
        f"precis summarize: out/_SUCCESS: No space left on device; {ROOM}"
    ]
    assert "Traceback" not in stderr and not os.path.exists("out/_SUCCESS")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "full", "a/b"), f"a/b: full; {ROOM}"),
        (OSError(28, "full"), f"the output, or {tempfile.gettempdir()}: full; {ROOM}"),
        (OSError(30, "read-only", "a"), "a: read-only; give this user access, or name"),
        (OSError(5, "broken", "a"), "a: broken; correct that, and run the same comma"),
        (OSError("none"), "none; correct that, and run the same command again"),
    ],
)
def test_an_error_of_the_system_has_a_place_and_a_way_out(error, message):
    described = describe_system_error(error)
    assert str(described).startswith(message)
    assert described.exit_code == (2 if error.errno == 30 else 1)


def test_an_output_that_cannot_be_written_is_one_line():
    program = "precis.pipelines.command_line.cli"
    variables = {**os.environ, "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", program, "summarize", "--help"],
            env=variables,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    message = "precis: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_missing_extra_is_named_and_another_module_is_a_defect(monkeypatch, capsys):
    missing = "matplotlib.pyplot"

    def run(name):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(run_command, "load_function", run)
    assert exit_code("digest", "run") == 2
    assert capsys.readouterr().err == (
        "precis digest: matplotlib is not installed; "
        "pip install 'precis-corpus[report]'\n"
    )
    missing = "precis.pipelines.x"
    with pytest.raises(ModuleNotFoundError, match="precis.pipelines.x"):
        exit_code("digest", "run")


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_pipeline_that_does_not_end_in_done_has_failed(state):
    ended = SimpleNamespace(wait_until_finish=lambda: state)
    options = PipelineOptions([])
    pipeline = SimpleNamespace(runner=None, options=options, run=lambda: ended)
    with pytest.raises(JobError, match=f"the pipeline ended as {state}, not DONE"):
        run_pipeline(pipeline, [Stage(name="job")])
