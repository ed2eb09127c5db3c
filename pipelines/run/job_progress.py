"""Shows the progress of a command: listens to its stages, and paints them.

    with shown("precis summarize", ProgressOptions(progress="json")):
        summarize(...)

A thread renews what is shown while a stage runs. Between stages nothing is renewed, so
that a result can be printed to the same terminal.
"""

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from precis.model.progress.counters import FOLDER_VARIABLE
from precis.model.progress.stages import (
    StageGroup,
    current_listener,
    listening,
    stage,
)
from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines.options.progress import (
    JSON,
    LIVE,
    PLAIN,
    ProgressOptions,
)
from precis.pipelines.run import interruption
from precis.pipelines.run.progress_painters import (
    Painter,
    QuietPainter,
    json_painter,
    plain_painter,
    print_error,
)
from precis.pipelines.run.progress_state import (
    DONE,
    FAILED,
    StageState,
    measure,
)


class _RunningGroup(NamedTuple):
    """Stages that have begun, and when."""

    group: StageGroup
    began: float


class Display:
    """Listens to the stages of a job and has a painter show them."""

    def __init__(
        self,
        painter: Painter,
        *,
        shows_brief: bool,
        options: ProgressOptions | None = None,
    ) -> None:
        """Stores its arguments.

        Args:
          painter: shows the stages.
          shows_brief: whether brief stages are shown.
          options: the flags that asked for it.
        """
        self.options = options or ProgressOptions()
        self._painter = painter
        self._shows_brief = shows_brief
        self._running: list[_RunningGroup] = []
        # Painting, and what changes what is painted.
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_ended = False

    def begin(self, group: StageGroup) -> None:
        """Shows stages, beside those that run."""
        with self._lock:
            running = _RunningGroup(group, time.monotonic())
            self._running.append(running)
            if self._has_ended or not self._is_shown(group):
                return
            if self._thread is None:
                self._painter.begin()
                self._is_over.clear()
                self._thread = threading.Thread(target=self._renew, daemon=True)
                self._thread.start()
            self._painter.paint(self._states())

    def end(self, *, is_done: bool) -> None:
        """Shows how the stages that began last have ended."""
        with self._lock:
            running = self._running.pop()
            if self._has_ended or not self._is_shown(running.group):
                return
            is_last = not any(self._is_shown(other.group) for other in self._running)
            states = [
                state
                for state in _group_states(running, DONE if is_done else FAILED)
                if not _is_brief(running.group)
            ]
            self._painter.end(states, is_last=is_last)
            thread = self._thread
            if is_last:
                self._thread = None
                self._is_over.set()
        if is_last and thread is not None:
            thread.join()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Shows a message of one line."""
        with self._lock:
            self._painter.say(text, is_error=is_error)

    def stopped_line(self, text: str) -> str:
        """The line that a signal prints at the end."""
        return self._painter.stopped_line(text)

    def stop(self) -> None:
        """Ends the display for good, as before a message that a signal prints."""
        with self._lock:
            if self._running and self._thread is not None and not self._has_ended:
                states = [
                    state
                    for running in self._running
                    if self._is_shown(running.group) and not _is_brief(running.group)
                    for state in _group_states(running, FAILED)
                ]
                self._painter.end(states, is_last=True)
            self._has_ended = True
            self._is_over.set()

    def _renew(self) -> None:
        """Paints again and again, until the last stage has ended."""
        while not self._is_over.wait(self._painter.seconds):
            with self._lock:
                if self._is_over.is_set():
                    return
                self._painter.paint(self._states())

    def _is_shown(self, group: StageGroup) -> bool:
        return self._shows_brief or not _is_brief(group)

    def _states(self) -> list[StageState]:
        return [
            state
            for running in self._running
            if self._is_shown(running.group)
            for state in _group_states(running)
        ]


def _is_brief(group: StageGroup) -> bool:
    return all(each.is_brief for each in group.stages)


def _group_states(running: _RunningGroup, state: str = "") -> list[StageState]:
    """The states of stages that began together; a stage is done when the next begins.

    Args:
      running: the stages.
      state: `done` or `failed` where all of them have ended.
    """
    now = time.monotonic()
    counts = running.group.counts()
    began = running.began
    states: list[StageState] = []
    for place, each in enumerate(running.group.stages):
        is_followed = any(later.started for later in counts[place + 1 :])
        ended = max(counts[place].ended, began) if is_followed else now
        if place and not is_followed and not counts[place].started and not state:
            break  # It has not begun.
        if state == FAILED and place and not counts[place].started:
            break
        of_stage = DONE if is_followed else state
        is_counted = bool(states) and states[-1].documents > 0
        if is_counted and each.size is not None and not of_stage:
            # The stage before it has counted them.
            each = dataclasses.replace(each, total=states[-1].documents)
        states.append(
            measure(each, counts[place], now=ended, began=began, state=of_stage)
        )
        began = ended
    return states


@contextlib.contextmanager
def shown(
    command: str,
    options: ProgressOptions | None = None,
    *,
    is_verbose: bool = False,
) -> Iterator[None]:
    """Shows the stages of the block, unless a block around it shows them.

    Args:
      command: its name, for JSON.
      options: how they are shown.
      is_verbose: whether the logs of libraries are shown too.

    Raises:
      UsageError: a wrong value in the environment.
    """
    # The variable is there, if empty, where stages are hidden, and in a worker.
    if current_listener() is not None or FOLDER_VARIABLE in os.environ:
        yield
        return
    display = _make_display(command, options or ProgressOptions(), is_verbose)
    with (
        listening(display),
        interruption.at_end(display.stop, is_first=True),
        interruption.changed(as_line=display.stopped_line),
    ):
        yield


def _make_display(command: str, options: ProgressOptions, is_verbose: bool) -> Display:
    """The display that the flags ask for."""
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    mode = options.mode(is_terminal=is_terminal, is_verbose=is_verbose)
    painter: Painter
    if options.quiet:
        painter = QuietPainter(is_silent=True)
    elif mode == LIVE:
        from precis.pipelines.run.live_painter import LivePainter

        painter = LivePainter()
    elif mode == PLAIN:
        painter = plain_painter()
    elif mode == JSON:
        painter = json_painter(command)
    else:
        painter = QuietPainter(is_silent=False)
    shows_brief = mode == LIVE and not options.quiet
    return Display(painter, shows_brief=shows_brief, options=options)


def is_quiet() -> bool:
    """Whether this command has the flag --quiet."""
    listener = current_listener()
    return isinstance(listener, Display) and listener.options.quiet


def complain(text: str) -> None:
    """Gives an error of one line to the display; without one, to stderr. What fails
    after a signal may have failed because of it, and says nothing.
    """
    ending = interruption.installed()
    if ending is not None and ending.signal:
        return
    listener = current_listener()
    if isinstance(listener, Display):
        listener.say(text, is_error=True)
    else:
        print_error(text)


def load_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, and says so on a terminal."""
    with stage("loading TensorFlow", is_brief=True):
        import_tensorflow()
