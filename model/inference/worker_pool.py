"""Search processes, each of which computes on one thread.

Two such processes search 1.5 times as many documents as one call on two threads. A
process imports TensorFlow, loads the bundle and compiles the search once. Then it
receives batches of token ids and returns hypotheses.
"""

import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.errors import DataError, JobError, PrecisError, UsageError
from precis.model.inference.batches import SearchedBatch
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow

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
    """

    bundle: str
    model_id: str
    precision: str
    config: SearchConfig


def load_searcher(search: ModelSearch) -> "Searcher":
    """Loads the bundle of a search.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the bundle is damaged or holds another model.
    """
    from precis.model.bundle.network_bundle import load_bundle
    from precis.model.inference.searcher import Searcher
    from precis.model.inference.summarizer import special_tokens

    bundle = load_bundle(search.bundle, precision=search.precision)
    check_model(search, bundle.model_id)
    return Searcher(
        bundle.network,
        config=search.config,
        special=special_tokens(bundle.tokenizer, bundle.special),
    )


def check_model(search: ModelSearch, model_id: str) -> None:
    """Refuses a bundle that was replaced after the job began.

    Args:
      search: the search of the job.
      model_id: the model that the folder holds now.

    Raises:
      DataError: they are different models.
    """
    if model_id != search.model_id:
        raise DataError(
            f"{search.bundle} holds model {model_id} now, and this job began with "
            f"{search.model_id}; put that model back, or begin anew with another "
            "--output"
        )


def count_processes(asked: int) -> int:
    """The number of search processes.

    Args:
      asked: the number that the user asks for; 0 is one for each core that this process
        may use, or a single one if there is an accelerator.
    """
    if multiprocessing.current_process().daemon:
        return 1  # Python does not let a daemon process start others.
    if asked:
        return asked
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"):
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def refuse_within_import() -> None:
    """Stops a script that runs the job again in each of its search processes.

    A new process of Python's `spawn` imports the script that started it. Without the
    guard `if __name__ == "__main__":` the import would run the whole job once more.

    Raises:
      UsageError: this process is importing such a script.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "a search process reads the script that started it: put what it does under "
            '`if __name__ == "__main__":`, or search in one process with '
            "search_processes=1"
        )


class SearchPool:
    """A pool of search processes; may be used from several threads.

    The processes start with the first batches, and there are never more of them than
    batches. They end when every user of the pool has released it.
    """

    def __init__(self, search: ModelSearch, *, processes: int) -> None:
        self._search = search
        self._processes = processes
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._users = 0

    def submit(self, sources: Sequence[np.ndarray]) -> "Future[SearchedBatch]":
        """Begins to search documents as one batch.

        Batches are searched in the order in which they are submitted.

        Args:
          sources: int32 [S] each, cut at the network's source length.

        Raises:
          JobError: a process died.
        """
        with self._lock:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self._processes,
                    # TensorFlow does not work in a forked process.
                    multiprocessing.get_context("spawn"),
                    initializer=_start_process,
                )
            try:
                return self._executor.submit(_search_batch, self._search, list(sources))
            except BrokenProcessPool as error:
                raise self._discard_processes() from error

    def result(self, future: "Future[SearchedBatch]") -> SearchedBatch:
        """Waits for the result of a batch.

        Raises:
          PrecisError: the search raised it.
          JobError: the search raised another exception, or the process died.
        """
        try:
            return future.result()
        except BrokenProcessPool as error:
            with self._lock:
                raise self._discard_processes() from error

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
            executor = self._executor
            self._executor = None
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def _discard_processes(self) -> JobError:
        """Forgets processes of which one died; the next batch starts new ones.

        Returns:
          The error to raise.
        """
        self._executor = None
        return JobError(
            "a search process died before its batch was done, most often because "
            f"memory ran out: each of the {self._processes} holds the network; run the "
            "command again with a smaller --search_processes (1 searches without "
            "further processes) and it goes on"
        )


# The functions below run in the search processes.


def _start_process() -> None:
    """Prepares a search process for Ctrl-C and for the end of its parent."""
    # Ctrl-C reaches the parent too, and the parent reports it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """Ends this process when its parent ends.

    It would not notice by itself that its parent was killed: a process that waits for
    work holds both ends of the queue.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


# An executor can give its tasks nothing that was loaded in their process. The cache
# keeps the searcher there; an initializer that loads it would need a global variable,
# and could not report why it failed.
@functools.cache
def _process_searcher(search: ModelSearch) -> "Searcher":
    """The searcher of this process, on one thread; the first call loads it."""
    import_tensorflow()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return load_searcher(search)


def _search_batch(search: ModelSearch, sources: list[np.ndarray]) -> SearchedBatch:
    """Searches a batch in this process."""
    try:
        return _process_searcher(search).search_together(sources)
    except Exception as error:
        raise _as_precis_error(error) from error


def _as_precis_error(error: Exception) -> PrecisError:
    """An exception that can be sent to another process; TensorFlow's cannot."""
    if isinstance(error, PrecisError):
        return error
    return JobError(f"a search process failed: {type(error).__name__}: {error}")
