"""Search processes: their results and errors arrive with the same words, and no process
is left behind. The slow tests start real processes.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
from support.processes import is_running, wait_until

from precis.model import processes
from precis.model.processes import count_processes, start_fork_server

ROOT = Path(__file__).parents[3]

PROGRAM = """
import multiprocessing, sys, time
import numpy as np
from precis.model.search.config import SearchConfig
from precis.model.inference.bulk_summarizer import BulkSummarizer, ModelSearch

if __name__ == "__main__":
    config = SearchConfig(beam_width=2)
    search = ModelSearch(sys.argv[1], sys.argv[2], "float32", config)
    bulk = BulkSummarizer(search, processes=2)
    searches = [bulk.submit([np.full(3, 7, "int32")]) for _ in range(4)]
    for search in searches: search()
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_no_process_outlives_its_killed_parent(search, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    program = [str(tmp_path / "program.py"), search.bundle, search.model_id]
    with subprocess.Popen(
        [sys.executable, *program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as parent:
        children = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(children) == 2
    try:
        wait_until(lambda: not any(map(is_running, children)))
    finally:
        for pid in filter(is_running, children):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_script_without_a_guard_is_stopped_before_it_runs_twice(search, tmp_path):
    """The processes read the script again, up to the call; the job in the parent says
    what to do.
    """
    (tmp_path / "script.py").write_text(
        "import precis\n"
        f"precis.summarize(corpus='sample:300', bundle={search.bundle!r}, "
        f"output={str(tmp_path / 'out')!r}, search_processes=2, max_summary_tokens=2, "
        "beam_width=4)\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert (
        "UsageError: each search process imports the script that started it; put the "
        "work of the script under `if __name" in done.stderr
    )
    last_line = done.stderr.rstrip().splitlines()[-1]
    assert last_line.startswith("precis.model.errors.JobError: a search process died")


def test_one_process_a_core_unless_there_is_an_accelerator(monkeypatch):
    cores = len(os.sched_getaffinity(0))
    assert count_processes(0) == cores
    assert count_processes(cores + 3) == cores + 3
    import tensorflow as tf

    monkeypatch.setattr(processes, "has_accelerator", lambda: True)
    assert count_processes(0) == cores
    for kind in ("GPU", "TPU"):
        monkeypatch.setattr(
            tf.config,
            "list_physical_devices",
            lambda asked, kind=kind: [kind] if asked == kind else [],
        )
        assert count_processes(0) == 1
        assert count_processes(3) == 3
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert count_processes(3) == 1


def test_processes_are_not_forked_below_a_long_path(tmp_path, monkeypatch):
    folder = tmp_path / ("temporary files " * 6)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    process = start_fork_server("precis.model.errors").Process(target=os.getpid)
    process.start()
    process.join()
    assert process.exitcode == 0 and isinstance(process, SpawnProcess)


def test_the_fork_server_runs_before_a_process_is_started():
    program = (
        "import multiprocessing.forkserver as server; "
        "from precis.model.processes import start_fork_server; "
        "start_fork_server('precis.model.errors'); "
        "print(server._forkserver._forkserver_pid is not None)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{sys.platform == 'linux'}\n"
