"""The lines of a byte range of a large text file, plain or gzip, in bounded memory."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from precis.model import files

MAX_LINE_BYTES = 64 << 20
# The part of a record that its dead letter keeps.
MAX_RAW_BYTES = 64 << 10
_BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A physical line with its line break.

    Attributes:
      start: position of its first byte in the (uncompressed) file.
      text: its bytes; only the beginning if the line has a problem.
      problem: "", `line_too_long` or `broken_gzip`.
      detail: the problem in words.
    """

    start: int
    text: bytes
    problem: str = ""
    detail: str = ""


class _BrokenGzip(Exception):
    """The compressed stream cannot be read beyond this point."""


def is_gzip(path: str) -> bool:
    """Whether a file's name says that it is compressed."""
    return path.endswith(".gz")


def read_lines(path: str, start: int = 0, stop: int = -1) -> Iterator[Line]:
    """The lines whose first byte lies in [start, stop).

    Neighbouring ranges share no line and lose none:

        bytes   0123 4567 89        range [0, 4) reads `abc`
        lines   abc⏎ def⏎ gh        range [2, 5) reads `def`
                                    range [5, -1) reads `gh`

    A byte order mark at the beginning of the file is dropped. A `stop` of -1 is the end
    of the file.
    """
    # Reading begins one byte early: a line break there shows that a line begins at
    # `start`.
    begin = max(start - 1, 0)
    blocks = _gzip_blocks(path, begin) if is_gzip(path) else _plain_blocks(path, begin)
    for line in _split_lines(blocks, begin):
        if line.start < start:
            continue
        if 0 <= stop <= line.start:
            return
        if line.start == 0 and line.text.startswith(_BOM):
            line = line._replace(text=line.text[len(_BOM) :])
        yield line


def _plain_blocks(path: str, begin: int) -> Iterator[bytes]:
    with files.open_read(path) as file:
        file.seek(begin)
        while block := file.read(_BLOCK_BYTES):
            yield block


def _gzip_blocks(path: str, begin: int) -> Iterator[bytes]:
    """The uncompressed bytes from `begin` on.

    The file is always decompressed from its beginning, in the same blocks, so that
    damage is met at the same position for every range.
    """
    with files.open_read(path) as compressed, gzip.GzipFile(fileobj=compressed) as file:
        position = 0
        while True:
            try:
                # `read` would collect a full block first, and damage would lose all
                # that it had collected.
                block = file.read1(_BLOCK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise _BrokenGzip(str(error)) from error
            if not block:
                return
            if position + len(block) > begin:
                yield block[max(begin - position, 0) :]
            position += len(block)


def _split_lines(blocks: Iterable[bytes], start: int) -> Iterator[Line]:
    """The lines of blocks of bytes whose first byte is at `start` of the file."""
    parts: list[bytes] = []  # the unfinished line
    unfinished_bytes = 0  # its length, dropped bytes included
    try:
        for block in blocks:
            position = 0
            while end := block.find(b"\n", position) + 1:
                size = unfinished_bytes + end - position
                yield _to_line(start, [*parts, block[position:end]], size)
                start += size
                parts = []
                unfinished_bytes = 0
                position = end
            if position < len(block):
                unfinished_bytes += len(block) - position
                if unfinished_bytes <= MAX_LINE_BYTES:
                    parts.append(block[position:])
                else:
                    parts = [b"".join(parts)[:MAX_RAW_BYTES]]
    except _BrokenGzip as error:
        detail = f"the gzip stream is damaged, the rest of the file is lost: {error}"
        text = b"".join(parts)[:MAX_RAW_BYTES]
        yield Line(start, text, "broken_gzip", detail)
        return
    if unfinished_bytes:
        yield _to_line(start, parts, unfinished_bytes)


def _to_line(start: int, parts: list[bytes], size: int) -> Line:
    text = parts[0] if len(parts) == 1 else b"".join(parts)
    if size <= MAX_LINE_BYTES:
        return Line(start, text)
    detail = f"the line has {size:,} bytes, more than {MAX_LINE_BYTES:,}"
    return Line(start, text[:MAX_RAW_BYTES], "line_too_long", detail)
