"""Search processes: the same hypotheses as here, errors with their words, no process
left behind. Each test starts real processes.
"""

import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from precis.model import files
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError, JobError, UsageError
from precis.model.inference import worker_pool as module
from precis.model.inference.bulk import BulkSummarizer
from precis.model.inference.summarizer import Summarizer
from precis.model.inference.worker_pool import (
    Search,
    SearchPool,
    count_processes,
    load_searcher,
    refuse_within_import,
)
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from tests import plain_network
from tests.small_network import make_network

TOKENIZER = Tokenizer(
    [*RESERVED_TOKENS, "▁", "▁␤", *(f"▁{letter}" for letter in "abcdefghij")]
)
CONFIG = SearchConfig(beam_width=3, n_best=2)
ROOT = Path(__file__).parent.parent


def sources(count, *, longest=20):
    random = np.random.default_rng(5)
    return [
        random.integers(6, 16, size=random.integers(0, longest + 1)).astype("int32")
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    shape = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 8,
        "feed_forward": 12,
        "heads": 2,
    }
    limits = {"max_source_tokens": 17, "max_target_tokens": 6}
    network = build_network(
        TransformerConfig(
            vocabulary_size=TOKENIZER.vocabulary_size,
            pad_id=TOKENIZER.pad_id,
            **shape,
            **limits,
        )
    )
    plain_network.scramble(network, seed=1, scale=0.7)
    folder = str(tmp_path_factory.mktemp("bundle"))
    model_id = save_bundle(folder, network=network, tokenizer=TOKENIZER, provenance={})
    return Search(folder, model_id, "float32", CONFIG)


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


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_processes_find_what_is_found_here(search, monkeypatch, pool_of):
    monkeypatch.setattr(
        "precis.model.inference.batches.BATCH_BEAM_TOKENS", 32 * 3 * 2
    )  # batches of two
    documents, bulk = sources(15), BulkSummarizer(search, processes=2)
    bulk.pool = pool_of(search, 2)
    assert bulk.pays_for_processes(documents)
    first, second = (
        bulk.begin(part, in_processes=True) for part in (documents, documents[:3])
    )  # two windows on their way
    assert len(multiprocessing.active_children()) == 2
    here = bulk.begin(documents, in_processes=False)
    found, expected = first.summaries(), here.summaries()
    assert [[item.text for item in ranked] for ranked in found] == [
        [item.text for item in ranked] for ranked in expected
    ]
    for ranked, others in zip(found, expected, strict=True):
        assert [item.score for item in ranked] == pytest.approx(
            [item.score for item in others], abs=1e-5
        )
    tokens = [
        [
            [one.tokens for one in ranked]
            for batch in window.searched
            for ranked in batch.found
        ]
        for window in (first, here)
    ]
    assert tokens[0] == tokens[1] and len({str(ranked) for ranked in tokens[0]}) > 5
    assert [item.text for ranked in second.summaries() for item in ranked] == [
        item.text for ranked in found[:3] for item in ranked
    ]
    assert sum(batch.source_tokens for batch in first.searched) == sum(
        min(17, len(source)) for source in documents
    )
    alone = Summarizer(load_searcher(search)._network, TOKENIZER, CONFIG).summarize(
        documents
    )
    assert [[item.text for item in ranked] for ranked in found] == [
        [item.text for item in ranked] for ranked in alone
    ]


@pytest.mark.slow
def test_a_process_that_is_killed_is_told_and_the_next_batch_gets_another(
    search, pool_of
):
    pool = pool_of(search, 1)
    assert len(pool.result(pool.submit(sources(3))).found) == 3
    assert pool._executor.submit(threads).result() == (1, 1)
    (process,) = multiprocessing.active_children()
    os.kill(process.pid, signal.SIGSTOP)  # so that the batch is under way for certain
    future = pool.submit(sources(3))
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(
        JobError,
        match="a search process died before its batch was done, .* memory .* a smaller --search_processes",
    ):
        pool.result(future)
    assert len(pool.result(pool.submit(sources(3))).found) == 3


@pytest.mark.slow
def test_what_a_process_raises_arrives_with_its_words(search, pool_of, tmp_path):
    other = pool_of(search._replace(model_id="0" * 16), 1)
    missing = pool_of(search._replace(bundle=str(tmp_path / "none")), 1)
    damaged = [other.submit(sources(2)), missing.submit(sources(2))]
    with pytest.raises(
        DataError,
        match=f"holds model {search.model_id} now, and this job began with 0000000000000000; put that model back",
    ):
        other.result(damaged[0])
    with pytest.raises(UsageError, match="none: this is no complete bundle"):
        missing.result(damaged[1])


@pytest.mark.slow
def test_a_defect_in_a_process_arrives_with_its_kind_and_words(search, pool_of):
    pool = pool_of(search, 1)
    with pytest.raises(
        JobError, match="a search process failed: ValueError: could not broadcast"
    ):
        pool.result(
            pool.submit([np.zeros(18, "int32")])
        )  # longer than the network reads
    assert len(pool.result(pool.submit(sources(2))).found) == 2


