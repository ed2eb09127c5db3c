"""Reads the uncompressed bytes of compressed files, in bounded memory.

A compressed file can only be read from its beginning, its checksum is at the end, and a
damaged part may decompress to wrong text before an error shows. So a process checks a
whole file before it uses it:

    gzip         members before a damaged one are used; the check stores states of the
                 decompression, from which ranges are read later
    bzip2, xz,   a damaged file is not used at all; one task reads the whole file
    zstd, lz4

A file may contain several members, one after another. Bytes after a member that do not
start another member are damage, except zeros, with which tapes and xz pad files.

Reading takes a megabyte, and for zstd the window of the file too: at most 8 MB from
`zstd -19`, at most 2 GB from `zstd --long=31`.
"""

import bz2
import functools
import lzma
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from zlib_ng import zlib_ng

from precis.pipelines.corpus.opening import open_source

# The compression of a file by its extension.
CODECS = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".lzma": "xz",
    ".zst": "zstd",
    ".lz4": "lz4",
}
_BLOCK_BYTES = 1 << 20
_COMPRESSED_BYTES = 8 << 10  # read at once; the unit of progress
_CHECKED_FILES = 16  # files whose states a process keeps, at most 3 MB each
_STATES = 64
_LEAST_DISTANCE = 1 << 20  # minimum distance of two states, in compressed bytes
_ZLIB: Any = zlib_ng  # Its stubs lack `copy`, and declare `error` as a value.
_GZIP_FORMAT = 16 + _ZLIB.MAX_WBITS


def _zstd_decompressor() -> Any:
    from backports.zstd import DecompressionParameter, ZstdDecompressor

    return ZstdDecompressor(options={DecompressionParameter.window_log_max: 31})


# The decompressor of a member, and the unit of the zeros after it, in bytes.
_MEMBERS = {
    "bzip2": (bz2.BZ2Decompressor, 1),
    "xz": (lzma.LZMADecompressor, 4),
    "zstd": (_zstd_decompressor, sys.maxsize),
}


class BrokenFile(Exception):
    """Raised where the rest of a file cannot be decompressed or decoded."""


class _State(NamedTuple):
    """A position at which the decompression of a gzip file can begin.

    Attributes:
      start: the position in the uncompressed file.
      disk: the position on disk.
      member_start: the position in the uncompressed file where its member begins.
      member: the decompressor; None between two members.
    """

    start: int = 0
    disk: int = 0
    member_start: int = 0
    member: Any = None


def codec_of(path: str) -> str:
    """The compression of a file by its name; "" for a plain file."""
    return CODECS.get(codec_ending(path).lower(), "")


def codec_ending(path: str) -> str:
    """The extension of a compressed file, as it is written; "" for a plain file."""
    end = path[path.rfind(".") :] if "." in path else ""
    return end if end.lower() in CODECS else ""


# What names say about files of which nothing is read.
_UNPACK = "an archive; unpack it and name the files in it"
_RECOMPRESS = "compressed by {}, which is not read; compress it with gzip or zstd"
_ENDINGS = {
    **dict.fromkeys((".tar", ".tgz", ".zip", ".7z", ".rar"), _UNPACK),
    **dict.fromkeys((".snappy", ".sz"), _RECOMPRESS.format("snappy")),
    **dict.fromkeys((".br", ".lzo", ".deflate"), _RECOMPRESS.format("another program")),
}


def unread_kind(path: str) -> str:
    """Describes an archive, or a compression that is not read, by its name; "" for
    other files.
    """
    name = path.removesuffix(codec_ending(path)).lower()
    return next((_ENDINGS[end] for end in _ENDINGS if name.endswith(end)), "")


def is_damage(error: Exception) -> bool:
    """Whether an error means damaged content; disk and network errors have a number."""
    if isinstance(error, OSError):
        return type(error) is OSError and error.errno is None
    from backports.zstd import ZstdError

    kinds = EOFError, ValueError, lzma.LZMAError, _ZLIB.error, ZstdError
    return isinstance(error, kinds)


def decompressed(
    file: IO[bytes], path: str, begin: int, version: str
) -> Iterator[bytes]:
    """Yields the uncompressed content of a file from `begin` to its damage.

    Args:
      file: the open file.
      path: the path of the file.
      begin: the position of the first byte to return.
      version: as in `CorpusFile`; if given, the file is checked first, once per
          process.

    Raises:
      BrokenFile: the file is damaged.
    """
    states, damage = _check(path, version) if version else ([_State()], None)
    state = states[bisect_right(states, begin, key=lambda state: state.start) - 1]
    # Nothing from the first damaged member onwards is used.
    end, detail = damage or (sys.maxsize, "")
    for content, start in _blocks(file, codec_of(path), state):
        yield content[max(begin - start, 0) : max(end - start, 0)]
        if start + len(content) > end:
            break
    if damage:
        raise BrokenFile(detail)


