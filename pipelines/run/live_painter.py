"""The live display of a terminal: a line for each stage, renewed in place.

    scan        20,000 documents  9,204/s  0:02
    summarize   ━━━━━━━━━╺━━━━━━━━━━━━   43%  8,640 / about 20,100 documents  1,204/s
                0:07 left  3 dead letters  12 flagged

Where the words do not fit the terminal they go on in a second line, and no line wraps.
"""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from precis.pipelines.run.progress_painters import print_error
from precis.pipelines.run.progress_state import DONE, FAILED, StageState
from precis.pipelines.run.progress_text import words

_PAINT_SECONDS = 0.25
_NAME_WIDTH = 10
_BAR_WIDTHS = (10, 30)
_NARROWEST = 40


class LivePainter:
    """Renews the lines of all stages that run.

    It writes to a copy of the terminal's descriptor, because a signal closes stderr to
    everything else.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        """Opens the terminal.

        Args:
          file: the terminal; that of stderr by default.
        """
        self.seconds = _PAINT_SECONDS
        if file is None:
            file = os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")
        self._console = Console(
            file=file, force_terminal=True, highlight=False, soft_wrap=False
        )
        self._live: Live | None = None

    def begin(self) -> None:
        """Hides the cursor; what others write to stderr goes above the display."""
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=True,
            vertical_overflow="crop",
        )
        self._live.start()

    def paint(self, states: Sequence[StageState]) -> None:
        """Renews the lines."""
        if self._live is not None:
            self._live.update(self._lines(states), refresh=True)

    def end(self, states: Sequence[StageState], *, is_last: bool) -> None:
        """Leaves the last lines where they are, and shows the cursor again."""
        if is_last and self._live is not None:
            self.paint(states)
            live, self._live = self._live, None
            live.transient = not states
            live.stop()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Writes a message above the lines."""
        if self._live is None:
            print_error(text)
        else:
            self._console.print(Text(text), soft_wrap=True)

    def stopped_line(self, text: str) -> str:
        """The message itself."""
        return text

    def _lines(self, states: Sequence[StageState]) -> Group:
        width = max(self._console.width - 1, _NARROWEST)
        return Group(*(line for state in states for line in stage_lines(state, width)))


def stage_lines(state: StageState, width: int) -> list[Table | Text]:
    """The lines of a stage, of `width` columns at most."""
    is_ended = state.state in (DONE, FAILED)
    name_width = max(_NAME_WIDTH, len(state.name))
    least, most = _BAR_WIDTHS
    bar_width = 0 if is_ended else min(max(width // 5, least), most)
    room = width - name_width - 2 - (bar_width + 2 if bar_width else 0)
    parts = words(state)
    first = _fitting(parts, room)
    rest = parts[len(first) :]
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=name_width, no_wrap=True)
    if bar_width:
        line.add_column(width=bar_width)
    line.add_column(no_wrap=True, overflow="ellipsis", max_width=room)
    style = {DONE: "green", FAILED: "red"}.get(state.state, "bold")
    cells: list[Text | ProgressBar | Spinner] = [Text(state.name, style=style)]
    if bar_width:
        cells.append(_bar(state, bar_width))
    line.add_row(*cells, Text("  ".join(first), no_wrap=True, overflow="ellipsis"))
    lines: list[Table | Text] = [line]
    indent = " " * (name_width + 2)
    while rest:
        fitting = _fitting(rest, width - len(indent))
        rest = rest[len(fitting) :]
        text = Text(indent + "  ".join(fitting), no_wrap=True, overflow="ellipsis")
        text.truncate(width, overflow="ellipsis")
        lines.append(text)
    return lines


def _fitting(parts: Sequence[str], room: int) -> Sequence[str]:
    """As many of the first parts as fit into a line, at least one."""
    count = 1
    while count < len(parts) and len("  ".join(parts[: count + 1])) <= room:
        count += 1
    return parts[:count]


def _bar(state: StageState, width: int) -> ProgressBar:
    """How much is done; a wave where that is not known."""
    if state.share is None:
        return ProgressBar(pulse=True, width=width, animation_time=state.seconds)
    return ProgressBar(total=1.0, completed=state.share, width=width)
