"""Tests of tasks that are done in several processes of this machine."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from support.processes import processes_of_session
from support.waiting import wait_until

from precis.model.errors import DataError, JobError
from precis.model.inference import process_limits
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.engines.local_processes import (
    count_workers,
    in_processes,
    run_do_fn,
)


class Number(NamedTuple):
    value: int
    paths: tuple[str, ...] = ()


class Spell(beam.DoFn):
    """Yields the process that it runs in, tagged, and as many letters as a number."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder

    def process(self, number):
        if number.value == 13:
            raise DataError("13 cannot be spelled")
        if number.value == 14:
            raise BadError("of two", "arguments")
        if number.value == 15:
            os.kill(os.getpid(), signal.SIGKILL)
        if number.value == 16 and not os.path.exists(self._folder + "/died"):
            Path(self._folder, "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield beam.pvalue.TaggedOutput("processes", os.getpid())
        yield from "x" * number.value


class BadError(Exception):
    """Cannot be pickled, because its arguments are not those of its message."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def size(number):
    return number.value


@pytest.mark.slow
def test_processes_share_the_elements_of_a_pipeline():
    spell = in_processes(Spell(), 2, size=size)
    with beam.Pipeline(options=pipeline_options([])) as pipeline:
        spelled = (
            pipeline
            | beam.Create([Number(3), Number(0), Number(2)])
            | beam.ParDo(spell).with_outputs("processes", main="letters")
        )
        assert_that(spelled.letters, equal_to(["x"] * 5), label="letters")
        elsewhere = spelled.processes | beam.Map(lambda pid: pid != os.getpid())
        assert_that(elsewhere, equal_to([True] * 3), label="processes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (13, DataError, "^13 cannot be spelled$"),
        (14, JobError, "^BadError: of two arguments$"),
        (15, JobError, "died twice with the same task .a.jsonl, b.jsonl.*--workers 1"),
    ],
)
def test_an_error_of_a_process_ends_all(number, kind, message):
    numbers = [Number(number, ("a.jsonl", "b.jsonl")), *map(Number, range(8))]
    with pytest.raises(kind, match=message):
        list(run_do_fn(Spell(), numbers, 2))
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_process_that_dies_once_costs_nothing(tmp_path):
    outputs = run_do_fn(Spell(str(tmp_path)), [Number(16), Number(2)], 2)
    assert sorted(filter(lambda output: output == "x", outputs)) == ["x"] * 18
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


@pytest.mark.parametrize(
    ("asked", "arguments", "tasks", "size", "expected"),
    [
        (0, [], 10, 100, 1),  # a small job
        (0, [], 10, 10**9, 4),
        (0, [], 3, 10**9, 3),
        (2, [], 10, 100, 2),  # it is asked for
        (2, ["--runner=direct"], 10, 100, 2),
        (9, [], 10, 10**9, 9),
        (1, [], 10, 10**9, 1),
        (0, ["--runner=FlinkRunner"], 10, 10**9, 1),
        (1, ["--runner=FlinkRunner"], 10, 10**9, 1),
        (0, ["--direct_num_workers=2"], 10, 10**9, 1),
        (0, ["--direct_running_mode=multi_processing"], 10, 10**9, 1),
    ],
)
def test_as_many_processes_as_pay(monkeypatch, asked, arguments, tasks, size, expected):
    monkeypatch.setattr(
        process_limits.os, "sched_getaffinity", lambda pid: range(4), raising=False
    )
    monkeypatch.setattr(process_limits, "_CPU_QUOTA", "missing")
    options = pipeline_options(arguments)
    assert count_workers(asked, options, tasks=tasks, size=size) == expected


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 4), ("150000 100000", 2), ("50000 100000", 1), ("", 4)],
)
def test_a_container_may_have_fewer_cores(tmp_path, monkeypatch, quota, cores):
    monkeypatch.setattr(
        process_limits.os, "sched_getaffinity", lambda pid: range(4), raising=False
    )
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    monkeypatch.setattr(process_limits, "_CPU_QUOTA", str(file))
    assert process_limits.usable_cores() == cores
