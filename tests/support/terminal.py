"""A terminal of a given width, and what a person would see on it."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
from typing import Any

_CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal(contextlib.AbstractContextManager["Terminal"]):
    """A pseudo-terminal.

    Attributes:
      file: its end for a program, a text file.
      columns: its width.
    """

    def __init__(self, *, columns: int, rows: int = 40) -> None:
        self.columns = columns
        self._reader, self.writer = pty.openpty()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.writer, termios.TIOCSWINSZ, size)
        self.file = os.fdopen(self.writer, "w", encoding="utf-8")

    def __exit__(self, *error: Any) -> None:
        self.file.close()
        os.close(self._reader)

    def read(self) -> str:
        """What was written since the last call."""
        self.file.flush()
        written = b""
        while select.select([self._reader], [], [], 0.1)[0]:
            try:
                part = os.read(self._reader, 1 << 16)
            except OSError:  # The program has ended.
                break
            if not part:
                break
            written += part
        return written.decode()

    @staticmethod
    def without_codes(text: str) -> str:
        """The text without the codes that move the cursor and set colours."""
        return _CODE.sub("", text)

    def screen(self, written: str) -> list[str]:
        """The lines that are on the screen in the end.

        It knows what a renewed display needs: carriage returns, line feeds, the cursor
        up and erased lines. A line that is longer than the terminal fails.
        """
        lines = [""]
        row = column = 0
        place = 0
        while place < len(written):
            code = _CODE.match(written, place)
            if code:
                place = code.end()
                if code[2] == "A":
                    row = max(row - int(code[1] or 1), 0)
                elif code[2] == "K":
                    lines[row] = "" if code[1] == "2" else lines[row][:column]
                continue
            letter = written[place]
            place += 1
            if letter == "\r":
                column = 0
            elif letter == "\n":
                row += 1
                if row == len(lines):
                    lines.append("")
            else:
                assert column < self.columns, f"wraps: {lines[row]}"
                padded = lines[row].ljust(column)
                lines[row] = padded[:column] + letter + padded[column + 1 :]
                column += 1
        return [line.rstrip() for line in lines if line.strip()]
