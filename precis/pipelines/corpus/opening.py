r"""Opens the files of a corpus, and converts their names for results.

A local file name is bytes, which need not be UTF-8. JSON, Arrow and UTF-8 streams
cannot hold such a name, so bytes that are not UTF-8 are escaped as by Python's
`backslashreplace`:

    bytes of the name     written
    caf\303\251.txt       café.txt      UTF-8 is unchanged
    caf\351.txt           caf\xe9.txt   four characters for the byte 0xe9
    a\xe9.txt             a\x5cxe9.txt  a backslash that would look like an escape

`local_name(written_name(name)) == name` for every name.
"""

import concurrent.futures
import datetime
import errno
import functools
import hashlib
import io
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from precis.model import files
from precis.model.storage.hub import HubStore
from precis.pipelines.corpus.task import CorpusFile, FileError, unread_file

# The escapes of `written_name`; a name with such text gets its backslash escaped.
_ESCAPE = re.compile(r"\\x(5c|[89a-f][0-9a-f])")


def written_name(name: str) -> str:
    """Escapes a name from `os` (with surrogate escapes) for results."""
    if "\\" in name:
        name = _ESCAPE.sub(lambda found: rf"\x5c{found[0][1:]}", name)
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def local_name(written: str) -> str:
    """The name for `os` that `written_name` escaped."""
    return _ESCAPE.sub(_unescape, written) if "\\" in written else written


def _unescape(found: re.Match[str]) -> str:
    byte = int(found[1], 16)
    # The surrogate for a byte that is not UTF-8, see PEP 383.
    return chr(0xDC00 + byte) if byte >= 0x80 else chr(byte)


def written_argument(argument: str) -> str:
    """Escapes a command-line argument with a path, whose bytes need not be UTF-8.

    The path may already be escaped, so backslashes are not escaped.
    """
    return os.fsencode(argument).decode("utf-8", "backslashreplace")


CHANGED = "file_changed"
UNREADABLE = "file_unreadable"
# The file information of object stores that changes with the content: checksums first,
# then values that change with every upload. Times are last; some stores have only them.
_OBJECT_VERSIONS = (
    *("blob_id", "md5Hash", "crc32c", "ETag", "etag", "generation"),
    *("mtime", "updated", "LastModified", "created"),
)
# The resolution of times on some file systems: two writes may get the same time.
_COARSEST_TIME_NS = 2_000_000_000
_REQUESTS = 16  # at once to an object store
_CACHED_CHECKSUMS = 4096


def open_source(path: str) -> IO[bytes]:
    """Opens a corpus file for reading bytes.

    FIFOs, sockets and devices are refused at once; opening them like a file might wait
    forever.

    Args:
      path: the path, as in `CorpusFile`.

    Raises:
      OSError: the file does not exist, is not a file, or cannot be opened.
    """
    if not files.is_local(path):
        return files.open_read(path)
    return _open_local(path.removeprefix("file://"))


def _open_local(path: str) -> io.BufferedReader:
    name = local_name(path)
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", name)
    return open(descriptor, "rb")


def read_state(path: str) -> CorpusFile:
    """Reads a local file for its size, checksum and stamp.

    Raises:
      OSError: the file cannot be read.
    """
    with _open_local(path) as file:
        # Before the content is read, so that a write in the meantime changes it.
        status = os.fstat(file.fileno())
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return CorpusFile(path, status.st_size, f"sha256:{checksum}", _stamp(status))


def _stamp(status: os.stat_result) -> str:
    """A text that changes when a file is written or replaced.

    Empty if the last change is so recent that another might not show in coarse times.
    The inode's change time cannot be set back, unlike the content's.
    """
    if abs(time.time_ns() - status.st_ctime_ns) < _COARSEST_TIME_NS:
        return ""
    return (
        f"{status.st_dev}:{status.st_ino}:{status.st_size}:"
        f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    )


def object_version(info: Mapping[str, Any]) -> str:
    """The version of an object, from its file information."""
    version = next((info[key] for key in _OBJECT_VERSIONS if info.get(key)), "")
    if isinstance(version, datetime.datetime):
        # Some file systems list a number instead.
        version = version.timestamp()
    return f"{info['size']}:{version}"


def check_unchanged(source_files: Sequence[CorpusFile]) -> None:
    """Checks that files are as they were when the corpus was listed.

    Raises:
      FileError: the content of a file has changed, or the file is gone.
    """
    details: Iterable[str] = map(_change, source_files)
    if source_files and not files.is_local(source_files[0].path):
        with concurrent.futures.ThreadPoolExecutor(_REQUESTS) as pool:
            details = list(pool.map(_change, source_files))
    for file, detail in zip(source_files, details, strict=True):
        if detail:
            raise FileError(unread_file(file.path, CHANGED, detail))


def _change(file: CorpusFile) -> str:
    """Describes the change of a file; "" if its content is the same."""
    try:
        if files.is_local(file.path):
            return _local_change(file)
        fs, name = files.filesystem(file.path)
        if isinstance(fs, HubStore):
            fs.fetch(name)  # The bytes at a commit never change.
            return ""
        version = object_version(fs.info(name))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not files.is_local(file.path):
            return "it was removed after the corpus was listed"
        return f"it can no longer be read: {error.strerror or error}"
    is_same = version == file.version
    return "" if is_same else "its content changed after the corpus was listed"


def _local_change(file: CorpusFile) -> str:
    status = os.stat(local_name(file.path))
    if not stat.S_ISREG(status.st_mode):
        return "it was replaced by something that is not a file"
    stamp = _stamp(status)
    if stamp and stamp == file.stamp:
        return ""
    if status.st_size != file.size_bytes:
        return (
            f"it has {status.st_size:,} bytes, but had {file.size_bytes:,} when the "
            "corpus was listed"
        )
    read_version = _version_at if stamp else _version_at.__wrapped__
    is_same = read_version(file.path, stamp) == file.version
    return "" if is_same else "its content changed after the corpus was listed"


@functools.lru_cache(_CACHED_CHECKSUMS)
def _version_at(path: str, stamp: str) -> str:
    """The version of a file, as long as it has a stamp.

    Hundreds of tasks may read one large file, so it is hashed only once.
    """
    return read_state(path).version


def file_error(error: OSError, source_files: Sequence[CorpusFile]) -> FileError:
    """The failure of a task that could not read one of its files."""
    path = source_files[0].path
    among = ""
    # Only an error of opening a file names the file, not an error of reading.
    if isinstance(error.filename, str):
        path = written_name(error.filename)
    elif len(source_files) > 1:
        among = f" (or one of the {len(source_files) - 1} files after it)"
    detail = f"it cannot be read{among}: {error.strerror or error}"
    return FileError(unread_file(path, UNREADABLE, detail))
