"""Ways to show the states of stages: a live display, plain lines, JSON lines, nothing.

A painter is called by one thread at a time.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

from precis.pipelines.run.progress_state import (
    DONE,
    FAILED,
    STARTING,
    StageState,
)
from precis.pipelines.run.progress_text import message_json, state_json, words

_LINE_SECONDS = 5.0  # between two lines of a stage
_JSON_SECONDS = 1.0


class Painter(Protocol):
    """Shows stages from the beginning of the first to the end of the last.

    Attributes:
      seconds: between two calls of `paint`.
    """

    seconds: float

    def begin(self) -> None:
        """The first stages begin."""

    def paint(self, states: Sequence[StageState]) -> None:
        """Shows the stages that run, and those that have ended beside them."""

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Shows the end of stages; `is_last` where no other runs."""

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Shows a message of one line."""

    def stopped_line(self, text: str) -> str:
        """The line that a signal prints with a message."""


class QuietPainter:
    """Shows no stage; with `is_silent` no message either that is no error."""

    seconds = 3600.0

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent

    def begin(self) -> None:
        """Does nothing."""

    def paint(self, states: Sequence[StageState]) -> None:
        """Does nothing."""

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Does nothing."""

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Writes what is to be written."""
        if is_error or not self._is_silent:
            print_error(text)

    def stopped_line(self, text: str) -> str:
        """The message itself."""
        return text


class LinePainter:
    """Writes a line when a stage begins, every few seconds, and at its end."""

    def __init__(
        self,
        as_line: Callable[[StageState], str],
        as_message: Callable[[str, str], str],
        *,
        seconds: float,
    ) -> None:
        """Stores its arguments.

        Args:
          as_line: the line of a state.
          as_message: the line of a text and of `message` or `failed`.
          seconds: between two lines of a stage.
        """
        self.seconds = seconds
        self._as_line = as_line
        self._as_message = as_message
        # The stages whose last line is written while those beside them run.
        self._ended: set[str] = set()

    def begin(self) -> None:
        """Does nothing: the first call of `paint` follows."""

    def paint(self, states: Sequence[StageState]) -> None:
        """Writes a line for each stage that has just ended, and for the last that runs:
        the others wait for it.
        """
        for place, state in enumerate(states):
            is_ended = state.state in (DONE, FAILED)
            is_last = place == len(states) - 1
            if (is_ended or is_last) and state.name not in self._ended:
                print_error(self._as_line(state))
            if is_ended:
                self._ended.add(state.name)

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Writes the last line of each stage."""
        for state in states:
            if state.name not in self._ended:
                print_error(self._as_line(state))
            self._ended.discard(state.name)

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Writes a message."""
        print_error(self._as_message(text, FAILED if is_error else "message"))

    def stopped_line(self, text: str) -> str:
        """The message as an error."""
        return self._as_message(text, FAILED)


def plain_painter(seconds: float = _LINE_SECONDS) -> LinePainter:
    """Plain lines, for a log file."""
    return LinePainter(plain_line, lambda text, _: text, seconds=seconds)


def json_painter(command: str, seconds: float = _JSON_SECONDS) -> LinePainter:
    """A JSON object a line, for machines."""
    return LinePainter(
        lambda state: state_json(command, state),
        lambda text, state: message_json(command, text, state),
        seconds=seconds,
    )


def plain_line(state: StageState) -> str:
    """A line for a log."""
    is_new = state.state == STARTING and state.seconds < 1 and not state.is_elsewhere
    return "  ".join([state.name, *(["starting"] if is_new else words(state))])


def print_error(text: str, file: TextIO | None = None) -> None:
    """Writes a line to stderr, which may be closed by now."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=file or sys.stderr, flush=True)
