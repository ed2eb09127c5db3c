"""Search processes, each of which computes on one thread.

Two such processes search 1.5 times as many documents as one call on two threads. A
process is forked from one that has imported TensorFlow, loads the bundle and compiles
the search once. Then it receives batches of token ids and returns hypotheses.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.errors import DataError, JobError, PrecisError
from precis.model.inference.batches import (
    SEARCH,
    Hypothesis,
    SearchedBatch,
    join_batches,
)
from precis.model.inference.process_limits import compute_on_one_thread
from precis.model.inference.processes import Processes, search_context
from precis.model.isolation import (
    NOT_OF_A_DOCUMENT,
    PROCESS_DIED,
    Failure,
    FailureError,
    failure_of,
    isolate,
)
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow

# So often may a batch kill its processes before one is searched. A document that kills
# them does so nine times in a batch of 256 documents and its halves.
MOST_DEATHS = 32

# A search process imports TensorFlow in `_process_searcher`: silently, and with its
# number of threads set before it computes anything.
if TYPE_CHECKING:
    from precis.model.inference.searcher import Searcher


class ModelSearch(NamedTuple):
    """A model and how it is searched.

    Attributes:
      bundle: the folder of the model.
      model_id: the model that the folder must hold.
      precision: the number format that the network's layers compute in.
      config: the search settings.
      batch_invariant: whether each document is searched alone.
    """

    bundle: str
    model_id: str
    precision: str
    config: SearchConfig
    batch_invariant: bool = False


def load_searcher(search: ModelSearch) -> "Searcher":
    """Loads the bundle of a search.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the bundle is damaged or holds another model.
    """
    from precis.model.bundle.network_bundle import load_bundle
    from precis.model.inference.summarizer import make_searcher

    bundle = load_bundle(search.bundle, precision=search.precision)
    check_model(search.bundle, bundle.model_id, search.model_id)
    return make_searcher(
        bundle.network,
        bundle.tokenizer,
        search.config,
        bundle.special,
        bundle.source_tokenizer,
    )


def check_model(folder: str, model_id: str, expected: str | None) -> None:
    """Refuses a bundle that was replaced after the job began.

    Args:
      folder: of the bundle.
      model_id: the model that it holds now.
      expected: the model that the job began with.

    Raises:
      DataError: they are different models.
    """
    if model_id != expected:
        raise DataError(
            f"{folder} holds model {model_id} now, and this job began with {expected}; "
            "put that model back, or begin anew with another --output"
        )


def search_isolated(
    sources: Sequence[np.ndarray],
    search: Callable[[Sequence[np.ndarray]], SearchedBatch],
) -> SearchedBatch:
    """Searches documents as one batch, and in halves where that fails.

    Args:
      sources: int32 [S] each.
      search: searches any of them as one batch.

    Returns:
      The result, with a failure for each document that cannot be searched.
    """
    parts: list[SearchedBatch] = []

    def search_part(
        part: Sequence[np.ndarray],
    ) -> list[list[Hypothesis] | Failure]:
        parts.append(search(part))
        return parts[-1].results

    results = isolate(sources, search_part, stage=SEARCH)
    return join_batches(parts)._replace(results=results)


class SearchPool:
    """A pool of search processes; may be used from several threads.

    The processes start with the first batches, and there are never more of them than
    batches. They end when every user of the pool has released it. A document that
    cannot be searched, even one that kills its process, costs its own result only.

        a process dies                the batch is searched again in a new process,
                                      while no other process searches
        that process dies too         the batch is cut in halves, which are searched
                                      likewise; a single document is a failure

    Attributes:
      search: the model and how it is searched.
      processes: the largest number of them.
    """

    def __init__(self, search: ModelSearch, *, processes: int) -> None:
        self.search = search
        self.processes = processes
        self._lock = threading.Lock()
        self._users = 0
        # One thread for each process waits for its results.
        self._threads: ThreadPoolExecutor | None = None
        self._calls = self._new_processes()
        # How often a batch has killed its processes since the last that was searched.
        self._deaths = 0
        self._is_lost = False

    def submit(self, sources: Sequence[np.ndarray]) -> "Future[SearchedBatch]":
        """Begins to search documents as one batch.

        Batches are searched in the order in which they are submitted.

        Args:
          sources: int32 [S] each, cut at the network's source length.

        Returns:
          The result, or a PrecisError: the bundle cannot be loaded, or processes die
          whatever they do.
        """
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.processes)
            return self._threads.submit(search_isolated, list(sources), self._search)

    def retain(self) -> None:
        """Registers a user of the pool."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """Removes a user of the pool; after the last one, ends the processes."""
        with self._lock:
            self._users -= 1
            if self._users or self._threads is None:
                return
            self._threads.shutdown(cancel_futures=True)
            self._calls.close()
            self._threads = None
            self._calls = self._new_processes()
            self._is_lost = False

    def _new_processes(self) -> Processes:
        return Processes(self.processes, context=search_context())

    def _search(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """Searches a batch in a process, and again alone where the process dies.

        Raises:
          FailureError: the search failed, or the process died again.
          JobError: processes die whatever they do.
        """
        # The first time a process may die because of the batches beside it.
        for call in (self._calls.call, self._calls.call_alone):
            if self._is_lost:
                raise JobError(self._lost_message())
            try:
                searched = call(_search_batch, self.search, sources)
            except BrokenProcessPool:
                continue
            self._deaths = 0
            return searched
        self._count_death()
        raise FailureError(
            Failure(
                SEARCH,
                PROCESS_DIED,
                "the search process died, and again when nothing else was searched; "
                "most often memory runs out",
                BrokenProcessPool.__name__,
            )
        )

    def _count_death(self) -> None:
        """Counts a batch that killed its processes, and finds out whether a new one can
        start.

        Raises:
          JobError: it cannot load the bundle, or MOST_DEATHS batches were one after the
            other.
        """
        self._deaths += 1
        try:
            if self._deaths < MOST_DEATHS:
                self._calls.call_alone(_load, self.search)
                return
        except BrokenProcessPool:
            pass
        self._is_lost = True  # so that the batches that wait do not wait for deaths
        raise JobError(self._lost_message())

    def _lost_message(self) -> str:
        return (
            "a search process died before its batch was done, most often because "
            f"memory ran out: each of the {self.processes} holds the network; run the "
            "command again with a smaller --workers (1 searches without "
            "further processes) and it goes on"
        )


# The functions below run in the search processes.


# An executor can give its tasks nothing that was loaded in their process. The cache
# keeps the searcher there; an initializer that loads it would need a global variable,
# and could not report why it failed.
@functools.cache
def _process_searcher(search: ModelSearch) -> "Searcher":
    """The searcher of this process, on one thread; the first call loads it."""
    import_tensorflow()
    compute_on_one_thread()
    return load_searcher(search)


def _load(search: ModelSearch) -> None:
    """Loads the bundle in this process.

    Raises:
      PrecisError: it cannot be loaded.
    """
    try:
        _process_searcher(search)
    except PrecisError:
        raise
    except Exception as error:
        # TensorFlow's exceptions cannot be sent to another process.
        raise JobError(
            f"a search process cannot load {search.bundle}: {type(error).__name__}: "
            f"{error}"
        ) from error


def _search_batch(search: ModelSearch, sources: list[np.ndarray]) -> SearchedBatch:
    """Searches a batch in this process.

    Raises:
      PrecisError: the bundle cannot be loaded.
      FailureError: the search raised an exception.
    """
    _load(search)
    try:
        return _process_searcher(search).search_together(sources)
    except NOT_OF_A_DOCUMENT:
        raise
    except Exception as error:
        raise FailureError(failure_of(error, SEARCH)) from None
