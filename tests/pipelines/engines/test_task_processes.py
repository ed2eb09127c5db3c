"""Tests of work that several processes of this machine share."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from support.processes import processes_of_session, wait_until

from precis.model import processes
from precis.model.errors import DataError, JobError
from precis.pipelines.engines.beam_runner import count_workers, pipeline_options
from precis.pipelines.engines.tasks import TaskReport, TaskWorker, run_tasks_here


class Number(NamedTuple):
    value: int
    paths: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        return self.value


class BadError(Exception):
    """Cannot be pickled, because its arguments are not those of its message."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class SpellingWorker(TaskWorker):
    """Gives the process, and as many letters as a number."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def run(self, task, progress, dead_letters):
        if task.value == 13:
            raise DataError("13 cannot be spelled")
        if task.value == 14:
            raise BadError("of two", "arguments")
        if task.value == 15:
            os.kill(os.getpid(), signal.SIGKILL)
        if task.value == 16 and not os.path.exists(self.folder + "/died"):
            Path(self.folder, "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return TaskReport({}, [], (os.getpid(), "x" * task.value))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (13, DataError, "^13 cannot be spelled$"),
        (14, JobError, "^BadError: of two arguments$"),
        (
            15,
            JobError,
            "died twice with the same task .a.jsonl, b.jsonl.*fewer --workers",
        ),
    ],
)
def test_an_error_of_a_process_ends_all(number, kind, message):
    numbers = [Number(number, ("a.jsonl", "b.jsonl")), *map(Number, range(8))]
    with pytest.raises(kind, match=message):
        list(run_tasks_here(numbers, SpellingWorker(), None, 2))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_process_that_dies_once_costs_nothing(tmp_path):
    worker = SpellingWorker(str(tmp_path))
    reports = run_tasks_here([Number(2), Number(16)], worker, None, 2)
    pids, words = zip(*(report.figures for report in reports), strict=True)
    assert sorted(map(len, words)) == [2, 16] and os.getpid() not in pids
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_the_processes_end_with_the_one_that_started_them(tmp_path):
    command = [sys.executable, "-m", "precis.pipelines.command_line.cli", "summarize"]
    options = ["--corpus", "sample:20000", "--workers", "2"]
    with subprocess.Popen(
        [*command, *options, "--output", str(tmp_path / "run")],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    ) as job:
        wait_until(lambda: len(processes_of_session(job.pid)) >= 4)
        job.kill()
    wait_until(lambda: not processes_of_session(job.pid))
    assert not (tmp_path / "run" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("quota", "asked", "arguments", "tasks", "size", "expected"),
    [
        ("max 100000", 0, [], 10, 100, 1),  # a small job
        ("", 0, [], 10, 10**9, 4),
        ("max 100000", 0, [], 10, 10**9, 4),
        ("150000 100000", 0, [], 10, 10**9, 2),  # of a container
        ("50000 100000", 0, [], 10, 10**9, 1),
        ("max 100000", 0, [], 3, 10**9, 3),
        ("max 100000", 2, ["--runner=direct"], 10, 100, 2),  # it is asked for
        ("max 100000", 9, [], 10, 10**9, 9),
        ("max 100000", 1, ["--runner=FlinkRunner"], 10, 10**9, 1),
    ],
)
def test_as_many_processes_as_pay_of_four_cores(
    tmp_path, monkeypatch, quota, asked, arguments, tasks, size, expected
):
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processes, "_CPU_QUOTA", str(tmp_path / "cpu.max"))
    affinity = "sched_getaffinity"
    monkeypatch.setattr(processes.os, affinity, lambda _: range(4), raising=False)
    options = pipeline_options(arguments)
    assert count_workers(asked, options, tasks=tasks, size=size) == expected
