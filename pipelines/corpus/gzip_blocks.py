"""The decompressed bytes of a gzip file, from a position on, in bounded memory.

A gzip file can only be decompressed from its beginning. A process reads many ranges of
one file, one after the other, so it keeps the file where a range ended, and a later
range goes on there:

    range [0, 16 MiB)     decompresses 16 MiB
    range [32, 48 MiB)    decompresses 32 MiB more, and not 48

The checksum of a gzip member stands at its end, and a damaged member decompresses to
other text without an error before. So a process checks a file as a whole before it uses
a range, and uses the members in front of a damaged one.
"""

import functools
import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterator
from typing import IO, NamedTuple

from precis.pipelines.corpus.opening import file_stamp, open_source

_BLOCK_BYTES = 1 << 20
# The line at which a range ends began in an earlier block. A block has some 20 kB: a
# buffer of compressed bytes.
_KEPT_BLOCKS = 16
_COMPRESSED_BYTES = 64 << 10
_CHECKED_FILES = 4096  # whose result a process keeps
_GZIP_FORMAT = 16 + zlib.MAX_WBITS


class Block(NamedTuple):
    """Some bytes of a file.

    Attributes:
      content: the bytes.
      start: the position of the first one in the (uncompressed) file.
      disk_start, disk_end: the positions in the file on disk before and after them,
          which count its compressed bytes.
    """

    content: bytes
    start: int
    disk_start: int
    disk_end: int

    @property
    def end(self) -> int:
        """The position behind the last byte."""
        return self.start + len(self.content)

    def from_position(self, begin: int) -> "Block":
        """The block without the bytes before a position."""
        if begin <= self.start:
            return self
        return self._replace(content=self.content[begin - self.start :], start=begin)


class BrokenGzip(Exception):
    """The compressed stream cannot be read beyond this point."""


class Damage(NamedTuple):
    """The damage of a gzip file.

    Attributes:
      start: the position in the uncompressed file where the first damaged member
          begins.
      detail: the damage in words.
    """

    start: int
    detail: str


@functools.lru_cache(_CHECKED_FILES)
def find_damage(path: str, version: str) -> Damage | None:
    """The damage of a gzip file, which is decompressed for it; None if it has none.

    Args:
      path: the file.
      version: as in `SourceFile`; a file is checked once for all its tasks.
    """
    start = size = 0
    member = None
    with open_source(path) as file:
        while compressed := file.read(_COMPRESSED_BYTES):
            # Zeros may stand between members and behind the last one.
            while compressed := compressed if member else compressed.lstrip(b"\0"):
                member = member or zlib.decompressobj(_GZIP_FORMAT)
                try:
                    size += len(member.decompress(compressed, _BLOCK_BYTES))
                except zlib.error as error:
                    return Damage(start, str(error))
                compressed = member.unconsumed_tail
                if member.eof:
                    start, compressed, member = size, member.unused_data, None
    return Damage(start, "the file ends within the stream") if member else None


class _Decompression:
    """A gzip file that is decompressed from its beginning on, with its last blocks."""

    def __init__(self, compressed: IO[bytes]) -> None:
        self._compressed = compressed
        self._file = gzip.GzipFile(fileobj=compressed)
        self._kept: deque[Block] = deque(maxlen=_KEPT_BLOCKS)
        self._end = 0
        self._disk_end = compressed.seek(0)

    def close(self) -> None:
        """Closes the file."""
        self._compressed.close()

    def has_kept(self, begin: int) -> bool:
        """Whether the blocks are still there that hold the bytes from `begin` on."""
        return not self._kept or self._kept[0].start <= begin

    def read(self, begin: int) -> Iterator[Block]:
        """The blocks from a position on.

        Raises:
          BrokenGzip: the file is damaged.
        """
        yield from [block for block in self._kept if block.end > begin]
        while block := self._read_block():
            if block.end > begin:
                yield block

    def _read_block(self) -> Block | None:
        try:
            # `read` would collect a full block first, and damage would lose all that
            # it had collected.
            content = self._file.read1(_BLOCK_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BrokenGzip(str(error)) from error
        if not content:
            return None
        disk_end = self._compressed.tell()
        block = Block(content, self._end, self._disk_end, disk_end)
        self._kept.append(block)
        self._end, self._disk_end = block.end, disk_end
        return block


# The file of which this process read a range last, by its stamp; at most one.
_kept_files: dict[tuple[int, str], _Decompression] = {}


def gzip_blocks(
    file: IO[bytes], begin: int, damage: Damage | None = None
) -> Iterator[Block]:
    """The uncompressed blocks of an open file from `begin` on, up to its damage.

    Raises:
      BrokenGzip: the file is damaged, always at the same position.
    """
    key = os.getpid(), _stamp(file)
    decompression = _kept_files.pop(key, None)
    if decompression and not decompression.has_kept(begin):
        decompression.close()
        decompression = None
    if decompression is None:
        decompression = _Decompression(_reopened(file) if key[1] else file)
    ends_within = False
    try:
        for block in decompression.read(begin):
            if damage and block.end >= damage.start:
                if damage.start > max(begin, block.start):
                    content = block.content[: damage.start - block.start]
                    yield block._replace(content=content).from_position(begin)
                raise BrokenGzip(damage.detail)
            yield block.from_position(begin)
    except GeneratorExit:
        ends_within = True
        raise
    finally:
        if ends_within and key[1]:
            while _kept_files:
                _kept_files.popitem()[1].close()
            _kept_files[key] = decompression
        else:
            decompression.close()


def _stamp(file: IO[bytes]) -> str:
    """What changes with a local file; empty where it may change without, and for files
    of an object store.
    """
    try:
        return file_stamp(os.fstat(file.fileno()))
    except OSError:
        return ""


def _reopened(file: IO[bytes]) -> IO[bytes]:
    """The same file, open when the other one is closed."""
    return open(os.dup(file.fileno()), "rb")
