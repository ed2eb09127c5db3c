"""Tests of what a command starts before it imports Beam."""

import os
import subprocess
import sys

import pytest

from precis.model import processes
from precis.pipelines.command_line import run_command
from precis.pipelines.run.options import LEAST_BYTES, TASK_IMPORTS


class Stopped(Exception):
    """Raised in place of the import of Beam."""


@pytest.mark.parametrize(
    ("corpus", "flags", "cores", "starts"),
    [
        ("text:large.txt", [], 2, True),
        ("text:l*.txt", [], 2, True),
        ("text:folder", [], 2, True),
        ("text:small.txt,text:large.txt", [], 2, True),
        ("text:large.txt", [], 1, False),
        ("text:large.txt", ["--workers", "1"], 2, False),
        ("text:large.txt", ["--limit", "9"], 2, False),
        ("text:large.txt", ["--sample", "9"], 2, False),
        ("text:large.txt", ["--bundle", "b"], 2, False),
        ("text:large.txt", ["--checker", "c"], 2, False),
        ("text:large.txt", ["--runner", "FlinkRunner"], 2, False),
        ("text:small.txt", [], 2, False),
        ("text:small.txt", ["--workers", "2"], 1, True),
        ("text:none.txt", ["--workers", "2"], 2, False),
        ("text:gs://bucket/large.txt", [], 2, False),
        ("sample:9", [], 2, False),
    ],
)
def test_a_large_corpus_of_files_starts_the_fork_server(
    corpus, flags, cores, starts, tmp_path, monkeypatch
):
    def stop(*_):
        raise Stopped

    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "small.txt").write_bytes(b"x" * (LEAST_BYTES - 1))
    for name in ("large.txt", "folder/a.txt", "9"):
        (tmp_path / name).write_bytes(b"x" * LEAST_BYTES)
    started = []
    monkeypatch.setattr(processes, "start_fork_server", started.append)
    monkeypatch.setattr(processes, "usable_cores", lambda: cores)
    monkeypatch.setattr(run_command, "load_beam", stop)
    words = ["summarize", "--corpus", corpus, "--output", "out", *flags]
    with pytest.raises(Stopped):
        run_command.run_command(words)
    assert started == [TASK_IMPORTS] * starts


def test_a_refused_command_leaves_no_process_behind(tmp_path):
    """Whoever reads its output would wait for the process too."""
    (tmp_path / "a.jsonl").write_text('{"article": "Rain fell."}\n')
    (tmp_path / "slow_import.py").write_text("import time\ntime.sleep(120)\n")
    program = (
        "from precis.pipelines.command_line import cli, run_command\n"
        "run_command.TASK_IMPORTS = 'slow_import'\n"
        "cli.main()\n"
    )
    words = ["summarize", "--corpus", f"jsonl:{tmp_path}/a.jsonl", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words, "--output", "out", "--split", "dev"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode and "dev" in done.stderr