PROGRAM = """
import multiprocessing, sys, time
import numpy as np
from precis.model.search.config import SearchConfig
from precis.model.inference.worker_pool import Search, SearchPool

if __name__ == "__main__":
    pool = SearchPool(Search(sys.argv[1], sys.argv[2], "float32", SearchConfig(beam_width=2)), processes=2)
    futures = [pool.submit([np.full(3, 7, "int32")]) for _ in range(4)]
    for future in futures: pool.result(future)
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(600)
"""


def is_running(pid):
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


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
        f"import precis\nprecis.summarize(corpus='sample:300', bundle={search.bundle!r}, output={str(tmp_path / 'out')!r}, "
        "search_processes=2, max_summary_tokens=2, beam_width=4)\n"
    )
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 1
    assert (
        "UsageError: a search process reads the script that started it: put what it does under `if __name__"
        in done.stderr
    )
    assert (
        done.stderr.rstrip()
        .splitlines()[-1]
        .startswith("precis.model.errors.JobError: a search process died")
    )


def test_a_script_is_refused_while_a_process_reads_it(monkeypatch):
    refuse_within_import()
    monkeypatch.setattr(
        multiprocessing.current_process(), "_inheriting", True, raising=False
    )
    with pytest.raises(
        UsageError,
        match="reads the script that started it: put what it does under .* or .* search_processes=1",
    ):
        refuse_within_import()


def test_the_last_user_ends_the_processes(search, monkeypatch):
    ended = []

    class Executor:
        def __init__(self, *_, **__): ...

        def submit(self, *_): ...

        def shutdown(self, *, cancel_futures):
            ended.append(cancel_futures)

    monkeypatch.setattr(module, "ProcessPoolExecutor", Executor)
    pool = SearchPool(search, processes=2)
    pool.retain()
    pool.retain()
    pool.submit([])
    pool.release()
    assert ended == []
    pool.release()
    assert ended == [True]


def test_one_process_a_core_unless_there_is_an_accelerator(monkeypatch):
    cores = len(os.sched_getaffinity(0))
    assert count_processes(0) == cores and count_processes(cores + 3) == cores + 3
    import tensorflow as tf

    for kind in ("GPU", "TPU"):
        monkeypatch.setattr(
            tf.config,
            "list_physical_devices",
            lambda asked, kind=kind: [kind] if asked == kind else [],
        )
        assert count_processes(0) == 1 and count_processes(3) == 3
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert count_processes(3) == 1


def test_few_documents_are_not_worth_a_process(search):
    bulk = BulkSummarizer(search, processes=2)
    assert not bulk.pays_for_processes(sources(85 * 3)) and bulk.pays_for_processes(
        sources(85 * 3 + 1)
    )  # 256 hypotheses a batch
    assert not BulkSummarizer(search, processes=1).pays_for_processes(sources(1000))


def test_another_model_in_the_folder_is_refused(search):
    with pytest.raises(
        DataError, match="holds model [0-9a-f]{16} now, and this job began with ffff"
    ):
        BulkSummarizer(search._replace(model_id="ffff"), processes=1)
    with pytest.raises(
        DataError, match="put that model back, or begin anew with another --output"
    ):
        load_searcher(search._replace(model_id="ffff"))


def test_a_coverage_penalty_needs_a_pointer_before_weights_are_read(search, tmp_path):
    network = make_network(
        "plain", vocabulary_size=TOKENIZER.vocabulary_size, pad_id=TOKENIZER.pad_id
    )
    own = Tokenizer(TOKENIZER.vocabulary, lower_case=True)
    model_id = save_bundle(
        str(tmp_path),
        network=network,
        tokenizer=TOKENIZER,
        source_tokenizer=own,
        provenance={},
    )
    (tmp_path / "weights.safetensors").unlink()
    without = search._replace(bundle=str(tmp_path), model_id=model_id)
    bulk = BulkSummarizer(without, processes=1)
    assert (
        bulk.source_tokenizer.fingerprint
        == own.fingerprint
        != bulk.tokenizer.fingerprint
        and bulk.max_source_tokens == 7
    )
    config = dataclasses.replace(CONFIG, coverage_penalty=0.2)
    with pytest.raises(
        UsageError,
        match="--coverage_penalty weighs what the pointer has read .* this network has no pointer",
    ):
        BulkSummarizer(without._replace(config=config), processes=1)
    BulkSummarizer(search._replace(config=config), processes=1)


def test_the_precision_reaches_the_network(search):
    assert (
        load_searcher(
            search._replace(precision="mixed_bfloat16")
        )._network.compute_dtype
        == "bfloat16"
    )
    assert load_searcher(search)._network.compute_dtype == "float32"


def test_the_bundle_is_checked_without_its_weights(search, tmp_path):
    for name in (
        "config.json",
        "manifest.json",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    ):
        files.write_bytes(
            files.join(str(tmp_path), name),
            files.read_bytes(files.join(search.bundle, name)),
        )
    bulk = BulkSummarizer(search._replace(bundle=str(tmp_path)), processes=1)
    with pytest.raises(DataError, match="weights.safetensors: missing"):
        bulk.begin(sources(2), in_processes=False).summaries()
