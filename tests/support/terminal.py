"""A terminal of a given width, and what is written to it."""

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
    """

    def __init__(self, *, columns: int, rows: int = 40) -> None:
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
