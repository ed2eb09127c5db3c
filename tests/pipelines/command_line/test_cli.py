"""Tests of the command line: exit codes, and what it says in one line."""

import datetime
import logging
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from support import read_table
from support.command_line import contents, error_lines, exit_code, precis, write_jsonl
from support.summarize_runs import manifest_of

from precis.model.errors import DataError, JobError, UsageError, describe_system_error
from precis.model.progress.stages import Stage
from precis.model.training.config import TrainingConfig
from precis.pipelines.command_line import run_command
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.results import warn_of_cuts, whole_corpus
from precis.pipelines.engines.beam_runner import as_precis_error, run_pipeline
from precis.pipelines.summarize.summarize import SummarizeWorker
from precis.pipelines.training.train import warn_of_warmup

BEAM_COMMANDS = [name for name, command in COMMANDS.items() if command.uses_beam]
SUMMARIZE = "summarize --corpus sample:20 --output out"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, so that what is written by mistake shows."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_and_version_exit_with_0(capsys):
    for argv in ([], ["--help"], ["--version"]):
        assert exit_code(*argv) == 0
    lines = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name} " in lines and command.summary in lines
        assert exit_code(name, "--help") == exit_code(name, "--help", "all") == 0
    assert capsys.readouterr().out.count("go to Beam") == 2 * len(BEAM_COMMANDS) == 6


REFUSED = read_table("refused_commands")["in an empty folder"]


@pytest.mark.parametrize(("line", "message"), REFUSED.items())
def test_a_wrong_command_writes_one_line_alone(line, message, capsys, workplace):
    line = line.replace("SAMPLE", "--corpus sample:20 --output out")
    argv = shlex.split(line.replace("RECORDS", "--records records --output out"))
    program = f"precis {argv[0]}" if argv[0] in COMMANDS else "precis"
    assert exit_code(*argv) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"{program}: {message}"), err
    assert err.count("\n") == 1 and err.endswith("\n") and out == ""
    assert contents(workplace) == {}


def test_a_file_that_cannot_be_read_exits_with_1(workplace, capsys):
    assert precis("summarize", config=".") == 1
    message = f"{workplace}: Is a directory; correct that, and run the same command ag"
    assert message in capsys.readouterr().err


def test_a_finished_command_exits_with_0_and_names_its_output(capsys):
    flags = {"corpus": "sample:20", "output": "out", "extractive": "lead"}
    assert precis("summarize", max_failed_share=0, **flags) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch("run [0-9a-f]{16}", lines.pop(3))
    expected = ["documents: read 20, written 20", "rows: 20; lead 20"]
    expected += ["quality flags: barely_shorter 16", "wrote out"]
    assert lines[:5] == [*expected, "next: precis report out"]


def test_a_run_is_repeated_from_its_manifest(workplace, capsys):
    flags = "corpus: sample:20\nextractive: [lead, luhn]\nsentences: 2\n"
    (workplace / "run.yaml").write_text(flags)
    assert precis("summarize", config="run.yaml", sentences=1, output="first") == 0
    manifest = "first/manifest.json"
    assert precis("summarize", config=manifest, output="again") == 0
    first, again = map(manifest_of, ("first", "again"))
    assert again["run_id"] == first["run_id"]
    assert contents(workplace / "first/data") == contents(workplace / "again/data")
    assert first["provenance"] == again["provenance"]
    flags = first["provenance"]["flags"]
    assert (flags["sentences"], flags["extractive"]) == (1, "lead,luhn")
    assert flags["beam_width"] == 4 and "output" not in flags
    capsys.readouterr()
    assert precis("summarize", config=manifest, output="again", sentences=3) == 2
    assert capsys.readouterr().err == (
        "precis summarize: again holds a finished result with other settings: "
        "--sentences 1 there, 3 here; name another --output, or remove that folder\n"
    )


FAILED = {
    "prepare": "the corpus has no training documents with a text and highlights to "
    "learn a vocabulary from; check --article_field, --highlights_field and --split, "
    "or name a --tokenizer",
    "summarize": "3 of 3 records failed (read/wrong_type 2, read/invalid_json 1), more "
    "than --max_failed_share 0.01 allows; see out/dead_letters, fix the records and "
    "name another --output, or raise the share and run the same command",
}


@pytest.mark.parametrize("command", FAILED)
def test_a_failed_job_names_the_first_dead_letters(command, workplace, capsys):
    lines = [{"article": 7}, {"article": [8]}, "{broken"]
    corpus = write_jsonl(workplace / "num.jsonl", lines)
    assert precis(command, corpus=corpus, output="out") == 1
    assert error_lines(capsys.readouterr().err, command) == [
        f"precis {command}: {FAILED[command]}"
        "; first: num.jsonl, byte 0: 'article' holds a value of type int; "
        "num.jsonl, byte 15: 'article' holds a value of type int; num.jsonl, byte 32: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    ]


def test_many_cut_documents_and_a_short_training_are_warnings_of_one_line(capsys):
    warn_of_cuts("prepare", share=0.25, what="the articles were cut", way_out="wait")
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=500))
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=4_000, epochs=1))
    assert capsys.readouterr().err == ""
    warn_of_cuts("prepare", share=0.73, what="the articles were cut", way_out="wait")
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=4_000))
    assert capsys.readouterr().err == (
        "precis prepare: warning: 73% of the articles were cut; wait\n"
        "precis train: warning: --steps 500 is shorter than the warm-up of 4000 "
        "steps, and stops at 12% of the learning rate; set --warmup_steps 100 or "
        "train longer\n"
    )


