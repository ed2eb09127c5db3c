"""Search processes that die, and documents that kill them or fail in them. The slow
tests start real processes.
"""

import contextlib
import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from support import poisoned_search
from support.processes import wait_until
from support.small_search import random_sources

from precis.model.errors import JobError
from precis.model.inference import bulk_summarizer
from precis.model.inference.bulk_summarizer import BulkSummarizer
from precis.model.isolation import Failure
from precis.model.processes import ProcessPool


@pytest.fixture
def poisoned(monkeypatch):
    """Poisoned searches."""
    monkeypatch.setattr(bulk_summarizer, "load_search", poisoned_search.load_search)


def tokens(searched):
    """The first hypothesis of each document; None for one that failed."""
    results = searched.results
    return [None if isinstance(each, Failure) else each[0].tokens for each in results]


@pytest.mark.slow
def test_only_the_guilty_documents_of_real_searches_fail(poisoned, bulk):
    """Documents kill their process, fail in it, or are too many for its memory; the
    others get the summaries that they get without them.
    """
    sources = [source for source in random_sources(30) if len(source) > 5][:8]
    sources = [np.minimum(source, 12) for source in sources]
    pairs = [sources[start : start + 2] for start in range(0, 8, 2)]
    with_enough_memory = [bulk.submit(pair) for pair in pairs]
    expected = [row for wait in with_enough_memory for row in tokens(wait())]
    guilty = {2: poisoned_search.KILLS, 5: poisoned_search.FAILS}
    with_guilty = [source.copy() for source in sources]
    for place, token in guilty.items():
        with_guilty[place][-1] = token
    innocent = bulk.submit(pairs[0])
    wait_for_poisoned = bulk.submit(with_guilty)
    beside = [bulk.submit(pair) for pair in pairs[1:]]
    searched = wait_for_poisoned()
    assert tokens(searched) == [
        None if place in guilty else ranked for place, ranked in enumerate(expected)
    ]
    killing, failing = searched.results[2], searched.results[5]
    assert (killing.reason, killing.retryable) == ("process_died", True)
    assert (failing.reason, failing.retryable) == ("error", False)
    assert failing.error_class == "InvalidArgumentError"
    place = "precis/model/inference/bulk_summarizer.py:"
    assert failing.detail.startswith(f"InvalidArgumentError at {place}")
    others = [innocent(), *(wait() for wait in beside)]
    assert [row for batch in others for row in tokens(batch)] == expected


class FakeProcesses:
    """Searches in this process; a document with the token KILLS is its death.

    Attributes:
      calls: the number of documents of each call; 0 for one that loads the bundle.
    """

    def __init__(self):
        self.threads = ThreadPoolExecutor(1)
        self.calls = []
        self.loads = True
        self.may_begin = threading.Event()
        self.may_begin.set()

    def call(self, sources):
        assert self.may_begin.wait(60)
        self.calls.append(len(sources))
        if poisoned_search.has(poisoned_search.KILLS, sources):
            raise BrokenProcessPool
        if not (sources or self.loads):
            raise BrokenProcessPool
        return poisoned_search.echo(sources)

    def close(self):
        self.threads.shutdown()


@pytest.fixture
def fake_pool(search):
    pool = BulkSummarizer(search, processes=1)
    pool._pool = FakeProcesses()
    pool.retain()
    yield pool
    pool.release()


def documents(*first_tokens):
    return [np.array([token, 7], "int32") for token in first_tokens]


def test_a_document_that_kills_fails_and_no_other(fake_pool):
    kills = poisoned_search.KILLS
    searched = fake_pool.submit(documents(1, 2, kills, 4))()
    assert tokens(searched) == [[1, 7], [2, 7], None, [4, 7]]
    assert fake_pool._pool.calls == [4, 0, 2, 2, 0, 1, 0, 1]
    assert searched.results[2] == (
        "search",
        "process_died",
        "the search process died, and died again when it searched only this document; "
        "most likely it ran out of memory",
        "BrokenProcessPool",
    )


def test_processes_that_die_whatever_they_do_end_the_job(fake_pool):
    kills = poisoned_search.KILLS
    match = "a search process died during its batch"
    fake_pool._pool.may_begin.clear()
    lost = fake_pool.submit(documents(*[kills] * 100))
    waiting = fake_pool.submit(documents(1))
    fake_pool._pool.may_begin.set()
    for wait in (lost, waiting):
        with pytest.raises(JobError, match=match):
            wait()
    assert fake_pool._pool.calls.count(0) == bulk_summarizer.MOST_DEATHS - 1


def test_one_document_among_many_does_not_end_the_job(fake_pool):
    kills = poisoned_search.KILLS
    searched = fake_pool.submit(documents(*range(20, 275), kills))()
    assert tokens(searched).index(None) == 255
    for _ in range(bulk_summarizer.MOST_DEATHS):  # with a batch between them
        assert tokens(fake_pool.submit(documents(kills))()) == [None]
        assert tokens(fake_pool.submit(documents(1))()) == [[1, 7]]


def test_a_process_that_dies_while_it_loads_the_bundle_ends_the_job(fake_pool):
    fake_pool._pool.loads = False
    with pytest.raises(JobError, match="a search process died during its batch"):
        fake_pool.submit(documents(poisoned_search.KILLS))()
    assert fake_pool._pool.calls == [1, 0]


def test_what_died_is_tried_again_while_nothing_else_runs(monkeypatch):
    """Three threads call; the process of the second dies at first."""
    events = []
    first_may_end, again_may_end = threading.Event(), threading.Event()
    processes = ProcessPool(3, int, imports="precis.model.errors")
    monkeypatch.setattr(processes, "_do", lambda function: function())

    def work(name, may_end):
        events.append(f"{name} begins")
        assert may_end.wait(60)
        events.append(f"{name} ends")

    def die_once():
        if "dies" not in events:
            events.append("dies")
            raise BrokenProcessPool
        work("again", again_may_end)

    with processes.threads as threads:
        threads.submit(processes.call, lambda: work("first", first_may_end))
        wait_until(lambda: events == ["first begins"])
        threads.submit(processes.call, die_once)
        wait_until(lambda: "dies" in events and processes._turn.locked())
        threads.submit(processes.call, lambda: work("third", first_may_end))
        first_may_end.set()
        wait_until(lambda: "again begins" in events)
        again_may_end.set()
    assert events == [
        *["first begins", "dies", "first ends"],
        *["again begins", "again ends"],
        *["third begins", "third ends"],
    ]


def test_processes_that_died_leave_nothing_and_others_take_their_place():
    # A function of this file would import TensorFlow into each process.
    load = functools.partial(functools.partial, eval)
    with contextlib.closing(
        ProcessPool(2, load, imports="precis.model.errors")
    ) as pool:
        assert pool.call("2 * 3") == 6
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with pytest.raises(BrokenProcessPool):
                pool.call("__import__('os')._exit(1)")
        with pytest.raises(AttributeError, match="local object|local function"):
            pool.call(lambda: 1)
        assert pool.call("2 * 4") == 8 and len(pool._started) == 1
        assert len(os.listdir("/proc/self/fd")) <= before
