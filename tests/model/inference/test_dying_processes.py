"""Search processes that die, and documents that kill them or fail in them. The slow
tests start real processes.
"""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from support import poisoned_search
from support.small_search import random_sources, small_search
from support.waiting import wait_until

from precis.model.errors import JobError
from precis.model.inference import worker_pool
from precis.model.inference.processes import Processes
from precis.model.inference.worker_pool import SearchPool
from precis.model.isolation import Failure


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    return small_search(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def pool(search, monkeypatch):
    """A pool of two processes with poisoned searches, closed when the test ends."""
    monkeypatch.setattr(worker_pool, "_search_batch", poisoned_search.search_batch)
    pool = SearchPool(search, processes=2)
    pool.retain()
    yield pool
    pool.release()
    assert multiprocessing.active_children() == []


def tokens(searched):
    """The first hypothesis of each document; None for one that failed."""
    return [
        None if isinstance(result, Failure) else result[0].tokens
        for result in searched.results
    ]


@pytest.mark.slow
def test_only_the_guilty_documents_of_real_searches_fail(pool):
    """Documents kill their process, fail in it, or are too many for its memory; the
    others get the summaries that they get without them.
    """
    sources = [source for source in random_sources(30) if len(source) > 5][:8]
    sources = [np.minimum(source, 12) for source in sources]
    with_enough_memory = [
        pool.submit(sources[start : start + 2]) for start in range(0, 8, 2)
    ]
    expected = [row for future in with_enough_memory for row in tokens(future.result())]
    guilty = {2: poisoned_search.KILLS, 5: poisoned_search.FAILS}
    poisoned = [source.copy() for source in sources]
    for place, token in guilty.items():
        poisoned[place][-1] = token
    innocent = pool.submit(sources[:2])
    future = pool.submit(poisoned)
    beside = [pool.submit(sources[start : start + 2]) for start in (2, 4, 6)]
    searched = future.result()
    assert tokens(searched) == [
        None if place in guilty else ranked for place, ranked in enumerate(expected)
    ]
    killing, failing = searched.results[2], searched.results[5]
    assert (killing.reason, killing.retryable) == ("process_died", True)
    assert (failing.reason, failing.retryable) == ("error", False)
    assert failing.error_class == "InvalidArgumentError"
    assert failing.detail.startswith(
        "InvalidArgumentError at precis/model/inference/worker_pool.py:"
    )
    others = [innocent.result(), *(future.result() for future in beside)]
    assert [row for batch in others for row in tokens(batch)] == expected


@pytest.mark.slow
def test_a_machine_that_cannot_start_processes_ends_the_job(pool, monkeypatch):
    for name in ("_search_batch", "_load"):
        monkeypatch.setattr(worker_pool, name, poisoned_search.die)
    with pytest.raises(
        JobError,
        match="a search process died before its batch was done, .* memory .* a "
        "smaller --workers",
    ):
        pool.submit(random_sources(3)).result()


class FakeProcesses:
    """Calls functions in this process; a document with the token KILLS is its death.

    Attributes:
      calls: of each call whether it was alone, and the number of documents; none for a
        call that loads the bundle.
    """

    def __init__(self):
        self.calls = []
        self.loads = True
        self.deaths_beside_others = 0
        self.may_begin = threading.Event()
        self.may_begin.set()

    def call(self, function, *arguments, alone=False):
        assert self.may_begin.wait(60)
        sources = arguments[1] if arguments[1:] else None
        self.calls.append((alone, None if sources is None else len(sources)))
        if sources is None:
            if not self.loads:
                raise BrokenProcessPool
            return None
        if not alone and self.deaths_beside_others:
            self.deaths_beside_others -= 1
            raise BrokenProcessPool
        if poisoned_search.has(poisoned_search.KILLS, sources):
            raise BrokenProcessPool
        return poisoned_search.echo(*arguments)

    def call_alone(self, *call):
        return self.call(*call, alone=True)

    def close(self): ...


@pytest.fixture
def fake_pool(monkeypatch):
    monkeypatch.setattr(worker_pool, "_load", poisoned_search.load_nothing)
    monkeypatch.setattr(worker_pool, "_search_batch", poisoned_search.echo)
    pool = SearchPool(None, processes=1)
    pool._calls = FakeProcesses()
    pool.retain()
    yield pool
    pool.release()


def documents(*first_tokens):
    return [np.array([token, 7], "int32") for token in first_tokens]


LOAD = (True, None)


def test_a_batch_whose_process_died_is_tried_again_alone(fake_pool):
    fake_pool._calls.deaths_beside_others = 1
    searched = fake_pool.submit(documents(1, 2, 3)).result()
    assert tokens(searched) == [[1, 7], [2, 7], [3, 7]]
    assert fake_pool._calls.calls == [(False, 3), (True, 3)]


def test_a_document_that_kills_alone_fails_and_no_other(fake_pool):
    kills = poisoned_search.KILLS
    searched = fake_pool.submit(documents(1, 2, kills, 4)).result()
    assert tokens(searched) == [[1, 7], [2, 7], None, [4, 7]]
    assert fake_pool._calls.calls == [
        *[(False, 4), (True, 4), LOAD],
        (False, 2),
        *[(False, 2), (True, 2), LOAD],
        *[(False, 1), (True, 1), LOAD],
        (False, 1),
    ]
    failure = searched.results[2]
    assert (failure.reason, failure.error_class) == (
        "process_died",
        "BrokenProcessPool",
    )
    assert failure.detail == (
        "the search process died, and again when nothing else was searched; most often "
        "memory runs out"
    )


def test_processes_that_die_whatever_they_do_end_the_job(fake_pool):
    kills = poisoned_search.KILLS
    match = "a search process died before its batch was done"
    fake_pool._calls.may_begin.clear()
    lost = fake_pool.submit(documents(*[kills] * 100))
    waiting = fake_pool.submit(documents(1))
    fake_pool._calls.may_begin.set()
    for future in (lost, waiting):
        with pytest.raises(JobError, match=match):
            future.result()
    assert fake_pool._calls.calls.count(LOAD) == worker_pool.MOST_DEATHS - 1


def test_one_document_among_many_does_not_end_the_job(fake_pool):
    kills = poisoned_search.KILLS
    searched = fake_pool.submit(documents(*range(20, 275), kills)).result()
    assert tokens(searched).index(None) == 255
    for _ in range(worker_pool.MOST_DEATHS):  # with a batch between them
        assert tokens(fake_pool.submit(documents(kills)).result()) == [None]
        assert tokens(fake_pool.submit(documents(1)).result()) == [[1, 7]]


def test_a_process_that_dies_while_it_loads_the_bundle_ends_the_job(fake_pool):
    fake_pool._calls.loads = False
    with pytest.raises(JobError, match="a search process died before its batch was"):
        fake_pool.submit(documents(poisoned_search.KILLS)).result()
    assert fake_pool._calls.calls == [(False, 1), (True, 1), LOAD]


def test_a_call_alone_waits_for_the_others_and_keeps_new_ones_waiting(monkeypatch):
    """Three threads call; the second call is to be alone."""
    events = []
    first_may_end, alone_may_end = threading.Event(), threading.Event()
    processes = Processes(3, initializer=lambda: None)
    monkeypatch.setattr(processes, "_call", lambda function: function())

    def call(name, may_end):
        events.append(f"{name} begins")
        assert may_end.wait(60)
        events.append(f"{name} ends")

    with ThreadPoolExecutor(3) as threads:
        threads.submit(processes.call, lambda: call("first", first_may_end))
        wait_until(lambda: events == ["first begins"])
        threads.submit(processes.call_alone, lambda: call("alone", alone_may_end))
        wait_until(processes._turn.locked)
        threads.submit(processes.call, lambda: call("third", first_may_end))
        first_may_end.set()
        wait_until(lambda: "alone begins" in events)
        alone_may_end.set()
    assert events == [
        *["first begins", "first ends"],
        *["alone begins", "alone ends"],
        *["third begins", "third ends"],
    ]


def test_a_machine_without_shared_memory_is_named():
    class Context(type(multiprocessing.get_context("spawn"))):
        def Lock(self):
            raise OSError(30, "Read-only file system")

    processes = Processes(1, initializer=lambda: None, context=Context())
    message = "/dev/shm: Read-only .*; mount it .*, or give --workers 1"
    with pytest.raises(JobError, match=message):
        processes.call(abs, -1)
