"""Summaries of windows of documents, searched in this process or in several.

A window is a few hundred documents of a corpus. It is searched in batches of similar
length: in search processes if there is enough work for them, otherwise in this process.
Each search process computes on one thread, as two processes are faster than one call on
two threads. It loads the bundle and compiles the search once. Then it receives batches
of token ids and returns hypotheses. If a document cannot be searched, even if it kills
its process, only this document fails:

    a process dies                the batch is searched again in a new process,
                                  while no other process searches
    that process dies too         the batch is split into halves, which are searched
                                  the same way; a single document is a failure
"""

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import numpy as np

from precis.model.errors import DataError, JobError, PrecisError
from precis.model.inference.batches import (
    SEARCH,
    Hypothesis,
    SearchedBatch,
    Searcher,
    batches_by_length,
    join_batches,
)
from precis.model.inference.summarizer import Summary, distinct_summaries
from precis.model.inference.writer import PendingWindow, Writer
from precis.model.isolation import (
    NOT_OF_A_DOCUMENT,
    PROCESS_DIED,
    Failure,
    failure_of,
    isolate,
)
from precis.model.processes import ProcessPool, usable_cores
from precis.model.search.config import CTRANSLATE2, TENSORFLOW, SearchConfig
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.length_limit import NO_LENGTH_LIMIT, LengthLimit

# The module that the fork server of search processes imports, by engine.
SEARCH_IMPORTS = {
    TENSORFLOW: "precis.model.inference.search_imports",
    CTRANSLATE2: "precis.model.inference.ctranslate2_searcher",
}
# The number of batches in a window from which search processes are started. They need
# some seconds to start, in which this process searches fewer batches than this.
POOL_BATCHES = 4
# The job fails after this many batches in a row have killed their processes. A document
# that kills them does so nine times in a batch of 256 documents and its halves.
MOST_DEATHS = 32

# Searches a batch; returns a failure if the batch cannot be searched.
Search = Callable[[Sequence[np.ndarray]], SearchedBatch | Failure]


class ModelSearch(NamedTuple):
    """A model and how it is searched.

    Attributes:
      bundle: the folder of the model.
      model_id: the model_id that the folder must have.
      precision: the number format that the network's layers compute in.
      config: the search settings.
      instruction: the instruction to a language model; "" for other models.
      limit: the length limit; if set, all hypotheses of a beam are kept.
      engine: TENSORFLOW or CTRANSLATE2.
    """

    bundle: str
    model_id: str
    precision: str
    config: SearchConfig
    instruction: str = ""
    limit: LengthLimit = NO_LENGTH_LIMIT
    engine: str = TENSORFLOW


