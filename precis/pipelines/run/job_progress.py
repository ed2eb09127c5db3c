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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from precis.model.progress.counters import FOLDER_VARIABLE
from precis.model.progress.stages import StageGroup, current_listener, listening, stage
from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines.run import interruption
from precis.pipelines.run.interruption import print_error
from precis.pipelines.run.options import JSON, LIVE, PLAIN, ProgressOptions
from precis.pipelines.run.stage_state import (
    DONE,
    FAILED,
    StageState,
    line_json,
    measure,
    plain_line,
    state_json,
    words,
)

# Between two lines of a stage, and two pictures of a terminal.
_LINE_SECONDS = 5.0
_JSON_SECONDS = 1.0
_LIVE_SECONDS = 0.25


class Lines:
    """Writes a line when a stage begins, every few seconds, and at its end."""

    shows_brief = False

    def __init__(
        self,
        as_line: Callable[[StageState], str],
        as_message: Callable[[str, str], str],
        seconds: float = 3600.0,
    ) -> None:
        """Stores its arguments.

        Args:
          as_line: the line of a state; nothing is written for an empty one.
          as_message: the line of a text and of `message` or `failed`.
          seconds: between two lines of a stage.
        """
        self.seconds = seconds
        self.as_message = as_message
        self._as_line = as_line
        # The stages whose last line is written while those beside them run.
        self._ended: set[str] = set()

    def begin(self) -> None:
        """Does nothing: the first call of `paint` follows."""

    def paint(self, states: Sequence[StageState]) -> None:
        """Writes a line for each stage that has just ended, and for the last that runs:
        the others wait for it.
        """
        for state in states:
            if state.is_ended or state is states[-1]:
                line = self._as_line(state)
                if line and state.stage not in self._ended:
                    print_error(line)
            if state.is_ended:
                self._ended.add(state.stage)

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Writes the last line of each stage."""
        self.paint(states)
        self._ended -= {state.stage for state in states}

    def say(self, text: str, state: str) -> None:
        """Writes a message."""
        if line := self.as_message(text, state):
            print_error(line)


class Live:
    """Renews the lines of all stages that run, in place:

    summarize ━━━━━━━━━╺━━━━━━  43%  8,640 / about 20,100 documents  1,204/s  0:07 left
                                3 dead letters  12 flagged
    """

    seconds = _LIVE_SECONDS
    shows_brief = True

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, force_terminal=True, highlight=False)
        self._progress: Any = None

    def begin(self) -> None:
        """Hides the cursor; what others write to stderr goes above the display."""
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(min(max(self._console.width // 5, 10), 30)),
            # Where the words do not fit they go on in the next line.
            TextColumn("{task.fields[words]}", markup=False, table_column=Column()),
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
        )
        self._progress.start()

    def paint(self, states: Sequence[StageState]) -> None:
        """Renews the lines."""
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        for state in states:
            self._progress.add_task(
                state.stage,
                total=None if state.share is None else 1.0,
                completed=state.share or 0,
                words="  ".join(words(state)),
            )
        self._progress.refresh()

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Leaves the last lines where they are, and shows the cursor again."""
        if is_last:
            self._progress.columns = self._progress.columns[::2]  # without the bar
            self.paint(states)
            self._progress.live.transient = not states
            self._progress.stop()
            self._progress = None

    def say(self, text: str, state: str) -> None:
        """Writes a message above the lines."""
        if self._progress is None:
            print_error(text)
        else:
            self._console.print(text, markup=False, soft_wrap=True)


class _RunningGroup(NamedTuple):
    """Stages that have begun, and when."""

    group: StageGroup
    began: float
    is_brief: bool

    def states(self, state: str = "") -> list[StageState]:
        """The states of the stages; one is done when the next begins.

        Args:
          state: `done` or `failed` where all of them have ended.
        """
        now, began = time.monotonic(), self.began
        counts = self.group.counts()
        states: list[StageState] = []
        for place, each in enumerate(self.group.stages):
            is_followed = any(later.started for later in counts[place + 1 :])
            has_begun = not place or is_followed or counts[place].started > 0
            if not has_begun and state != DONE:
                break
            of_stage = DONE if is_followed else state
            if states and states[-1].documents and each.size and not of_stage:
                # The stage before it has counted them.
                each = dataclasses.replace(each, total=states[-1].documents)
            ended = max(counts[place].ended, began) if is_followed else now
            states.append(
                measure(each, counts[place], now=ended, began=began, state=of_stage)
            )
            began = ended
        return states


