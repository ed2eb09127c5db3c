"""Search processes: their results and errors arrive with the same words, and no process
is left behind. The slow tests start real processes.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.small_search import random_sources, small_search
from support.waiting import wait_until

from precis.model.errors import DataError, UsageError
from precis.model.inference import process_limits
from precis.model.inference.process_limits import count_processes, refuse_within_import
from precis.model.inference.worker_pool import SearchPool, load_searcher

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    return small_search(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def pool_of():
    """A function that makes a pool, which is closed when the test ends."""
    pools = []

    def make(search, processes):
        pools.append(SearchPool(search, processes=processes))
        pools[-1].retain()
        return pools[-1]

    yield make
    for pool in pools:
        pool.release()
    assert multiprocessing.active_children() == []


def threads():
    import tensorflow as tf

    return (
        tf.config.threading.get_intra_op_parallelism_threads(),
        tf.config.threading.get_inter_op_parallelism_threads(),
    )


def tokens(searched):
    """The first hypothesis of each document; None for one that failed."""
    return [ranked[0].tokens if ranked else None for ranked in searched.hypotheses]


@pytest.mark.slow
def test_a_process_that_fails_or_is_killed_is_replaced(search, pool_of):
    pool = pool_of(search, 1)
    longer_than_the_network_reads = np.zeros(18, "int32")
    failed = pool.submit([longer_than_the_network_reads, *random_sources(2)]).result()
    assert list(failed.failures) == [0]
    assert failed.failures[0].detail.startswith(
        "ValueError at precis/model/inference/searcher.py:"
    )
    expected = tokens(pool.submit(random_sources(2)).result())
    assert tokens(failed) == [None, *expected]
    assert pool._calls.call(threads) == (1, 1)
    (process,) = multiprocessing.active_children()
    os.kill(process.pid, signal.SIGSTOP)  # so that the batch is under way for certain
    future = pool.submit(random_sources(2))
    os.kill(process.pid, signal.SIGKILL)
    assert tokens(future.result()) == expected
    assert future.result().failures == {}


@pytest.mark.slow
def test_every_batch_of_a_process_without_a_model_raises_the_same_error(
    search, pool_of
):
    """The first failure to load the bundle leaves the process as it was."""
    pool = pool_of(search._replace(model_id="0" * 16), 1)
    futures = [pool.submit(random_sources(2)) for _ in range(2)]
    for future in futures:
        with pytest.raises(
            DataError,
            match=f"holds model {search.model_id} now, and this job began with "
            "0000000000000000; put that model back",
        ):
            future.result()


PROGRAM = """
import multiprocessing, sys, time
import numpy as np
from precis.model.search.config import SearchConfig
from precis.model.inference.worker_pool import ModelSearch, SearchPool

if __name__ == "__main__":
    config = SearchConfig(beam_width=2)
    search = ModelSearch(sys.argv[1], sys.argv[2], "float32", config)
    pool = SearchPool(search, processes=2)
    futures = [pool.submit([np.full(3, 7, "int32")]) for _ in range(4)]
    for future in futures: future.result()
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(600)
"""


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_no_process_outlives_its_killed_parent(search, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable,
        str(tmp_path / "program.py"),
        search.bundle,
        search.model_id,
    ]
    parent = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    try:
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2 and all(map(is_running, children))
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
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
    script = (
        "import precis\n"
        f"precis.summarize(corpus='sample:300', bundle={search.bundle!r}, "
        f"output={str(tmp_path / 'out')!r}, search_processes=2, max_summary_tokens=2, "
        "beam_width=4)\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert (
        "UsageError: a search process reads the script that started it: put what it "
        "does under `if __name" in done.stderr
    )
    last_line = done.stderr.rstrip().splitlines()[-1]
    assert last_line.startswith("precis.model.errors.JobError: a search process died")


def test_a_script_is_refused_while_a_process_imports_it(monkeypatch):
    refuse_within_import()
    monkeypatch.setattr(
        multiprocessing.current_process(), "_inheriting", True, raising=False
    )
    with pytest.raises(
        UsageError,
        match="reads the script that started it: put what it does under .* or .* "
        "search_processes=1",
    ):
        refuse_within_import()


def test_one_process_a_core_unless_there_is_an_accelerator(monkeypatch):
    cores = len(os.sched_getaffinity(0))
    assert count_processes(0) == cores
    assert count_processes(cores + 3) == cores + 3
    import tensorflow as tf

    monkeypatch.setattr(process_limits, "has_accelerator", lambda: True)
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


def test_the_precision_reaches_the_network(search):
    rounded = load_searcher(search._replace(precision="mixed_bfloat16"))
    assert rounded._network.compute_dtype == "bfloat16"
    assert load_searcher(search)._network.compute_dtype == "float32"
