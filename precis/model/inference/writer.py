"""The interface of writers: a network in this process, or a model at an endpoint."""

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from precis.model.inference.batches import (
    SEARCH,
    Cost,
    SearchedBatch,
    restore_order,
    shared_costs,
)
from precis.model.inference.summarizer import Summary
from precis.model.isolation import Failure, attempt


@dataclasses.dataclass
class PendingWindow:
    """Documents whose search has begun.

    Attributes:
      batches: the positions of the documents of each batch.
      searches: for each batch, a function that searches it or waits for its result.
      lengths: the number of source tokens of each document.
      decode: turns the hypotheses of a document into summaries or a failure.
      searched: the result of each batch; set by `summaries`.
      costs: the cost of each document; set by `summaries`.
    """

    batches: list[list[int]]
    searches: list[Callable[[], SearchedBatch]]
    lengths: list[int]
    decode: Callable[[list[Any]], list[Summary] | Failure]
    searched: list[SearchedBatch] = dataclasses.field(default_factory=list)
    costs: list[Cost] = dataclasses.field(default_factory=list)

    def summaries(
        self, on_searched: Callable[[float], None] = lambda part: None
    ) -> list[list[Summary] | Failure]:
        """Waits for the search.

        Args:
          on_searched: called after each batch with the share of the window that is
            searched, from 0 to 1.

        Returns:
          The n best summaries of each document, or fewer if fewer are possible, in the
          order of the documents; a failure if the document cannot be searched.

        Raises:
          PrecisError: the bundle cannot be loaded, or search processes die repeatedly.
        """
        documents = sum(map(len, self.batches))
        searched_documents = 0
        for search in self.searches:
            self.searched.append(search())
            searched_documents += len(self.searched[-1].results)
            on_searched(searched_documents / documents)

        costs = [
            batch._replace(results=shared_costs(batch, [self.lengths[n] for n in rows]))
            for rows, batch in zip(self.batches, self.searched, strict=True)
        ]
        self.costs = restore_order(self.batches, costs)
        return [
            result
            if isinstance(result, Failure)
            else attempt(result, self.decode, stage=SEARCH)
            for result in restore_order(self.batches, self.searched)
        ]


class Writer(Protocol):
    """Writes summaries; thread-safe.

    Attributes:
      source_tokenizer: the tokenizer of articles.
    """

    source_tokenizer: Any
    _lock: threading.Lock
    _users: int = 0

    def retain(self) -> None:
        """Registers a user."""
        with self._lock:
            if not self._users:
                self._begin()
            self._users += 1

    def release(self) -> None:
        """Removes a user; after the last one, stops threads and processes."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._end()

    def _begin(self) -> None:
        """Called before the first user."""

    def _end(self) -> None:
        """Called after the last user."""

    def room(self, text: str) -> int:
        """The maximum number of tokens of a text that the model reads at once."""
        ...

    def begin(self, sources: Sequence[np.ndarray]) -> PendingWindow:
        """Begins to write the summaries of a window; windows are written in call order.

        Args:
          sources: int32 [S] each, at most `room` tokens.
        """
        ...