@pytest.mark.parametrize("part", ["--limit", "--sample"])
def test_a_part_of_a_corpus_says_what_the_whole_would_take(part, workplace, capsys):
    lines = [{"article": f"Rain fell on day {day:03}."} for day in range(200)]
    corpus = write_jsonl(workplace / "news.jsonl", lines)
    argv = ("summarize", "--corpus", corpus, "--output", "run", "--quiet", part, "20")
    assert exit_code(*argv) == 0
    rate = "the rate of one worker" if part == "--limit" else "this rate"
    whole = rf"about 200 documents, \d+:\d\d and \d+ MB of Parquet at {rate}\n"
    assert re.search(f"\nthe whole corpus: {whole}", capsys.readouterr().out)
    time.sleep(1)  # A manifest has the moment in seconds.
    assert exit_code(*argv) == 0  # It is there already.
    assert "the whole corpus" not in capsys.readouterr().out


def test_the_start_of_a_run_counts_once_for_the_whole_corpus():
    # 100 of 10,000 documents, in a run of 10 s that wrote 50 a second at its end.
    now = datetime.datetime.now(datetime.UTC)
    begun = now - datetime.timedelta(seconds=10)
    counts = {"read": 105, "not_selected": 0, "other_split": 5}
    manifest = {"counts": counts, "limited_to_share": 0.01, "bundle": "b"}
    manifest |= {"created_at": now.isoformat(), "files": [{"bytes": 400_000}]}
    line = whole_corpus(manifest, since=begun, rate=50.0)  # 10 s + 9,900 / 50
    assert re.search("about 10,500 documents, 3:2[89] and 40 MB .* at this rate$", line)
    line = whole_corpus(manifest, since=begun, rate=None)
    assert ", 16:4" in line  # 10 s / 0.01


ROOM = "free some space, and run the same command again"
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
    assert exit_code(*SUMMARIZE.split()) == code
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "summarize")
    assert line.startswith(f"precis summarize: {message}")
    assert "Traceback" not in stderr
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


DAMAGED = "model.errors.DataError: a: damaged [while running 'Encode']"
PIPELINE = "the pipeline failed: "
NO_ACCESS = f"{PIPELINE}no; give this user access, or name another place"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Traceback\n  File x\n{DAMAGED}\n", DataError("a: damaged")),
        ("x\nmodel.errors.UsageError: no [while running 'A']\n\nx\n", UsageError("no")),
        (
            "Traceback\nRuntimeError: OSError: [Errno 28] full: 'a' [while running X]",
            JobError(f"{PIPELINE}a: full; {ROOM}"),
        ),
        ("Traceback\nPermissionError: [Errno 13] no\n", JobError(NO_ACCESS)),
        (
            "Traceback\n  File x\npackage.ValueError: one\ntwo\nthree [while running "
            "'A']\n\nTraceback\n  File y\n",
            JobError(f"{PIPELINE}ValueError: one two three"),
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
            JobError(f"{PIPELINE}ZeroDivisionError: by zero"),
        ),
        ("x" * 500, JobError(f"{PIPELINE}RuntimeError: {'x' * 386} ...")),
        ("", JobError(f"{PIPELINE}RuntimeError: ")),
    ],
)
def test_an_error_of_another_process_is_read_from_its_traceback(message, expected):
    found = as_precis_error(RuntimeError(message))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_a_disk_that_fails_outside_of_a_task_is_one_line(monkeypatch, capsys):
    def fail(*_):
        raise OSError(28, "No space left on device", "out/_SUCCESS")

    monkeypatch.setattr("precis.pipelines.run.job.finish_job", fail)
    assert exit_code(*SUMMARIZE.split()) == 1
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
    command = [sys.executable, "-m", program, "summarize", "--help"]
    with open("/dev/full", "w") as full:
        pipes = {"stdout": full, "stderr": subprocess.PIPE, "text": True}
        done = subprocess.run(command, env=variables, **pipes)
    message = "precis: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_missing_extra_is_named_and_another_module_is_a_defect(monkeypatch, capsys):
    missing = "matplotlib.pyplot"

    def run(name):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(run_command, "load_function", run)
    assert exit_code("digest", "run") == 2
    said = "matplotlib is not installed; pip install 'precis-corpus[report]'\n"
    assert capsys.readouterr().err == f"precis digest: {said}"
    missing = "precis.pipelines.x"
    with pytest.raises(ModuleNotFoundError, match="precis.pipelines.x"):
        exit_code("digest", "run")


@pytest.mark.parametrize("state", ["PIPELINE", "CANCELLED"])
def test_a_pipeline_that_does_not_end_in_done_has_failed(state):
    ended = SimpleNamespace(wait_until_finish=lambda: state)
    options = PipelineOptions([])
    pipeline = SimpleNamespace(runner=None, options=options, run=lambda: ended)
    with pytest.raises(JobError, match=f"the pipeline ended as {state}, not DONE"):
        run_pipeline(pipeline, [Stage(name="job")])
