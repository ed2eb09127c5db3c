"""What a job says to the command that runs it, for the case that a signal ends that.

    with at_end(release):       # to be called when the processes below are dead
        with at_once():         # nothing to save: do not wait for the block
            pipeline.run()

A command handles SIGINT and SIGTERM (`precis.pipelines.command_line.ending`). In a
Python program that calls `precis.summarize` nothing does, and all of this does nothing.
"""

import contextlib
import dataclasses
import signal
from collections.abc import Callable, Iterator
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How long the main thread has to give back what it holds, or to save a training.
GRACE_SECONDS = 2.0
SAVING_SECONDS = 4.0


class Stopped(KeyboardInterrupt):
    """A signal ends the command."""


@dataclasses.dataclass(eq=False)
class Ending:
    """How a command ends at a signal.

    Attributes:
      detail: what is kept, for its last line.
      signal: the signal that has arrived, or 0.
      grace_seconds: how long the main thread may go on after a signal.
      is_raising: whether a signal raises `Stopped` in the main thread.
      first_acts, last_acts: called before and after the processes below this one are
          killed.
      as_line: what is printed for a message.
    """

    detail: str
    signal: int = 0
    grace_seconds: float = GRACE_SECONDS
    is_raising: bool = True
    first_acts: list[Callable[[], object]] = dataclasses.field(default_factory=list)
    last_acts: list[Callable[[], object]] = dataclasses.field(default_factory=list)
    as_line: Callable[[str], str] = str


def installed() -> Ending | None:
    """How this process ends, where it is a command."""
    handlers: Iterator[Any] = map(signal.getsignal, SIGNALS)
    return next((each for each in handlers if isinstance(each, Ending)), None)


@contextlib.contextmanager
def changed(**values: Any) -> Iterator[Ending | None]:
    """Changes attributes of the installed ending while the block runs."""
    ending = installed()
    if ending is None:
        yield None
        return
    before = {name: getattr(ending, name) for name in values}
    vars(ending).update(values)
    try:
        yield ending
    finally:
        if not ending.signal:
            vars(ending).update(before)


@contextlib.contextmanager
def at_end(act: Callable[[], object], *, is_first: bool = False) -> Iterator[None]:
    """Has a function called if a signal ends the process while the block runs.

    Args:
      act: what to call; an exception of it is ignored.
      is_first: whether it needs the processes below this one alive.
    """
    ending = installed()
    acts = [] if not ending else ending.first_acts if is_first else ending.last_acts
    acts.append(act)
    try:
        yield
    finally:
        acts.remove(act)


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """A signal does not wait for the block, which would not end when it is interrupted.

    Ctrl-C does not reach the processes that the block starts: they would each print a
    traceback before they are killed.
    """
    with changed(grace_seconds=0.0, is_raising=False) as ending:
        blocked = {signal.SIGINT} if ending else set()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def saving() -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal has arrived, for a block that then saves
    its state and raises an exception.
    """
    detail = "not saved in time, the last checkpoint is kept"
    with changed(
        grace_seconds=SAVING_SECONDS, is_raising=False, detail=detail
    ) as ending:
        yield lambda: ending is not None and bool(ending.signal)