class BulkSummarizer(Writer):
    """Summarizes many documents with a bundle; thread-safe.

    Attributes:
      search: the model and how it is searched.
      processes: the maximum number of search processes. They start with the first
        window that has work for them, and end when every user has released them.
      tokenizer: the bundle's tokenizer of summaries.
      source_tokenizer: the bundle's tokenizer of articles.
      max_source_tokens: the maximum number of source tokens that the network reads.
    """

    def __init__(self, search: ModelSearch, *, processes: int) -> None:
        """Opens the bundle, but does not read its weights.

        Raises:
          UsageError: the folder is not a complete bundle.
          DataError: the bundle is damaged or has another model_id.
        """
        from precis.model.bundle.network_bundle import open_bundle

        contents = open_bundle(search.bundle)
        check_model(search.bundle, contents.model_id, search.model_id)
        self.search = search
        self.processes = processes
        self.source_tokenizer = contents.reader(search.instruction)
        self.tokenizer = contents.tokenizer
        if search.instruction:
            self.tokenizer = self.source_tokenizer
        self.max_source_tokens = contents.config.max_source_tokens
        self._lock = threading.Lock()
        self._searcher: Searcher | None = None
        self._pool: ProcessPool | None = None
        # How many batches in a row have killed their processes.
        self._deaths = 0
        self._is_lost = False

    def room(self, text: str) -> int:
        """As `Writer.room`."""
        return self.max_source_tokens

    def _end(self) -> None:
        """Ends the search processes."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None
            self._is_lost = False

    def begin(self, sources: Sequence[np.ndarray]) -> PendingWindow:
        """As `Writer.begin`; without search processes, the search begins only when the
        summaries are requested.
        """
        batches = self._batches(sources)
        pays = self.processes > 1 and len(batches) >= POOL_BATCHES
        begin = self.submit if pays or self._pool else self._later
        searches = [begin([sources[row] for row in rows]) for rows in batches]

        def decode(ranked: list[Hypothesis]) -> list[Summary]:
            written = distinct_summaries(
                ranked, self.tokenizer, self.search.instruction
            )
            return [each for each in written if each.text] or written

        return PendingWindow(batches, searches, list(map(len, sources)), decode)

    def submit(self, sources: list[np.ndarray]) -> Callable[[], SearchedBatch]:
        """Begins to search a batch in the search processes.

        Returns:
          A function that waits for the result. It raises a PrecisError if the bundle
          cannot be loaded, or if processes die repeatedly.
        """
        with self._lock:
            if self._pool is None:
                load = functools.partial(load_search, self.search)
                imports = SEARCH_IMPORTS[self.search.engine]
                self._pool = ProcessPool(self.processes, load, imports=imports)
            pool = self._pool
        search = functools.partial(self._search_there, pool)
        return pool.threads.submit(search_isolated, sources, search).result

    def _later(self, sources: list[np.ndarray]) -> Callable[[], SearchedBatch]:
        return functools.partial(search_isolated, sources, self._search_here)

    def _search_here(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """Searches a batch in this process; the first call loads the weights."""
        with self._lock:
            if self._searcher is None:
                self._searcher = load_searcher(self.search)
        return self._searcher.search_together(sources)

    def _search_there(
        self, pool: ProcessPool, sources: Sequence[np.ndarray]
    ) -> SearchedBatch | Failure:
        """Searches a batch in a search process; returns a failure if two die of it.

        Raises:
          JobError: processes die repeatedly.
        """
        if not self._is_lost:
            try:
                searched: SearchedBatch | Failure = pool.call(sources)
            except BrokenProcessPool:
                self._deaths += 1
                # The batches that wait then fail at once.
                self._is_lost = self._deaths == MOST_DEATHS or not _can_load(pool)
            else:
                self._deaths = 0
                return searched
        if self._is_lost:
            raise JobError(
                "a search process died during its batch, most likely out of memory, "
                f"as each of the {self.processes} processes holds the network; run "
                "the command again with a smaller `workers=` to continue (1 starts no "
                "further process)"
            )
        return Failure(
            SEARCH,
            PROCESS_DIED,
            "the search process died, and died again when it searched only this "
            "document; most likely it ran out of memory",
            BrokenProcessPool.__name__,
        )

    def _batches(self, sources: Sequence[np.ndarray]) -> list[list[int]]:
        """The positions of the documents of each batch of a window."""
        return batches_by_length(
            list(map(len, sources)),
            beams=self.search.config.beam_width,
            max_source_tokens=self.max_source_tokens,
            precision=self.search.precision,
        )


def _can_load(pool: ProcessPool) -> bool:
    """Whether a new process can load the bundle."""
    try:
        pool.call([])
    except BrokenProcessPool:
        return False
    return True


def search_isolated(sources: Sequence[np.ndarray], search: Search) -> SearchedBatch:
    """Searches documents as one batch; if that fails, in halves.

    Args:
      sources: int32 [S] each.
      search: searches some of the sources as one batch.

    Returns:
      The result, with a failure for each document that cannot be searched.
    """
    parts: list[SearchedBatch] = []

    def search_part(part: Sequence[np.ndarray]) -> list[Any] | Failure:
        searched = search(part)
        if isinstance(searched, Failure):
            return searched
        parts.append(searched)
        return searched.results

    results = isolate(sources, search_part, stage=SEARCH)
    return join_batches(parts)._replace(results=results)


def check_model(folder: str, model_id: str, expected: str | None) -> None:
    """Checks that a bundle was not replaced after the job began.

    Args:
      folder: the folder of the bundle.
      model_id: the model_id of the bundle now.
      expected: the model_id when the job began.

    Raises:
      DataError: they differ.
    """
    if model_id != expected:
        raise DataError(
            f"{folder} now holds model {model_id}, but this job began with "
            f"{expected}; restore that model, or start again with another `output=`"
        )


def load_searcher(search: ModelSearch, *, threads: int = 0) -> Searcher:
    """Loads a bundle for searching.

    Args:
      search: the model and how it is searched.
      threads: the number of threads of CTranslate2; 0 means one for each core.

    Raises:
      UsageError: the folder is not a complete bundle.
      DataError: the bundle is damaged or has another model_id.
    """
    from precis.model.bundle.network_bundle import load_bundle, open_bundle
    from precis.model.inference.summarizer import make_searcher

    if search.engine == CTRANSLATE2:
        from precis.model.inference.ctranslate2_searcher import CTranslate2Searcher

        contents = open_bundle(search.bundle)
        check_model(search.bundle, contents.model_id, search.model_id)
        return CTranslate2Searcher(
            search.bundle,
            contents,
            precision=search.precision,
            config=search.config,
            limit=search.limit,
            threads=threads or usable_cores(),
        )
    import_tensorflow()
    bundle = load_bundle(search.bundle, precision=search.precision)
    check_model(search.bundle, bundle.model_id, search.model_id)
    return make_searcher(
        bundle.network,
        bundle.tokenizer,
        search.config,
        bundle.special,
        bundle.reader(search.instruction),
        search.limit,
    )


# The functions below run in the search processes.


def load_search(search: ModelSearch) -> Search:
    """Loads a bundle in a search process, and returns the function that searches.

    Raises:
      PrecisError: the bundle cannot be loaded.
    """
    try:
        return functools.partial(_search_batch, load_searcher(search, threads=1))
    except PrecisError:
        raise
    except Exception as error:
        raise JobError(
            f"a search process could not load {search.bundle}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _search_batch(
    searcher: Searcher, sources: Sequence[np.ndarray]
) -> SearchedBatch | Failure:
    """Searches a batch; an empty batch only tests that the bundle can be loaded."""
    if not sources:
        return join_batches([])
    try:
        return searcher.search_together(sources)
    except NOT_OF_A_DOCUMENT:
        raise
    except Exception as error:
        return failure_of(error, SEARCH)
