"""Tests of what is counted while a job runs, across threads and processes."""

import os
import subprocess
import sys
import threading

import pytest

from precis.model.progress.counters import (
    FOLDER_VARIABLE,
    Counts,
    count,
    counting_folder,
    enter_step,
    totals,
)
from precis.model.progress.stages import Stage, StageGroup, about
from precis.pipelines.corpus.task import Position
from precis.pipelines.run.progress import TaskProgress


@pytest.fixture
def counters(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    enter_step("")
    return str(tmp_path)


def total(folder):
    return totals(folder).get("", Counts())


def done(folder):
    return total(folder)[:2]


def test_counts_of_threads_add_up(counters):
    def work(size):
        for _ in range(500):
            count(documents=1, size=size)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done(counters) == (4 * 500, 500 * (1 + 2 + 3 + 4))


def test_counts_of_processes_add_up_on_one_clock(counters):
    code = (
        "from precis.model.progress.counters import count;"
        "count(documents=2, size=20, tokens=7); count(documents=3, size=30, flagged=1)"
    )
    count(documents=1, size=10, dead_letters=1)
    before = total(counters)
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    after = total(counters)
    assert after[:5] == (11, 110, 14, 1, 2)
    assert after.started == before.started and after.ended > before.ended


def test_steps_count_for_their_stages_and_all_others_for_the_last():
    stages = [Stage(name="read", step="scan"), Stage(name="write", step="infer")]
    with counting_folder() as folder:
        for step, documents in (("scan", 5), ("publish", 2), ("infer", 3)):
            enter_step(step)
            count(documents=documents)
        enter_step("")
        of_scan, of_infer = StageGroup(stages, folder).counts()
    assert (of_scan.documents, of_infer.documents) == (5, 5)
    # What `publish` did before the first task of `infer` does not start the clock.
    assert of_infer.started == of_infer.ended > of_scan.ended
    assert not os.path.exists(folder) and FOLDER_VARIABLE not in os.environ


def test_the_first_units_and_those_of_an_earlier_run_are_told_apart(counters):
    stage = Stage(name="train", total=100, unit="steps")
    stage.resume(40)
    assert total(counters).started == 0.0
    stage.advance(10, tokens=700)
    first = total(counters)
    assert (first.earlier_documents, first.documents, first.tokens) == (40, 10, 700)
    assert first.first_documents == 10 and first.started == first.first > 0
    stage.advance(10, tokens=900)
    assert stage.counted("result") == "result"
    counts = total(counters)
    assert (counts.documents, counts.tokens, counts.first_documents) == (21, 1_600, 10)
    assert stage.measured == 11 and stage.began <= first.first


def test_a_time_has_its_two_largest_units():
    hour, day = 3_600, 86_400
    times = (20, 119, 3_590, hour + 300, 23.8 * hour, 46 * hour, 30 * day)
    assert [about(seconds).removeprefix("about ") for seconds in times] == [
        *("1 min", "2 min", "1 h 0 min", "1 h 5 min", "1 d 0 h", "1 d 22 h", "30 d 0 h")
    ]


@pytest.mark.parametrize("shares", [[0.1, 0.3], [0.6, 1.2], []])
def test_what_is_counted_of_a_task_adds_up_to_its_size(counters, shares):
    task = TaskProgress(100)
    for documents, share in enumerate(shares, start=1):
        task.advance_to(Position(documents, share))
        assert done(counters) == (documents, min(round(100 * share), 100))
    task.finish()
    task.finish()
    assert done(counters) == (len(shares), 100)


def test_a_part_of_a_window_counts_from_the_end_of_the_window_before(counters):
    task = TaskProgress(1000)
    task.advance_to(Position(100, 0.2))
    counted = []
    for part in (0.25, 0.5, 1.0):
        task.advance_to(Position(300, 0.6), part)
        counted.append(done(counters))
    task.advance_to(Position(300, 0.6))
    assert counted == [(150, 300), (200, 400), (300, 600)]
    assert done(counters) == (300, 600)
