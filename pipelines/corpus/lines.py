"""Reads the lines of a byte range of a large text file, plain or gzip, in bounded
memory.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from precis.model import files

MAX_LINE_BYTES = 64 << 20
# What a dead letter keeps of a record.
MAX_RAW_BYTES = 64 << 10
_BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A physical line with its line break.

    Attributes:
      start: position of its first byte in the (uncompressed) file.
      text: its bytes; of a line with a problem only the beginning.
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
    """The lines whose first byte lies in [start, stop), so that ranges which touch
    share no line and lose none.

        bytes   0123 4567 89
        lines   abc⏎ def⏎ gh        range [2, 5) reads `def`, range [0, 4) reads `abc`, range [5, -1) reads `gh`

    A byte order mark at the beginning of the file is dropped. `stop` of -1 means the
    end of the file.
    """
    # Reading begins one byte early: the line break before `start` tells that a line
    # starts there.
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
    """Decompresses from the beginning whatever `begin` is; blocks are cut alike for
    every range, so that all see damage alike.
    """
    with files.open_read(path) as compressed, gzip.GzipFile(fileobj=compressed) as file:
        position = 0
        while True:
            try:
                # Not `read`: it gathers until the block is full, and damage would cost
                # what it gathered.
                block = file.read1(_BLOCK_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise _BrokenGzip(str(error)) from error
            if not block:
                return
            if position + len(block) > begin:
                yield block[max(begin - position, 0) :]
            position += len(block)


def _split_lines(blocks: Iterable[bytes], position: int) -> Iterator[Line]:
    parts: list[bytes] = []
    held = 0  # bytes of the unfinished line, those dropped from `parts` included
    start = position
    try:
        for block in blocks:
            at = 0
            while end := block.find(b"\n", at) + 1:
                size = held + end - at
                yield _finish(
                    start, [*parts, block[at:end]] if held else [block[at:end]], size
                )
                start += size
                parts, held, at = [], 0, end
            if at < len(block):
                held += len(block) - at
                if held <= MAX_LINE_BYTES:
                    parts.append(block[at:])
                else:
                    parts = [b"".join(parts)[:MAX_RAW_BYTES]]
    except _BrokenGzip as error:
        detail = f"the gzip stream is damaged, the rest of the file is lost: {error}"
        yield Line(start, b"".join(parts)[:MAX_RAW_BYTES], "broken_gzip", detail)
        return
    if held:
        yield _finish(start, parts, held)


def _finish(start: int, parts: list[bytes], size: int) -> Line:
    text = parts[0] if len(parts) == 1 else b"".join(parts)
    if size <= MAX_LINE_BYTES:
        return Line(start, text)
    detail = f"the line has {size:,} bytes, more than {MAX_LINE_BYTES:,}"
    return Line(start, text[:MAX_RAW_BYTES], "line_too_long", detail)
