"""Commands that are stopped by Ctrl-C or SIGTERM at many moments: what they say, what
they leave, and that the same command goes on to the same result.
"""

import contextlib
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import command_words, precis, write_jsonl
from support.processes import command_line
from support.signalled import (
    LIMIT_SECONDS,
    PROGRAM,
    asides,
    end_by_signal,
    has_mapped,
    is_progress,
    processes_of,
)

from precis.pipelines.verify.digest import digest

pytestmark = pytest.mark.slow

# Two tasks a file.
SETTINGS = {"extractive": "lexrank", "task_bytes": 80_000}
INT, TERM = signal.SIGINT, signal.SIGTERM


Moment = Callable[[int], bool]


def stop(tmp_path: Path, flags: list[str], number: signal.Signals, when: Moment):
    """Stops a command and checks what every command does then."""
    folder = tmp_path / "temporary files"
    ended = end_by_signal(flags, number, when, folder=folder)
    assert ended.code == 128 + number, ended
    assert len(ended.lines) == 1, "\n".join(ended.lines)
    (line,) = ended.lines
    assert line.startswith(f"precis {flags[0]}: stopped by {number.name}; ")
    assert shlex.split(line.split(" with: ")[1]) == ["precis", *flags]
    assert ended.left == []
    assert ended.seconds < LIMIT_SECONDS


def has(pattern: Path, count: int = 1) -> Moment:
    """True when so many files match."""
    folder, name = pattern.parent, pattern.name
    return lambda _: len(list(folder.glob(name))) >= count


def has_done(tasks: Path, count: int) -> Moment:
    """True when a command is at work and so many tasks are done, by it or before."""
    is_locked = has(tasks / "lock.json")
    is_done = has(tasks / "summarize" / "*.json", count)
    return lambda process: is_locked(process) and is_done(process)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """3,200 long articles in forty files, each of which takes a while to rank."""
    folder = tmp_path_factory.mktemp("corpus of news")
    sentences = [
        f"The town of number {number} has {number % 7} parks and a river."
        for number in range(60)
    ]
    articles = [" ".join(sentences[start : start + 40]) for start in range(20)]
    for part in range(40):
        records = [
            {"id": f"{part}-{number}", "article": text}
            for number, text in enumerate(articles * 4)
        ]
        write_jsonl(folder / f"{part:02d}.jsonl", records)
    return f"jsonl:{folder}/*.jsonl"


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    """An undisturbed run."""
    output = tmp_path_factory.mktemp("undisturbed") / "run"
    assert precis("summarize", corpus=corpus, output=output, **SETTINGS) == 0
    return output


def test_summarize_stopped_again_and_again_ends_as_undisturbed(corpus, run, tmp_path):
    output = tmp_path / "run"
    flags = command_words("summarize", corpus=corpus, output=output, **SETTINGS)
    tasks = output / "_tasks"
    for number, when in [
        (TERM, has_mapped("grpc")),  # while Beam is imported
        (INT, has(tasks / "lock.json")),
        (TERM, has_done(tasks, 1)),
        (INT, has_done(tasks, 4)),
        (TERM, has_done(tasks, 20)),
    ]:
        stop(tmp_path, flags, number, when)
        assert not (tasks / "lock.json").exists() and not asides(output)
    kept = {path: path.stat().st_mtime_ns for path in (tasks / "summarize").iterdir()}
    assert 20 <= len(kept) < 40
    stop(tmp_path, flags, INT, has_done(tasks, len(kept) + 2))
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert precis("summarize", corpus=corpus, output=output, **SETTINGS) == 0
    assert digest(run=output) == digest(run=run)


def test_search_processes_end_with_their_command(bundle, tmp_path):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    settings = {"corpus": "sample:400", "bundle": bundle, "beam_width": 2}
    settings |= {"task_bytes": (16 << 10) * 50, "window_documents": 50}
    settings |= {"search_processes": 2}
    flags = command_words("summarize", output=stopped, **settings)
    folder = tmp_path / "temporary files"

    def searches(_: int) -> bool:
        lines = [command_line(process) for process in processes_of(folder)]
        # One of them is that which the others were forked from.
        forked = sum("multiprocessing.forkserver" in line for line in lines)
        return forked == 3 or sum("spawn_main" in line for line in lines) == 2

    stop(tmp_path, flags, INT, searches)
    stop(tmp_path, flags, TERM, has_done(stopped / "_tasks", 2))
    assert not (stopped / "_tasks" / "lock.json").exists() and not asides(stopped)
    for output in (stopped, whole):
        assert precis("summarize", output=output, **settings) == 0
    assert digest(run=stopped) == digest(run=whole)


@pytest.mark.parametrize(
    ("command", "library"),
    [
        (("prepare", "--corpus", "sample:60", "--output", "{}"), "grpc"),
        (("train", "--records", "r", "--output", "{}"), "libtensorflow"),
        (("attention", "--bundle", "b", "--output", "{}.png"), "libtensorflow"),
        (("verify", "{run}"), "libarrow"),
        (("load", "{run}", "--table", "iceberg+sqlite://{}/a.b"), "libarrow"),
    ],
)
def test_a_command_is_stopped_while_libraries_load(command, library, run, tmp_path):
    output = tmp_path / "out"
    flags = [word.format(output, run=run) for word in command]
    stop(tmp_path, flags, INT, has_mapped(library))
    assert not output.exists() or not [*output.rglob("*.parquet"), *asides(output)]


@pytest.mark.parametrize("needs_detector", [False, True])
def test_an_error_in_a_process_is_one_line(needs_detector, tmp_path):
    """The part is larger than a file may be, or the model that the detector of
    languages unpacks, which clear English does without.
    """
    text = "The mayor said that the flood and the rain were the worst that they saw."
    articles = [{"article": f"{text} It was {number}."} for number in range(2_000)]
    corpus = write_jsonl(tmp_path / "c.jsonl", articles)
    if needs_detector:
        corpus = "sample:600"
    flags = command_words("summarize", corpus=corpus, output=tmp_path / "run")
    limit = (64 << 10, 64 << 10)
    # A file of bytecode would not be whole either.
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    variables.pop("GRPC_VERBOSITY", None)  # A command in this process sets it.
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, *flags, "--workers=2"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        **{"env": variables, "timeout": 300, "capture_output": True, "text": True},
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    (line,) = [line for line in lines if not is_progress(line)]
    place = re.escape(f"{tmp_path}/run/data/part-") + "[0-9a-f]{8}-00000.parquet"
    if needs_detector:
        place = re.escape(tempfile.gettempdir()) + "/precis-[a-z0-9_]+"
    assert re.fullmatch(
        rf"precis summarize: the pipeline failed: {place}: File too large; "
        "correct that, and run the same command again",
        line,
    )
    assert not (tmp_path / "run" / "_tasks" / "summarize" / "00000.json").exists()


def test_a_command_ends_where_it_cannot_have_memory(tmp_path):
    """OpenBLAS waits for the memory of its threads, with Python's lock in its hands."""

    def start(megabytes: int) -> subprocess.Popen:
        output = tmp_path / str(megabytes)
        flags = {"corpus": "sample:400", "output": output, **SETTINGS}
        words = command_words("summarize", **flags)
        limit = (megabytes << 20, megabytes << 20)
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *words, "--workers=1"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
            **dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL),
        )

    processes = [start(megabytes) for megabytes in (500, 600, 800)]
    until = time.monotonic() + 30
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0))
            process.terminate()
        for process in processes:
            assert process.wait(LIMIT_SECONDS) in (0, 1, 128 + TERM)
    finally:
        for process in processes:
            process.kill()
