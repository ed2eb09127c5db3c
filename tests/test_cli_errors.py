"""Tests of the command line: an error of a job is one line and an exit code."""

import logging
import os
import re
import tempfile

import pytest
from support.command_line import NEEDED, error_lines, exit_code

from precis.model.errors import (
    DataError,
    JobError,
    UsageError,
    describe_system_error,
)
from precis.pipelines.engines.runner_errors import as_precis_error

ROOM = "make room, and run the same command again"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, so that what is written by mistake shows."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def raise_in_pipeline(monkeypatch, error):
    """Makes every task of `precis summarize` fail."""
    from precis.pipelines.summarize.summarize_task import SummarizeWorker

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
            "precis summarize: the pipeline failed: the output, or ",
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
            "Traceback\nOSError: [Errno 28] full: 'a/b'\n",
            JobError(f"the pipeline failed: a/b: full; {ROOM}"),
        ),
        (
            "Traceback\nRuntimeError: OSError: [Errno 28] full: 'a' [while running X]",
            JobError(f"the pipeline failed: a: full; {ROOM}"),
        ),
        (
            "Traceback\nPermissionError: [Errno 13] no\n",
            JobError(
                "the pipeline failed: no; let this user use it, or name another place"
            ),
        ),
        (
            "Traceback\n  File x\npackage.ValueError: one\ntwo\nthree [while running "
            "'A']\n\nTraceback\n  File y\n",
            JobError("the pipeline failed: ValueError: one two three"),
        ),
        # A message of gRPC that holds the log of a worker.
        (
            'log_entries { severity: ERROR message: "RuntimeError: Traceback (most '
            "recent call last):\\n  File x\\nmodel.errors.DataError: a: damaged [while "
            "running 'Encode']\\n\" } instruction_id: 4",
            DataError("a: damaged"),
        ),
        (
            "java.lang.RuntimeException: Error received from SDK harness: Traceback "
            "(most recent call last):\n  File x\nZeroDivisionError: by zero [while "
            "running 'A']\n\n\tat org.apache.beam.sdk.X(X.java:1)\n",
            JobError("the pipeline failed: ZeroDivisionError: by zero"),
        ),
        ("x" * 500, JobError(f"the pipeline failed: RuntimeError: {'x' * 386} ...")),
        ("", JobError("the pipeline failed: RuntimeError: ")),
    ],
)
def test_an_error_of_another_process_is_read_from_its_traceback(message, expected):
    found = as_precis_error(RuntimeError(message))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_an_error_of_the_connection_to_a_worker_is_one_line():
    class Unavailable(Exception):
        def details(self):
            return "Socket closed"

    dump = "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = 14\n>"
    found = as_precis_error(Unavailable(dump))
    assert str(found) == "the pipeline failed: Unavailable: Socket closed"


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

    monkeypatch.setattr("precis.pipelines.run.job.finish_job", fail)
    assert exit_code("summarize", *NEEDED["summarize"]) == 1
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
        (OSError(30, "read-only", "a"), "a: read-only; let this user use it, or name"),
        (OSError(5, "broken", "a"), "a: broken; correct that, and run the same comma"),
        (OSError("none"), "none; correct that, and run the same command again"),
    ],
)
def test_an_error_of_the_system_has_a_place_and_a_way_out(error, message):
    described = describe_system_error(error)
    assert str(described).startswith(message)
    assert described.exit_code == (2 if error.errno == 30 else 1)


def test_a_place_that_cannot_be_written_is_named(capsys):
    """Not even root may write in /sys."""
    assert exit_code("summarize", *NEEDED["summarize"]) == 0
    assert exit_code("report", "out", "--output", "/sys/page.html") == 2
    (line,) = error_lines(capsys.readouterr().err, "report")
    assert re.search("/sys/page.html: .*; let this user use it, or name another", line)


def test_a_defect_keeps_its_traceback(monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("precis.pipelines.summarize.summarize.summarize", fail)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        exit_code("summarize", *NEEDED["summarize"])


def test_tensorflow_is_imported_and_stderr_left_as_it_was(monkeypatch, capfd):
    import gc
    import os
    import sys

    from precis.model.tensorflow_import import import_tensorflow

    monkeypatch.setenv("PRECIS_COMMAND", "1")
    for name in ("tensorflow", "sklearn", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    imported = []

    def import_module(name):
        hidden = [sys.modules["sklearn"], sys.modules["jax"]]
        imported.append((name, gc.isenabled(), hidden))
        os.write(2, b"a note")

    monkeypatch.setattr("importlib.import_module", import_module)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    import_tensorflow()
    os.write(2, b"a message")
    sys.stderr.flush()
    # TensorFlow finds neither meanwhile.
    assert imported == [("tensorflow", False, [None, None])]
    assert not {"sklearn", "jax"} & set(sys.modules) and gc.isenabled()
    assert capfd.readouterr().err == "a message"


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_pipeline_that_does_not_end_in_done_has_failed(state):
    from types import SimpleNamespace

    from apache_beam.options.pipeline_options import PipelineOptions

    from precis.model.errors import JobError
    from precis.model.progress.stages import Stage
    from precis.pipelines.engines.beam_runner import run_pipeline

    pipeline = SimpleNamespace(
        runner=None,
        options=PipelineOptions([]),
        run=lambda: SimpleNamespace(wait_until_finish=lambda: state),
    )
    with pytest.raises(JobError, match=f"the pipeline ended {state} and not DONE"):
        run_pipeline(pipeline, [Stage(name="job")])
