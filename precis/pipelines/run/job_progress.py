"""Shows the progress of a command, by painting the stages that it listens to.

    with shown("summarize", ProgressOptions(progress="json")):
        summarize(...)

On a terminal the lines of running stages are renewed, and the lines of finished stages
stay above them:

    keys  20,100 documents  9,830/s  0:02
    summarize ━━━━━━━━━╺━━━━━━   43%  8,640 / 20,100 documents  1,204/s  0:07 left
                                3 dead letters  12 flagged

Elsewhere a line or an object is written when a stage begins, every few seconds, and at
its end. Between stages nothing is renewed, so that results can be printed to the same
terminal. Lines and objects contain the same fields, from `measure_stages`.
"""

import contextlib
import dataclasses
import datetime
import importlib
import math
import os
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from precis.model.progress.counters import FOLDER_VARIABLE, Counts
from precis.model.progress.stages import LISTENER, Stage, StageGroup, stage
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

STARTING, RUNNING, DONE, FAILED = "starting", "running", "done", "failed"
ENDED = (DONE, FAILED)
# Modules that Beam imports if they are installed: for its connectors to services, for
# Dataflow, for frames.
BEAM_CLIENTS = (
    *("apache_beam.io.gcp.bigquery", "google.cloud.storage", "google.cloud.dataflow"),
    *("apitools", "boto3", "bson", "pymongo", "pandas"),
)
# The seconds between two paintings.
_SECONDS = {LIVE: 0.25, PLAIN: 5.0, JSON: 1.0}


def measure_stages(
    stage: Stage, counts: Counts, *, now: float, began: float, state: str = ""
) -> dict[str, Any]:
    """The state of a stage at one moment, with the fields of docs/RUNNING.md.

    Args:
      stage: the stage.
      counts: what the stage has counted so far.
      now, began: the current time and the start of the stage, in seconds.
      state: `done` or `failed` if the stage has ended.
    """
    documents = counts.documents + counts.earlier_documents
    total, is_estimated = stage.total, stage.is_total_estimated
    if total is None and documents:
        if state == DONE or counts.size >= (stage.size or math.inf):
            total = documents
        elif stage.size and counts.size:
            total = _rounded(documents * stage.size / counts.size)
            is_estimated = True
    rate = left = tokens_rate = None
    # The first batch is not representative, so it alone gives no rate.
    if state or counts.documents > counts.first_documents:
        rate = steady_rate(counts)
    if rate is not None:
        if counts.tokens:
            tokens_rate = rate * counts.tokens / counts.documents
        if total is not None and not state:
            left = max((total - documents) / rate - (now - counts.ended), 0.0)
    is_counted = stage.total is not None or stage.size is not None
    waits = is_counted and not (counts.started or documents)
    is_first = not (counts.documents or state)
    return {
        "stage": stage.name,
        "state": state or (STARTING if waits else RUNNING),
        "documents": documents,
        "total": total,
        "is_total_estimated": is_estimated,
        "unit": stage.unit,
        "rate": rate,
        "seconds": now - began,
        "seconds_left": left,
        "tokens": counts.tokens,
        "tokens_per_second": tokens_rate,
        "dead_letters": counts.dead_letters,
        "flagged": counts.flagged,
        "note": (stage.first_note if is_first else "") or stage.note,
    }


def steady_rate(counts: Counts) -> float | None:
    """Documents per second after each worker's first batch, or over the whole run if
    these batches are most of it; None before the first.
    """
    later = counts.documents - counts.first_documents
    rate = _per_second(later, counts.ended - counts.first)
    if rate and later >= counts.first_documents:
        return rate
    return _per_second(counts.documents, counts.ended - counts.started)


def _per_second(number: int, seconds: float) -> float | None:
    return number / seconds if number and seconds > 0 else None


def _rounded(number: float) -> int:
    """A number of three digits and zeros: 20,000 for 19,963."""
    return int(round(number, min(3 - len(str(int(number))), 0)))


def share_done(state: Mapping[str, Any]) -> float | None:
    """The share of a stage that is done, from 0 to 1; None if it is not known."""
    return min(state["documents"] / state["total"], 1.0) if state["total"] else None


