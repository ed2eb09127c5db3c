"""Reads the lines in a byte range of a large text file, plain or compressed."""

import codecs
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from precis.pipelines.corpus.compression import BrokenFile, codec_of, decompressed
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.task import MAX_RAW_BYTES, TOO_LARGE

_BLOCK_BYTES = 1 << 20
# Millions of line breaks compress to some kilobytes, so they are taken together.
_LINE_BREAKS = re.compile(rb"[\r\n]*\n")
_BLANK_LINES = re.compile(rb"\s*\n")
_SPACE = 32  # the highest byte that is white space
# Line breaks of this encoding are not the byte 10, so such files become UTF-8 first.
UTF_16 = "utf-16"


class Line(NamedTuple):
    """A line with its line break, or several consecutive blank lines.

    Attributes:
      start: the position of its first byte in the (uncompressed) file.
      text: its bytes; only the first bytes if the line has a problem.
      problem: "", `record_too_large`, or a name such as `broken_gzip` if the rest of
          the file is damaged.
      detail: the problem in words.
      share: the share of the range that is read with the line, from 0 to 1.
    """

    start: int
    text: bytes
    problem: str = ""
    detail: str = ""
    share: float = 0.0


def read_lines(
    path: str,
    start: int = 0,
    stop: int = -1,
    *,
    max_bytes: int,
    spaces_are_blank: bool = False,
    version: str = "",
    encoding: str = "utf-8",
) -> Iterator[Line]:
    """Reads the lines whose first byte lies in [start, stop).

    Adjacent ranges read each line exactly once:

        bytes   0123 4567 89        range [0, 4) reads `abc`
        lines   abc⏎ def⏎ gh        range [2, 5) reads `def`
                                    range [5, -1) reads `gh`

    A byte order mark at the beginning of the file is dropped. Consecutive blank lines
    may be returned as one.

    Args:
      path: the path of the file.
      start, stop: the range; a `stop` of -1 is the end of the file.
      max_bytes: a longer line has the problem `record_too_large`.
      spaces_are_blank: whether lines of only white space are blank, too.
      version: the version of the file, as in `CorpusFile`. If given, a compressed file
          is checked first, and damaged parts are not read.
      encoding: the encoding of the file. UTF-16 is read from the beginning and
          converted to UTF-8, whose bytes are the positions.
    """
    # Reading begins one byte early: if it is a line break, a line begins at `start`.
    begin = max(start - 1, 0)
    with open_source(path) as file:
        disk_size = file.seek(0, os.SEEK_END)
        codec = codec_of(path)
        if codec:
            blocks = decompressed(file, path, begin, version)
        else:
            file.seek(begin)
            blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
        if encoding == UTF_16:
            codec = codec or "utf16"
            blocks = _as_utf_8(blocks)
        disk_start = -1
        blank = _BLANK_LINES if spaces_are_blank else _LINE_BREAKS
        for line in _split_lines(blocks, begin, max_bytes, blank, codec):
            # The part of a compressed file that was read ends after the line.
            disk_end = file.tell() if codec else line.start + len(line.text)
            if disk_start < 0:
                disk_start = disk_end if start and codec else start
            if line.start < start:
                continue
            if 0 <= stop <= line.start:
                return
            if stop >= 0:
                # The share of such a range in a compressed file is unknown.
                share = (line.start - start) / (stop - start)
            else:
                share = (disk_end - disk_start) / max(disk_size - disk_start, 1)
            text = line.text
            if line.start == 0:
                text = text.removeprefix(codecs.BOM_UTF8)
            yield line._replace(text=text, share=share)


def _as_utf_8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Converts the blocks of a UTF-16 file, read from its beginning, to UTF-8.

    Half of a surrogate pair becomes invalid UTF-8, so only its record is lost.
    """
    decoder = codecs.getincrementaldecoder(UTF_16)("surrogatepass")
    for block in blocks:
        try:
            yield decoder.decode(block).encode(errors="surrogatepass")
        except UnicodeError as error:  # For example, the byte order mark is missing.
            raise BrokenFile(str(error)) from error
    if decoder.getstate()[0]:
        raise BrokenFile("the file ends in the middle of a character")


def _split_lines(
    blocks: Iterable[bytes],
    start: int,
    max_bytes: int,
    blank: re.Pattern[bytes],
    codec: str,
) -> Iterator[Line]:
    """Splits blocks into lines; the first block begins at `start` of the file."""
    parts: list[bytes] = []  # the unfinished line
    unfinished_bytes = 0  # its length, including dropped bytes
    try:
        for block in blocks:
            position = 0
            while end := block.find(b"\n", position) + 1:
                if block[position] <= _SPACE and not unfinished_bytes:
                    blank_lines = blank.match(block, position)
                    end = blank_lines.end() if blank_lines else end
                size = unfinished_bytes + end - position
                yield _to_line(start, [*parts, block[position:end]], size, max_bytes)
                start += size
                parts = []
                unfinished_bytes = 0
                position = end
            if position < len(block):
                unfinished_bytes += len(block) - position
                parts.append(block[position:])
                if unfinished_bytes > max_bytes:
                    parts = [b"".join(parts)[:MAX_RAW_BYTES]]
    except BrokenFile as error:
        detail = f"the {codec} data are damaged, so the rest is lost: {error}"
        text = b"".join(parts)[:MAX_RAW_BYTES]
        yield Line(start, text, f"broken_{codec}", detail)
        return
    if unfinished_bytes:
        yield _to_line(start, parts, unfinished_bytes, max_bytes)


def _to_line(start: int, parts: list[bytes], size: int, max_bytes: int) -> Line:
    text = parts[0] if len(parts) == 1 else b"".join(parts)
    if size <= max_bytes or text.isspace():
        return Line(start, text)
    detail = f"the line has {size:,} bytes, more than {max_bytes:,} (--max_record_mb)"
    return Line(start, text[:MAX_RAW_BYTES], TOO_LARGE, detail)
