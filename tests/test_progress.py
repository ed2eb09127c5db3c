"""Tests of the live counters."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from precis.pipelines import progress
from precis.pipelines.progress import (
    FOLDER_VARIABLE,
    TaskProgress,
    advance,
    show_progress,
    total,
)


@pytest.fixture
def counters(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return str(tmp_path)


def test_nothing_happens_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    advance(3, 100)
    TaskProgress(10).finish()
    assert os.listdir(tmp_path) == []


def test_a_folder_without_counters_is_nothing_done(tmp_path):
    assert total(str(tmp_path)) == (0, 0)


def test_counts_of_one_worker_add_up(counters):
    advance(3, 100)
    advance(2, 1 << 40)
    assert total(counters) == (5, (1 << 40) + 100)
    assert len(os.listdir(counters)) == 1


def test_every_thread_counts_into_a_file_of_its_own(counters):
    workers = [ThreadPoolExecutor(max_workers=1) for _ in range(4)]
    for number, worker in enumerate(workers, start=1):
        worker.submit(advance, 1, number).result()
    assert len(os.listdir(counters)) == 4
    submitted = [
        worker.submit(lambda n: [advance(1, n) for _ in range(500)], number)
        for number, worker in enumerate(workers, start=1)
    ]
    for future in submitted:
        future.result()
    for worker in workers:
        worker.shutdown()
    assert (
        total(counters) == (4 * 501, 501 * (1 + 2 + 3 + 4))
        and len(os.listdir(counters)) == 4
    )


def test_counts_of_processes_add_up(counters):
    advance(1, 10)
    code = (
        "from precis.pipelines.progress import advance; advance(2, 20); advance(3, 30)"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env=dict(os.environ),
        check=True,
        timeout=60,
    )
    assert total(counters) == (6, 60)


def test_a_thread_counts_into_the_folder_of_the_job_that_runs(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / name))
        advance(1, 7)
    assert [total(str(tmp_path / name)) for name in ("first", "second")] == [
        (1, 7),
        (1, 7),
    ]


def test_a_file_that_is_just_being_made_counts_nothing(counters):
    advance(1, 7)
    (Path(counters) / "new").write_bytes(b"\x05\x00\x00")
    assert total(counters) == (1, 7)


@pytest.mark.parametrize("sizes", [[10, 20], [60, 60, 60], []])
def test_the_bytes_of_a_task_add_up_to_its_size(counters, sizes):
    task = TaskProgress(100)
    for size in sizes:
        task.advance(1, size)
        assert total(counters)[1] <= 100
    task.finish()
    task.finish()
    assert total(counters) == (len(sizes), 100)


def test_a_bar_shows_the_documents_of_all_workers(monkeypatch, capsys):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with show_progress("scan", 200):
        folder = os.environ[FOLDER_VARIABLE]
        advance(1234, 200)
        assert total(folder) == (1234, 200)
    assert FOLDER_VARIABLE not in os.environ and not os.path.exists(folder)
    last = capsys.readouterr().err.split("\r")[-1]
    assert "scan: 100%" in last and "1,234 documents" in last


def test_the_bar_goes_when_the_job_fails_and_the_variable_is_as_before(monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, "before")
    running = threading.active_count()
    with pytest.raises(ValueError, match="no"), show_progress("scan", 200):
        folder = os.environ[FOLDER_VARIABLE]
        raise ValueError("no")
    assert os.environ[FOLDER_VARIABLE] == "before" and not os.path.exists(folder)
    assert threading.active_count() == running


def test_the_bar_is_refreshed_while_the_job_runs(monkeypatch):
    monkeypatch.setattr(progress, "_REFRESH_SECONDS", 0.01)
    seen = threading.Event()
    real = progress.total
    monkeypatch.setattr(progress, "total", lambda folder: (seen.set(), real(folder))[1])
    with show_progress("scan", 200):
        assert seen.wait(5)