class Display:
    """Listens to the stages of a job and has a painter show them."""

    def __init__(self, painter: Lines | Live, options: ProgressOptions) -> None:
        """Stores its arguments."""
        self.options = options
        self._painter = painter
        self._running: list[_RunningGroup | None] = []  # None is hidden
        # Painting, and what changes what is painted.
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, group: StageGroup) -> None:
        """Shows stages, beside those that run."""
        is_brief = all(each.is_brief for each in group.stages)
        is_hidden = is_brief and not self._painter.shows_brief
        running = _RunningGroup(group, time.monotonic(), is_brief)
        with self._lock:
            self._running.append(None if is_hidden else running)
            if is_hidden:
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
            if running is None:
                return
            is_last = not any(self._running)
            states = running.states(DONE if is_done else FAILED)
            self._painter.end([] if running.is_brief else states, is_last=is_last)
            thread = self._thread
            if is_last:
                self._thread = None
                self._is_over.set()
        if is_last and thread is not None:
            thread.join()

    def say(self, text: str, state: str = "message") -> None:
        """Shows a message of one line; `state` is `failed` for an error."""
        with self._lock:
            self._painter.say(text, state)

    def stop(self, text: str) -> None:
        """Shows the last message of a process that a signal ends."""
        self._lock.acquire()  # For ever: no other thread shows anything any more.
        if self._thread is not None:
            self._painter.end(self._states(FAILED), is_last=True)
        if os.isatty(2):  # It shows ^C.
            print(file=sys.stderr)
        self._painter.say(text, FAILED)

    def _renew(self) -> None:
        """Paints again and again, until the last stage has ended."""
        while not self._is_over.wait(self._painter.seconds):
            with self._lock:
                if not self._is_over.is_set():
                    self._painter.paint(self._states())

    def _states(self, state: str = "") -> list[StageState]:
        """The states of what is shown; a brief stage leaves none at its end."""
        shown = [each for each in self._running if each]
        kept = [each for each in shown if not (state and each.is_brief)]
        return [of_stage for running in kept for of_stage in running.states(state)]


@contextlib.contextmanager
def shown(
    command: str, options: ProgressOptions | None = None, *, is_verbose: bool = False
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
    options = options or ProgressOptions()
    painter = _make_painter(command, options, is_verbose)
    display = Display(painter, options)
    if ending := interruption.installed():
        ending.say = display.stop
    with listening(display):
        yield


def _make_painter(
    command: str, options: ProgressOptions, is_verbose: bool
) -> Lines | Live:
    """What the flags ask for."""
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    mode = options.mode(is_terminal=is_terminal, is_verbose=is_verbose)
    if options.quiet:
        return Lines(lambda _: "", lambda text, state: text * (state == FAILED))
    if mode == LIVE:
        return Live()
    if mode == PLAIN:
        return Lines(plain_line, lambda text, _: text, _LINE_SECONDS)
    if mode == JSON:
        return Lines(
            lambda state: state_json(command, state),
            lambda text, state: line_json(command, state=state, message=text),
            _JSON_SECONDS,
        )
    return Lines(lambda _: "", lambda text, _: text)


def is_quiet() -> bool:
    """Whether this command has the flag --quiet."""
    listener = current_listener()
    return isinstance(listener, Display) and listener.options.quiet


def complain(text: str) -> None:
    """Gives an error of one line to the display; without one, to stderr."""
    listener = current_listener()
    if isinstance(listener, Display):
        listener.say(text, FAILED)
    else:
        print_error(text)


def load_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, and says so on a terminal."""
    with stage("loading TensorFlow", is_brief=True):
        import_tensorflow()
