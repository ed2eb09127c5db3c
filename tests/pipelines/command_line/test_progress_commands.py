"""Tests of what whole commands show of their progress."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from support.command_line import precis, write_jsonl
from support.signalled import PROGRAM, ROOT, shell_environment
from support.terminal import Terminal


@pytest.mark.slow
def test_the_objects_of_a_run_sum_up_to_its_manifest(tmp_path, capsys):
    """Of 300 documents in two files some are alike, empty, broken or flagged."""
    for name in (0, 1):
        rain = "Rain fell for {} hours in {}. The river rose."
        texts = [rain.format(n % 140, name) for n in range(150)]
        lines = [{"id": f"{name}-{n}", "article": text} for n, text in enumerate(texts)]
        broken = ["{broken", "[]", b'{"article": 7}', {"id": f"{name}", "article": ""}]
        write_jsonl(tmp_path / f"{name}.jsonl", [*lines, *broken[name:]])
    corpus = f"jsonl:{tmp_path}/*.jsonl"
    flags = {"corpus": corpus, "output": tmp_path / "run", "deduplicate": True}
    shares = {"max_failed_share": 1, "max_empty_share": 1}
    work = {"task_bytes": 20_000, "workers": 2, "progress": "json"}
    assert precis("summarize", **flags, **shares, **work) == 0
    done = capsys.readouterr()
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert all(line["time"] and line["command"] for line in lines)
    stages = {line["stage"]: line for line in lines if line["state"] == "done"}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    counts = manifest["counts"]
    assert counts["duplicates"] and counts["failed"] and counts["empty"]
    assert list(stages) == ["keys", "summarize"]
    summarized = stages["summarize"]
    for stage in stages.values():
        assert stage["documents"] == stage["total"] == counts["read"]
        assert not stage["is_total_estimated"] and stage["rate"] > 0
    assert summarized["dead_letters"] == counts["failed"] + counts["empty"]
    rows = pq.read_table(tmp_path / "run" / "data").column("quality_flags").to_pylist()
    assert summarized["flagged"] == sum(map(bool, rows)) > 0
    assert "next: " in done.out and "{" not in done.out.split("next: ")[0]


@pytest.mark.slow
def test_no_line_of_a_terminal_wraps_and_ctrl_c_gives_it_back(tmp_path):
    flags = ("--corpus", "sample:20000", "--output", tmp_path / "run")
    with Terminal(columns=80) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, "summarize", *map(str, flags)],
            **dict.fromkeys(("stdin", "stdout", "stderr"), terminal.writer),
            **{"cwd": ROOT, "env": shell_environment(TERM="xterm")},
            start_new_session=True,
        )
        written = ""
        while not re.search(r"\d/s  \d", Terminal.without_codes(written)):
            assert process.poll() is None and len(written) < 1 << 20, written
            written += terminal.read()
        os.kill(process.pid, signal.SIGINT)
        until = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < until:
            written += terminal.read()
        written += terminal.read()
    assert process.wait(10) == 130
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") > 0
    said = Terminal.without_codes(written)
    assert "summarize  stopped  " in said
    assert "stopped by SIGINT; finished work is kept" in written
