"""Counts the progress of a task, for the display of this machine and for the metrics of
an engine.

Beam reports metrics of a local run only at its end, so progress is counted twice: with
`precis.model.progress` for this machine, and with `on_count` for the engine.
"""

from collections import Counter
from collections.abc import Callable

from precis.model.progress.counters import count
from precis.pipelines.corpus.task import Position

# The namespace of Beam's counters, as in `precis/documents`.
METRICS_NAMESPACE = "precis"


class TaskProgress:
    """Counts the progress of one task.

    Code that finishes documents reports the position of the reader after the last of
    them. Documents that are only read do not count, so progress follows results. The
    counts never exceed the task's size, and add up to it.
    """

    def __init__(
        self, size: int, on_count: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        """Starts the clock.

        Args:
          size: the size of the task, in the job's unit.
          on_count: takes the name of a counter, `documents`, `tokens` or `flagged`, and
              the number to add to it.
        """
        self._size = size
        self._on_count = on_count
        self._done = Position()
        self._counted: Counter[str] = Counter()
        count()

    def advance_to(self, position: Position, share: float = 1.0) -> None:
        """Counts documents up to a position.

        Args:
          position: the position of the reader after the last finished document.
          share: the share that is done of the work between the last position and this
              position.
        """
        before = self._done
        records = before.records + share * (position.records - before.records)
        of_task = before.share + share * (position.share - before.share)
        self._count_up_to(int(records), round(self._size * min(of_task, 1.0)))
        if share == 1.0:
            self._done = position

    def add(self, name: str, number: int) -> None:
        """Adds to the counter `tokens` (encoded, read or written) or `flagged` (rows
        with a quality flag).
        """
        if number:
            self._counted[name] += number
            count(**{name: number})
            if name != "size":
                self._on_count(name, number)

    def give_back(self) -> None:
        """Takes back everything except the size, because the task's file failed."""
        for name in {*self._counted} - {"size"}:
            self.add(name, -self._counted[name])
        self._done = Position()

    def finish(self) -> None:
        """Counts the rest of the size when the task is done."""
        self._count_up_to(self._done.records, self._size)

    def _count_up_to(self, documents: int, size: int) -> None:
        self.add("documents", documents - self._counted["documents"])
        self.add("size", size - self._counted["size"])