def display_words(state: Mapping[str, Any]) -> list[str]:
    """The words after a stage's name in its line, the most important first."""
    share, rate, note = share_done(state), state["rate"], state["note"]
    is_ended = state["state"] in ENDED
    parts = ["stopped"] if state["state"] == FAILED else []
    if share is not None and not is_ended:
        parts.append(f"{100 * share:3.0f}%")
    if state["state"] == STARTING:
        parts.append("starting")
    elif state["documents"] or not (share is None or is_ended or note):
        parts.append(_documents(**state))
    if rate is not None:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
    if share == 1 and not is_ended:
        parts.append("finishing")
    if state["seconds_left"] is not None and share != 1:
        parts.append(f"{clock(state['seconds_left'])} left")
    else:
        parts.append(clock(state["seconds"]))
    if state["tokens_per_second"] is not None:
        parts.append(f"{state['tokens_per_second']:,.0f} tokens/s")
    if letters := state["dead_letters"]:
        parts.append(f"{letters:,} dead letter{'s' * (letters > 1)}")
    if state["flagged"]:
        parts.append(f"{state['flagged']:,} flagged")
    return [*parts, note] if note else parts


def _documents(
    documents: int, total: int | None, unit: str, is_total_estimated: bool, **_: Any
) -> str:
    is_all = total is None or documents >= total
    unit = unit.removesuffix("s") if (documents if is_all else total) == 1 else unit
    if is_all:
        return f"{documents:,} {unit}"
    return f"{documents:,} / {'about ' * is_total_estimated}{total:,} {unit}"


def clock(seconds: float) -> str:
    """Formats seconds as 0:07, or with hours as 2:00:07."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def plain_line(state: Mapping[str, Any]) -> str:
    """Formats a state as a line for a log."""
    is_new = state["state"] == STARTING and state["seconds"] < 1
    return "  ".join(
        [state["stage"], *(["starting"] if is_new else display_words(state))]
    )


def line_json(command: str, **fields: Any) -> str:
    """Formats a message or state as JSON with the fields of docs/RUNNING.md."""
    for name, value in fields.items():
        fields[name] = round(value, 3) if isinstance(value, float) else value
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"time": now, "command": command, **fields}).decode()


class _RunningGroup:
    """Stages that began together."""

    def __init__(self, group: StageGroup) -> None:
        self.is_brief = all(each.is_brief for each in group.stages)
        self.group = group
        self._began = time.monotonic()  # the start of the current stage
        self._place = 0

    def states(self, state: str) -> list[dict[str, Any]]:
        """The state of the current stage, and of earlier stages that have ended since
        the last call: a stage is done when a later stage begins.

        Args:
          state: `done` or `failed` if all stages have ended.
        """
        stages, counts = self.group.stages, self.group.counts()
        begun = [place for place, each in enumerate(counts) if each.started]
        last = len(stages) - 1 if state == DONE else max(begun, default=0)
        states: list[dict[str, Any]] = []
        for place in range(self._place, last):
            before = counts[place]
            ended = max(before.ended, self._began)
            states.append(
                measure_stages(
                    stages[place], before, now=ended, began=self._began, state=DONE
                )
            )
            self._began = ended
        self._place, current = last, stages[last]
        if last and current.size and not state:
            # The earlier stage has counted these.
            before = counts[last - 1]
            total = before.documents + before.earlier_documents
            current = dataclasses.replace(current, total=total or None)
        now, began = time.monotonic(), self._began
        return [
            *states,
            measure_stages(current, counts[last], now=now, began=began, state=state),
        ]


class Display:
    """Listens to the stages of a job and shows them on stderr."""

    def __init__(self, command: str, options: ProgressOptions, mode: str) -> None:
        """Stores its arguments.

        Args:
          command: the name of the command, for JSON.
          options: the display options of the command.
          mode: `live`, `plain`, `json` or `none`.
        """
        self.options = options
        self._command = command
        self._mode = NONE if options.quiet else mode
        self._live = _make_live() if self._mode == LIVE else None
        self._running: list[_RunningGroup] = []
        # Documents per second of the stage that ended last.
        self.rate: float | None = None
        # Protects painting and the state that is painted.
        self._lock = threading.RLock()

    def begin(self, group: StageGroup) -> None:
        """Shows stages below the stages that already run."""
        running = _RunningGroup(group)
        with self._lock:
            if self._live and not self._running:
                self._live.start()
            self._running.append(running)
            if self._live or not running.is_brief:
                self.paint()

    def end(self, *, is_done: bool) -> None:
        """Shows how the stages that began last ended."""
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
        """Writes a line for each stage that just ended, and shows running stages. In a
        log, only the last stage is shown, because the others wait for it.

        Args:
          state: `done` or `failed` for the stages that began last.
        """
        with self._lock:
            running: list[dict[str, Any]] = []
            for group in self._running:
                is_last = group is self._running[-1]
                for each in group.states(state if is_last else ""):
                    if each["state"] not in ENDED:
                        running += [each] if self._live or not group.is_brief else []
                    elif not group.is_brief:
                        self._write(each)
            if self._live:
                self._live.update(_table(running), refresh=True)
            elif running and not state:
                self._write(running[-1])

    def _write(self, state: dict[str, Any]) -> None:
        """Writes the line of a stage."""
        if self._mode == JSON:
            self._print(line_json(self._command, **state))
        elif self._mode != NONE:
            self._print(plain_line(state))

    def _print(self, text: str) -> None:
        """Writes a line; on a terminal, above the live lines."""
        if self._live:
            self._live.console.print(text, markup=False, soft_wrap=True)
        else:
            print_error(text)

    def renew(self, is_over: threading.Event) -> None:
        """Paints repeatedly until the command has ended."""
        while not is_over.wait(_SECONDS.get(self._mode)):
            self.paint()


def _make_live() -> Any:
    """The live lines; other output to stderr goes above them."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, force_terminal=True, highlight=False)
    return Live(
        console=console, auto_refresh=False, transient=True, redirect_stdout=False
    )


