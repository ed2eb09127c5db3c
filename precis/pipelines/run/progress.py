"""Counts what is done of a task: for the display of this machine, and for the metrics
of an engine.

Beam reports metrics only at the end of a local run, and an engine from its workers. So
both are counted: `precis.model.progress` here, `on_count` for the engine.
"""

from collections import Counter
from collections.abc import Callable

from precis.model.progress.counters import count
from precis.pipelines.corpus.task import Position

# Beam's counters: `precis/documents` and so on.
METRICS_NAMESPACE = "precis"


class TaskProgress:
    """Counts what is done of one task.

    Whoever finishes documents says where their reader was after the last of them.
    Documents that were only read do not count, so a job that reads ahead moves with its
    results. What is counted never exceeds the task's size, and adds up to it.
    """

    def __init__(
        self, size: int, on_count: Callable[[str, int], None] = lambda *_: None
    ) -> None:
        """Starts the clock.

        Args:
          size: of the task, in the job's unit.
          on_count: takes the name of a counter, `documents`, `tokens` or `flagged`, and
            what is added to it.
        """
        self._size = size
        self._on_count = on_count
        self._done = Position()
        self._counted: Counter[str] = Counter()
        count()

    def advance_to(self, position: Position, part: float = 1.0) -> None:
        """Counts the documents up to a position.

        Args:
          position: of the reader, after the last of them.
          part: how much is done of the work that lies between the last position that
              was reached and this one.
        """
        before = self._done
        records = before.records + part * (position.records - before.records)
        share = before.share + part * (position.share - before.share)
        self._count_up_to(int(records), round(self._size * min(share, 1.0)))
        if part == 1.0:
            self._done = position

    def add(self, name: str, number: int) -> None:
        """Counts `tokens` that were encoded, read or written, or `flagged` rows, whose
        summary has a quality flag.
        """
        if number:
            self._counted[name] += number
            count(**{name: number})
            if name != "size":
                self._on_count(name, number)

    def give_back(self) -> None:
        """Takes back all but the size: its file failed, so there is no result."""
        for name in {*self._counted} - {"size"}:
            self.add(name, -self._counted[name])
        self._done = Position()

    def finish(self) -> None:
        """Counts what is left of the size: the task is done."""
        self._count_up_to(self._done.records, self._size)

    def _count_up_to(self, documents: int, size: int) -> None:
        self.add("documents", documents - self._counted["documents"])
        self.add("size", size - self._counted["size"])
