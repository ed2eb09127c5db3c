"""The stages of a job, which a display may show.

    with stage("train", total=steps, unit="steps") as training:
        for batch in batches:
            step(batch)
            training.advance(tokens=batch.tokens)

Code that works does not know the display. A display is a `Listener`: it is called when
stages begin and end, and reads their progress from `counters`. Without a listener
stages are silent, and messages go to stderr.
"""

import contextlib
import contextvars
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from precis.model.progress.counters import (
    Counts,
    count,
    count_earlier,
    counting_folder,
    sum_counts,
    totals,
)

ResultT = TypeVar("ResultT")


@dataclasses.dataclass(kw_only=True)
class Stage:
    """A stage of a job and its work.

    Attributes:
      name: a word or two.
      total: the number of documents or other units; None if it is not known.
      is_total_estimated: whether `total` may be a few percent off.
      size: the size of all units, in the unit that workers count, such as bytes; None
          if it is not known.
      unit: the name of the unit of `total`, in the plural.
      step: the step that its threads enter, if stages run together.
      is_brief: whether only a live display shows the stage, until it ends.
      note: a few words that change while the stage runs, such as the loss.
      first_note: a note on the work before the first unit is done, such as compiling.
      began: when the first units were done, after compiling.
      measured: the number of units done after the first.
    """

    name: str
    total: int | None = None
    is_total_estimated: bool = False
    size: int | None = None
    unit: str = "documents"
    step: str = ""
    is_brief: bool = False
    note: str = ""
    first_note: str = ""
    began: float = 0.0
    measured: int = 0

    def advance(self, units: int = 1, *, tokens: int = 0) -> None:
        """Counts units that this thread has done."""
        if self.began:
            self.measured += units
        self.began = self.began or time.monotonic()
        count(documents=units, tokens=tokens)

    def counted(self, result: ResultT) -> ResultT:
        """Counts a unit and returns its result."""
        self.advance()
        return result

    def resume(self, units: int) -> None:
        """Counts units that an earlier run did."""
        count_earlier(earlier_documents=units)


@dataclasses.dataclass
class StageGroup:
    """Stages that begin and end together; their work may overlap.

    Attributes:
      stages: the stages in the order of their work.
      folder: the folder that they count into. The last stage gets steps of no stage.
    """

    stages: Sequence[Stage]
    folder: str

    def counts(self) -> list[Counts]:
        """The counts of each stage."""
        by_step = totals(self.folder)
        if len(self.stages) == 1:
            return [sum_counts(by_step.values())]
        counts = [by_step.pop(stage.step, Counts()) for stage in self.stages]
        last = sum_counts([counts[-1], *by_step.values()])
        # The clock of the last stage counts only its own tasks.
        started, ended = counts[-1].started, counts[-1].ended
        return [*counts[:-1], last._replace(started=started, ended=ended)]


class Listener(Protocol):
    """A display of stages."""

    def begin(self, group: StageGroup) -> None:
        """Stages begin; stages of an earlier call may still run."""

    def end(self, *, is_done: bool) -> None:
        """The stages that began last have ended, done or failed."""

    def say(self, text: str) -> None:
        """Shows a message of one line, such as a warning."""


# The display of the stages of this thread; None shows nothing.
LISTENER: contextvars.ContextVar[Listener | None] = contextvars.ContextVar(
    "listener", default=None
)


@contextlib.contextmanager
def stage(name: str, **settings: Any) -> Iterator[Stage]:
    """Shows a stage while the block does its work.

    Args:
      name: the name of the stage.
      **settings: `total`, `unit`, `note` or `is_brief` of `Stage`.
    """
    one = Stage(name=name, **settings)
    with stages([one]):
        if one.total is not None:
            count()  # starts the clock of this thread
        yield one


@contextlib.contextmanager
def stages(several: Sequence[Stage]) -> Iterator[None]:
    """Shows stages while the block does their work.

    A thread counts for the stage whose step it has entered, else for the last stage.
    """
    listener = LISTENER.get()
    if listener is None:
        yield
        return
    with counting_folder() as folder:
        listener.begin(StageGroup(several, folder))
        is_done = False
        try:
            yield
            is_done = True
        finally:
            listener.end(is_done=is_done)


def about(seconds: float) -> str:
    """A time in words: about 7 min, about 1 h 5 min, about 1 d 22 h."""
    minutes = max(round(seconds / 60), 1)
    days, hours = divmod(round(minutes / 60), 24)
    if days:
        return f"about {days} d {hours} h"
    hours, rest = divmod(minutes, 60)
    return f"about {hours} h {rest} min" if hours else f"about {minutes} min"


def say(text: str) -> None:
    """Shows a message of one line on the display, or else on stderr."""
    listener = LISTENER.get()
    if listener is None:
        print(text, file=sys.stderr, flush=True)
    else:
        listener.say(text)
