"""Shows the progress of a command: listens to its stages, and paints them.

    with shown("summarize", ProgressOptions(progress="json")):
        summarize(...)

On a terminal the lines of the stages that run are renewed, and those that have ended
stay above them:

    keys  20,100 documents  9,830/s  0:02
    summarize ━━━━━━━━━╺━━━━━━   43%  8,640 / 20,100 documents  1,204/s  0:07 left
                                3 dead letters  12 flagged

Elsewhere a line or an object is written when a stage begins, every few seconds, and at
its end. Between stages nothing is renewed, so that a result can be printed to the same
terminal.
"""

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from precis.model.progress.counters import FOLDER_VARIABLE
from precis.model.progress.stages import StageGroup, current_listener, listening, stage
from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines.run.interruption import print_error
from precis.pipelines.run.options import (
    JSON,
    LIVE,
    NONE,
    PLAIN,
    ProgressOptions,
    with_dashes,
)
from precis.pipelines.run.stage_state import (
    DONE,
    FAILED,
    StageState,
    line_json,
    measure,
    plain_line,
    steady_rate,
    words,
)

# Between two paintings.
_SECONDS = {LIVE: 0.25, PLAIN: 5.0, JSON: 1.0}


class _RunningGroup:
    """Stages that have begun, and when."""

    def __init__(self, group: StageGroup) -> None:
        self.is_brief = all(each.is_brief for each in group.stages)
        self.group = group
        self._began = time.monotonic()
        self._ended: set[str] = set()

    def states(self, state: str) -> list[StageState]:
        """The states of the stages; one is done when the next begins. A stage that has
        ended is given once.

        Args:
          state: `done` or `failed` where all of them have ended.
        """
        now, began = time.monotonic(), self._began
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
        fresh = [each for each in states if each.stage not in self._ended]
        self._ended |= {each.stage for each in states if each.is_ended}
        return fresh


class Display:
    """Listens to the stages of a job and shows them on stderr."""

    def __init__(self, command: str, options: ProgressOptions, mode: str) -> None:
        """Stores its arguments.

        Args:
          command: its name, for JSON.
          options: of the command.
          mode: `live`, `plain`, `json` or `none`.
        """
        self.options = options
        self._command = command
        self._mode = NONE if options.quiet else mode
        self._live = _make_live() if self._mode == LIVE else None
        self._running: list[_RunningGroup] = []
        # Of the stage that ended last.
        self.rate: float | None = None
        # Painting, and what changes what is painted.
        self._lock = threading.RLock()

    def begin(self, group: StageGroup) -> None:
        """Shows stages, beside those that run."""
        running = _RunningGroup(group)
        with self._lock:
            if self._live and not self._running:
                self._live.start()
            self._running.append(running)
            if self._live or not running.is_brief:
                self.paint()

    def end(self, *, is_done: bool) -> None:
        """Shows how the stages that began last have ended."""
        with self._lock:
            self.paint(DONE if is_done else FAILED)
            self.rate = steady_rate(self._running.pop().group.counts()[-1])
            if self._live and not self._running:
                self._live.stop()

    def say(self, text: str, state: str = "message") -> None:
        """Shows a message of one line; `state` is `failed` for an error."""
        text = with_dashes(text)
        if self._mode == JSON:
            text = line_json(self._command, state=state, message=text)
        if state == FAILED or not self.options.quiet:
            with self._lock:
                self._print(text)

    def paint(self, state: str = "") -> None:
        """Writes a line for each stage that has just ended, and shows those that run:
        of lines, the last one, as the others wait for it.

        Args:
          state: of the stages that began last, `done` or `failed`.
        """
        with self._lock:
            running: list[StageState] = []
            ended: list[StageState] = []
            for group in self._running:
                is_last = group is self._running[-1]
                for each in group.states(state if is_last else ""):
                    if group.is_brief and (each.is_ended or not self._live):
                        continue
                    (ended if each.is_ended else running).append(each)
            if self._live:
                self._live.update(_table(running), refresh=True)
            elif not state:
                ended += running[-1:]
            for each in ended:
                self._write(each)

    def _write(self, state: StageState) -> None:
        """Writes the line of a stage."""
        if self._mode == JSON:
            fields = state._asdict()
            del fields["share"]
            self._print(line_json(self._command, **fields))
        elif self._mode != NONE:
            self._print(plain_line(state))

    def _print(self, text: str) -> None:
        """Writes a line, on a terminal above those that are renewed."""
        if self._live:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            print_error(text)

    def renew(self, is_over: threading.Event) -> None:
        """Paints again and again, until the command has ended."""
        while not is_over.wait(_SECONDS.get(self._mode)):
            self.paint()


def _make_live() -> Any:
    """Lines that are renewed; what others write to stderr goes above them."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, force_terminal=True, highlight=False)
    return Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False
    )


def _table(states: Sequence[StageState]) -> Any:
    """The lines of stages that run; words that do not fit go on in the next line."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for state in states:
        total = None if state.share is None else 1.0
        bar = ProgressBar(total=total, completed=state.share or 0, width=16)
        table.add_row(Text(state.stage), bar, Text("  ".join(words(state))))
    return table


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
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    mode = options.mode(is_terminal=is_terminal, is_verbose=is_verbose)
    display = Display(command, options, mode)
    is_over = threading.Event()
    thread = threading.Thread(target=display.renew, args=(is_over,), daemon=True)
    thread.start()
    try:
        with listening(display):
            yield
    finally:
        is_over.set()
        thread.join()


def is_quiet() -> bool:
    """Whether this command has the flag --quiet."""
    listener = current_listener()
    return isinstance(listener, Display) and listener.options.quiet


def last_rate() -> float | None:
    """The `steady_rate` of the stage of this command that ended last."""
    listener = current_listener()
    return listener.rate if isinstance(listener, Display) else None


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
