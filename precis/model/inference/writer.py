"""What writes summaries: a network here, or a model behind an endpoint."""

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
      searches: each gives the result of a batch when it is called.
      lengths: source tokens of each document.
      decode: turns the hypotheses of a document into summaries, or fails.
      searched: the result of each batch, available after `summaries`.
      costs: of each document, likewise.
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
          on_searched: takes how much of the window is searched, from 0 to 1; it is
            called after each batch.

        Returns:
          The n best summaries of each document, in the order of the documents; fewer
          where fewer can be written. A failure in place of them where the document
          cannot be searched.

        Raises:
          PrecisError: the bundle cannot be loaded, or search processes die whatever
            they do.
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
    """What writes summaries; may be used from several threads.

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
        """Removes a user; after the last one, ends what it has started."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._end()

    def _begin(self) -> None:
        """Begins with the first user."""

    def _end(self) -> None:
        """Ends with the last user."""

    def room(self, text: str) -> int:
        """The tokens of a text that the model reads at once, at most."""
        ...

    def begin(self, sources: Sequence[np.ndarray]) -> PendingWindow:
        """Begins to write summaries of a window, in the order of these calls.

        Args:
          sources: int32 [S] each, cut as `room` says.
        """
        ...
