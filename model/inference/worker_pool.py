"""Search processes, each of which computes on one thread.

Two such processes search 1.5 times as many documents as one call on two threads. A
process is forked from one that has imported TensorFlow, loads the bundle and compiles
the search once. Then it receives batches of token ids and returns hypotheses.
"""

import functools
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.errors import DataError, JobError, PrecisError
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.fork_server import search_context
from precis.model.inference.isolated_search import (
    SEARCH,
    Batch,
    BatchError,
    IsolatedSearch,
)
from precis.model.inference.process_limits import compute_on_one_thread
from precis.model.inference.processes import Processes, leave_with_parent
from precis.model.isolation import (
    NOT_OF_A_DOCUMENT,
    PROCESS_DIED,
    Failure,
    failure_of,
)
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow

# So many processes may die one after the other, none of them after a batch was done. To
# find a document that kills its process, at most 11 do: one beside other batches, then
# eight for a batch of 256 documents and its halves, and two for the document.
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


class SearchPool:
    """A pool of search processes; may be used from several threads.

    The processes start with the first batches, and there are never more of them than
    batches, unless `start` starts them. They end when every user of the pool has
    released it. A document that
    cannot be searched, even one that kills its process, costs its own result only.

        a process dies                the batch is searched again in a new process,
                                      while no other process searches
        that process dies too         the batch is cut in halves, which are searched
                                      likewise, each alone
        a process dies twice while    the document is a failure
        one document is searched alone

    Attributes:
      search: the model and how it is searched.
      processes: the largest number of them.
    """

    def __init__(self, search: ModelSearch, *, processes: int) -> None:
        self.search = search
        self.processes = processes
        self._isolated = IsolatedSearch()
        self._lock = threading.Lock()
        # One thread for each process waits for its results.
        self._threads: ThreadPoolExecutor | None = None
        self._calls = Processes(
            processes,
            initializer=functools.partial(_start_process, dict(os.environ)),
            context=search_context(),
        )
        self._users = 0
        # Processes that died alone since the last batch that was searched.
        self._deaths = 0
        # How often processes died whatever they did. The batches that were submitted
        # before fail at once then, or each of them would wait for more deaths.
        self._losses = 0

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
            attempt = functools.partial(self._attempt, losses=self._losses)
            batch = Batch(list(sources))
            return self._open_threads().submit(self._isolated.search, batch, attempt)

    def start(self) -> None:
        """Starts all processes and has them load the bundle and compile the search.

        Does not wait for them. What goes wrong is told of the first batch, which tries
        again.
        """
        with self._lock:
            for _ in range(self.processes):
                self._open_threads().submit(self._calls.call, _compile, self.search)

    def retain(self) -> None:
        """Registers a user of the pool."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """Removes a user of the pool; after the last one, ends the processes."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.close()

    def close(self) -> None:
        """Ends the processes, whoever uses the pool."""
        with self._lock:
            threads = self._threads
            self._threads = None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
            self._calls.close()

    def _open_threads(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.processes)
        return self._threads

    def _attempt(self, batch: Batch, *, losses: int) -> SearchedBatch:
        """Searches a batch in a process, and again where the process dies.

        Args:
          batch: the documents.
          losses: of the pool when the batch was submitted.

        Raises:
          BatchError: the search failed, or the process died again.
          JobError: processes die whatever they do.
        """
        call = (_search_batch, self.search, batch.sources)
        self._check_losses(losses)
        if not batch.is_suspect:
            try:
                return self._survived(self._calls.call(*call))
            except BrokenProcessPool:
                pass  # Perhaps because of the batches beside it.
        for _ in range(2 if len(batch.sources) == 1 else 1):
            self._check_losses(losses)
            try:
                return self._survived(self._calls.call_alone(*call))
            except BrokenProcessPool as error:
                self._count_death(error)
        raise BatchError(
            Failure(
                SEARCH,
                PROCESS_DIED,
                "the search process died, and again when nothing else was searched; "
                "most often memory runs out",
                BrokenProcessPool.__name__,
            )
        )

    def _survived(self, searched: SearchedBatch) -> SearchedBatch:
        self._deaths = 0
        return searched

    def _check_losses(self, losses: int) -> None:
        if losses != self._losses:
            raise JobError(self._lost_message())

    def _count_death(self, error: BrokenProcessPool) -> None:
        """Counts a process that died alone, and finds out whether a new one can start.

        Raises:
          JobError: it cannot load the bundle, or MOST_DEATHS have died one after the
            other.
        """
        self._deaths += 1
        try:
            if self._deaths < MOST_DEATHS:
                self._calls.call_alone(_load, self.search)
                return
        except BrokenProcessPool:
            pass
        self._deaths = 0
        self._losses += 1
        raise JobError(self._lost_message()) from error

    def _lost_message(self) -> str:
        return (
            "a search process died before its batch was done, most often because "
            f"memory ran out: each of the {self.processes} holds the network; run the "
            "command again with a smaller --search_processes (1 searches without "
            "further processes) and it goes on"
        )


# The functions below run in the search processes.


def _start_process(environment: Mapping[str, str]) -> None:
    """Prepares a process, which was forked with the environment of the fork server."""
    leave_with_parent()
    os.environ.clear()
    os.environ.update(environment)


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


def _compile(search: ModelSearch) -> None:
    """Loads the bundle in this process and compiles its search.

    Raises:
      PrecisError: it cannot be loaded.
    """
    _load(search)
    _process_searcher(search).compile()


def _search_batch(search: ModelSearch, sources: list[np.ndarray]) -> SearchedBatch:
    """Searches a batch in this process.

    Raises:
      PrecisError: the bundle cannot be loaded.
      BatchError: the search raised an exception.
    """
    _load(search)
    try:
        return _process_searcher(search).search_together(sources)
    except NOT_OF_A_DOCUMENT:
        raise
    except Exception as error:
        raise BatchError(failure_of(error, SEARCH)) from None