def _table(states: Sequence[Mapping[str, Any]]) -> Any:
    """The lines of running stages; words that do not fit continue on the next line."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for state in states:
        share = share_done(state)
        total = None if share is None else 1.0
        bar = ProgressBar(total=total, completed=share or 0, width=16)
        table.add_row(Text(state["stage"]), bar, Text("  ".join(display_words(state))))
    return table


@contextlib.contextmanager
def shown(
    command: str, options: ProgressOptions | None = None, *, is_verbose: bool = False
) -> Iterator[None]:
    """Shows the stages of the block, unless an outer block already shows them.

    Args:
      command: the name of the command, for JSON.
      options: how to show them.
      is_verbose: whether the logs of libraries are also shown.

    Raises:
      UsageError: an environment variable has an invalid value.
    """
    # The variable is set (to "") if stages are hidden, and set in workers.
    if LISTENER.get() is not None or FOLDER_VARIABLE in os.environ:
        yield
        return
    options = options or ProgressOptions()
    is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    mode = options.mode(is_terminal=is_terminal, is_verbose=is_verbose)
    display = Display(command, options, mode)
    is_over = threading.Event()
    thread = threading.Thread(target=display.renew, args=(is_over,), daemon=True)
    thread.start()
    token = LISTENER.set(display)
    try:
        yield
    finally:
        LISTENER.reset(token)
        is_over.set()
        thread.join()


def current_display() -> Display | None:
    """The display of this command, if it has one."""
    listener = LISTENER.get()
    return listener if isinstance(listener, Display) else None


def complain(text: str) -> None:
    """Shows a one-line error on the display, or on stderr without one."""
    if display := current_display():
        display.say(text, FAILED)
    else:
        print_error(text)


def load_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, and says so on a terminal."""
    with stage("loading TensorFlow", is_brief=True):
        import_tensorflow()


def load_beam(beam_args: Sequence[str] = ()) -> None:
    """Imports Beam, and says so on a terminal.

    Args:
      beam_args: the flags for Beam. If there are none, the job runs on this machine, so
        the clients of services are left out, which take a third of the time.
    """
    left_out = () if beam_args else BEAM_CLIENTS
    with stage("loading Beam", is_brief=True), without(*left_out):
        importlib.import_module("apache_beam")


def load_arrow() -> None:
    """Imports Arrow, which imports pandas with its first array if pandas is installed.
    Commands have no frames of pandas, which takes ten times as long as Arrow.
    """
    with without("pandas"):
        importlib.import_module("pyarrow").array([0])


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Lets the block import as if some modules were not installed."""

    def refuse(name: str, *_: Any) -> None:
        if name in names:
            raise ModuleNotFoundError(f"No module named {name!r}")

    # Not `sys.modules[name] = None`: for modules compiled by Cython, such as those of
    # Arrow, an import then gives None.
    finder: Any = types.SimpleNamespace(find_spec=refuse)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