@functools.lru_cache(_CHECKED_FILES)
def _check(path: str, version: str) -> tuple[list[_State], tuple[int, str] | None]:
    """The states of a file, and its first damaged member: where it begins, and what is
    wrong with it.
    """
    states = [_State()]
    damage = None
    with open_source(path) as file:
        distance = max(file.seek(0, 2) // _STATES, _LEAST_DISTANCE)
        try:
            for _ in _blocks(file, codec_of(path), _State(), states, distance):
                pass
        except BrokenFile as error:
            damage = states[-1].member_start, str(error)
    # The last state is the one of the last member.
    return states[:-1] or states, damage


def _blocks(
    file: IO[bytes],
    codec: str,
    state: _State,
    kept: list[_State] | None = None,
    distance: int = 0,
) -> Iterator[tuple[bytes, int]]:
    """The blocks of a file from a state onwards, each with its position in the
    uncompressed file.

    Args:
      file: the open file.
      codec: the compression; all codecs but gzip read from the beginning.
      state: the state at which to begin.
      kept: a list to which a state is added every `distance` compressed bytes, and at
          the end the state of the last member.
      distance: the distance of two states.
    """
    if codec != "gzip":
        yield from _streamed_blocks(file, codec)
        return
    start, disk, member_start, member = state
    member = member and member.copy()
    file.seek(disk)
    try:
        while compressed := file.read(_COMPRESSED_BYTES):
            chunk_end = disk + len(compressed)
            # Zeros are allowed between members and after the last one.
            while compressed := (
                compressed if member or not disk else compressed.lstrip(b"\0")
            ):
                member = member or _ZLIB.decompressobj(_GZIP_FORMAT)
                content = member.decompress(compressed, _BLOCK_BYTES)
                compressed = (
                    member.unused_data if member.eof else member.unconsumed_tail
                )
                if content:
                    yield content, start
                start, disk = start + len(content), chunk_end - len(compressed)
                if member.eof:
                    member_start, member = start, None
            disk = chunk_end
            if kept and disk - kept[-1].disk >= distance:
                copy = member and member.copy()
                kept.append(_State(start, disk, member_start, copy))
    except _ZLIB.error as error:
        raise BrokenFile(str(error)) from error
    finally:
        if kept:
            kept.append(_State(start, disk, member_start))
    if member:
        raise BrokenFile("the file ends within the stream")


def _streamed_blocks(file: IO[bytes], codec: str) -> Iterator[tuple[bytes, int]]:
    """The blocks of a file with another compression than gzip."""
    start = 0
    file.seek(0)
    try:
        for content in _contents(file, codec):
            yield content, start
            start += len(content)
    except Exception as error:
        if not is_damage(error):
            raise
        raise BrokenFile(str(error)) from error


def _contents(file: IO[bytes], codec: str) -> Iterator[bytes]:
    """The uncompressed content of a file, in pieces."""
    if codec == "lz4":
        import pyarrow as pa

        begin = file.read(4)
        if begin and begin[1:] not in (b"\x22\x4d\x18", b"\x2a\x4d\x18"):
            raise BrokenFile("no frame of lz4 (such as blocks of Hadoop or `lz4 -l`)")
        file.seek(0)
        stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)
        yield from iter(lambda: stream.read(_BLOCK_BYTES), b"")
        return
    decompressor, unit = _MEMBERS[codec]
    member: Any = decompressor()
    zeros = 0
    while compressed := file.read(_COMPRESSED_BYTES):
        while compressed or (member and not member.needs_input):
            if not member:
                rest = compressed.lstrip(b"\0")
                zeros += len(compressed) - len(rest)
                # Keep a zero if some do not fill a unit; no member begins with it.
                compressed = rest and bytes(zeros % unit > 0) + rest
                member = decompressor() if rest else None
                continue
            if content := member.decompress(compressed, _BLOCK_BYTES):
                yield content
            compressed = member.unused_data
            if member.eof:
                member, zeros = None, 0
    if member or zeros % unit:
        raise EOFError("the file ends within the stream")
