"""Processes that search, each on one thread: two such processes find 1.5 times as much
as one call on two threads.

A process imports TensorFlow, loads the bundle and compiles the search once; then
batches of token ids go in and hypotheses come out.
"""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.errors import DataError, JobError, PrecisError, UsageError
from precis.model.inference.batches import SearchedBatch
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow

# TensorFlow must not be imported before a process has said how many threads it may
# take.
if TYPE_CHECKING:
    from precis.model.inference.searcher import Searcher


class Search(NamedTuple):
    """What a process needs to know to search.

    Attributes:
      bundle: its folder.
      model_id: of the model that it must hold.
      precision: what the network's layers compute in.
      config: how to search.
    """

    bundle: str
    model_id: str
    precision: str
    config: SearchConfig


def load_searcher(search: Search) -> "Searcher":
    """The searcher of a bundle.

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


def check_model(search: Search, found: str) -> None:
    """Refuses a bundle that was replaced after the job began."""
    if found != search.model_id:
        raise DataError(
            f"{search.bundle} holds model {found} now, and this job began with {search.model_id}; "
            "put that model back, or begin anew with another --output"
        )


def count_processes(asked: int) -> int:
    """How many processes are to search: `asked`, or for 0 one per core that this
    process may use, or one where there is an accelerator.
    """
    if multiprocessing.current_process().daemon:  # Python lets those have no children.
        return 1
    if asked:
        return asked
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"):
        return 1
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def refuse_within_import() -> None:
    """Stops a script that a search process reads again when it starts, as Python's
    `spawn` does, before it runs the whole job once more.

    Raises:
      UsageError: this is such a process.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            'a search process reads the script that started it: put what it does under `if __name__ == "__main__":`, '
            "or search in one process with search_processes=1"
        )


class SearchPool:
    """Processes that search, started when the first batch comes, no more than there are
    batches; may be used from several threads.
    """

    def __init__(self, search: Search, *, processes: int) -> None:
        self._search, self._processes = search, processes
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._users = 0

    def submit(self, sources: Sequence[np.ndarray]) -> "Future[SearchedBatch]":
        """Begins to search documents as one batch; batches are searched in the order in
        which they come.

        Args:
          sources: int32 [S] each; none is longer than the network's source length.
        """
        with self._lock:
            if self._executor is None:
                context = multiprocessing.get_context(
                    "spawn"
                )  # A forked TensorFlow does not work.
                self._executor = ProcessPoolExecutor(
                    self._processes,
                    context,
                    initializer=_start,
                    initargs=(self._search,),
                )
            try:
                return self._executor.submit(_search, list(sources))
            except BrokenProcessPool as error:
                raise self._lost() from error

    def result(self, future: "Future[SearchedBatch]") -> SearchedBatch:
        """Waits for a batch.

        Raises:
          PrecisError: what the search raised.
          JobError: it raised something else, or the process died.
        """
        try:
            return future.result()
        except BrokenProcessPool as error:
            with self._lock:
                raise self._lost() from error

    def retain(self) -> None:
        """One more user; the last one's `release` ends the processes."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """One user less."""
        with self._lock:
            self._users -= 1
            executor, self._executor = (
                (self._executor, None) if self._users == 0 else (None, self._executor)
            )
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def _lost(self) -> JobError:
        """What to raise when a process died; the next batch gets new processes."""
        self._executor = None
        return JobError(
            f"a search process died before its batch was done, most often because memory ran out: each of the {self._processes} holds the "
            "network; run the command again with a smaller --search_processes (1 searches without further processes) and it goes on"
        )


_process: dict[
    str, Any
    # Of a search process, written once when it starts: its searcher, or why it has none.
] = {}


def _start(search: Search) -> None:
    threading.Thread(target=_die_with_parent, daemon=True).start()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the parent too, and that one says what happens.
    try:
        import_tensorflow()
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        _process["searcher"] = load_searcher(search)
    except Exception as error:  # The executor would only say that a process broke.
        _process["error"] = _as_precis_error(error)


def _die_with_parent() -> None:
    """A process that waits for work would wait for ever once its parent was killed: it
    holds the other end of the queue itself.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _search(sources: list[np.ndarray]) -> SearchedBatch:
    if "error" in _process:
        raise _process["error"]
    try:
        return _process["searcher"].search_together(sources)
    except Exception as error:
        raise _as_precis_error(error) from error


def _as_precis_error(error: Exception) -> PrecisError:
    """What can be sent to another process; the exceptions of TensorFlow cannot."""
    if isinstance(error, PrecisError):
        return error
    return JobError(f"a search process failed: {type(error).__name__}: {error}")
