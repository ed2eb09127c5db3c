"""The files of a local corpus: found through links, hashed, with their problems.

    link to a file                       read under the name of the link
    link to a folder                     followed, unless it leads back above itself
    link to nothing, or to itself        dangling_link
    FIFO, socket, device                 not_a_file
    file that may not be opened          permission_denied
    file that cannot be read otherwise   read_error
    folder that cannot be listed         file_unreadable

A file that is matched under two names is read under each of them.
"""

import concurrent.futures
import errno
import functools
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fsspec.implementations.local import make_path_posix
from fsspec.utils import glob_translate

from precis.model.errors import UsageError
from precis.pipelines.corpus.names import local_name, written_name
from precis.pipelines.corpus.opening import UNREADABLE, read_state
from precis.pipelines.corpus.task import SourceFile

_WILDCARDS = "*?["
ANY_FOLDERS = "**"
# Reading and hashing release the interpreter lock.
_HASHING_THREADS = 8
_HASHED_AT_ONCE = 10_000  # files that wait for a thread; there may be millions


class _Found(NamedTuple):
    """What a walk found: a file, or a folder that cannot be listed.

    Attributes:
      path: as `os` has it.
      error: of the folder; None for a file.
    """

    path: str
    error: OSError | None = None


class _Folder(NamedTuple):
    """A folder on a walk.

    Attributes:
      path: as `os` has it.
      above: device and inode of the folders that the walk came through, for links that
          lead back to one of them.
    """

    path: str
    above: tuple[tuple[int, int], ...] = ()


def list_matches(pattern: str) -> list[SourceFile]:
    """The files that a glob matches, sorted by path.

    Raises:
      UsageError: the pattern is none.
    """
    name = absolute_path(pattern)
    # `notes[1].txt` may be the name of a file. As a pattern it matches another file.
    # `*.txt` is always a pattern, and matches a file of that name too.
    if os.path.lexists(name) and not matches_itself(name):
        found = [] if os.path.isdir(name) else [_Found(name)]
    else:
        root, parts = split_pattern(name)
        try:
            found = list(_matches(_Folder(root), parts))
        except ValueError as error:
            raise UsageError(f"{pattern}: {error}; write **/ for folders") from error
    return _read_states(found)


def list_below(folder: str, suffix: str) -> list[SourceFile]:
    """The files below a folder whose names end in `suffix`, sorted by path."""
    found = _matches(_Folder(absolute_path(folder)), [ANY_FOLDERS])
    return _read_states(
        [each for each in found if each.error or each.path.endswith(suffix)]
    )


def is_folder(path: str) -> bool:
    """Whether a local path is a folder."""
    return os.path.isdir(absolute_path(path))


def matches_itself(name: str) -> bool:
    """Whether a name is a pattern that matches the file of that name: `*.txt` does,
    `a[1].txt` does not.
    """
    try:
        return _has_wildcard(name) and matches(name, name)
    except ValueError:
        return False


def absolute_path(path: str) -> str:
    """A local path as `os` has it, of one as the user gave it."""
    path = local_name(path.removeprefix("file://"))
    return make_path_posix(path).rstrip("/") or "/"


def split_pattern(name: str) -> tuple[str, list[str]]:
    """The folder in front of the first wildcard, and the parts of the pattern."""
    parts = name.split("/")
    fixed = next(
        (place for place, part in enumerate(parts) if _has_wildcard(part)), len(parts)
    )
    return "/".join(parts[:fixed]) or "/", parts[fixed:]


def _has_wildcard(part: str) -> bool:
    return any(sign in part for sign in _WILDCARDS)


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name."""
    return bool(_compile(pattern)(name))


@functools.lru_cache
def _compile(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(glob_translate(pattern)).match


def _matches(folder: _Folder, parts: list[str]) -> Iterator[_Found]:
    """The files below a folder that match the parts of a pattern.

    *.txt           the files of the folder
    */a.txt         the files of the folders in it
    **/a.txt        the files of the folder and of all below it
    **              all files of the folder and of all below it
    """
    part, *rest = parts or [""]
    if not part:  # The pattern ends in a slash, or has two of them.
        if rest:
            yield from _matches(folder, rest)
    elif part == ANY_FOLDERS:
        yield from _matches_anywhere(folder, rest)
    elif not _has_wildcard(part):
        path = posixpath.join(folder.path, part)
        if rest:
            yield from _matches(_Folder(path), rest)
        elif os.path.lexists(path) and not os.path.isdir(path):
            yield _Found(path)
    else:
        is_match = _compile(part)
        try:
            with os.scandir(folder.path) as entries:
                matching = [entry for entry in entries if is_match(entry.name)]
        except OSError as error:
            yield from _unlisted(folder, error)
            return
        for entry in matching:
            if rest and _is_dir(entry):
                yield from _matches(_Folder(entry.path), rest)
            elif not rest and not _is_dir(entry):
                yield _Found(entry.path)


def _matches_anywhere(folder: _Folder, rest: list[str]) -> Iterator[_Found]:
    """The files of a folder and of all below it that match the rest of a pattern."""
    try:
        status = os.stat(folder.path)
        with os.scandir(folder.path) as entries:
            listed = list(entries)
    except OSError as error:
        yield from _unlisted(folder, error)
        return
    above = (*folder.above, (status.st_dev, status.st_ino))
    if rest:
        yield from _matches(folder, rest)
    else:
        yield from (_Found(entry.path) for entry in listed if not _is_dir(entry))
    for entry in filter(_is_dir, listed):
        if not (entry.is_symlink() and _leads_back(entry, above)):
            yield from _matches_anywhere(_Folder(entry.path, above), rest)


def _unlisted(folder: _Folder, error: OSError) -> Iterator[_Found]:
    """A folder that cannot be listed may hide files; one that is gone hides none."""
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        yield _Found(folder.path, error)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _leads_back(entry: os.DirEntry[str], above: tuple[tuple[int, int], ...]) -> bool:
    status = os.stat(entry.path)
    return (status.st_dev, status.st_ino) in above


def _read_states(found: list[_Found]) -> list[SourceFile]:
    """The files with their checksums or problems, each path once, sorted by path."""
    distinct = list({each.path: each for each in found}.values())
    states: list[SourceFile] = []
    with concurrent.futures.ThreadPoolExecutor(_HASHING_THREADS) as pool:
        for start in range(0, len(distinct), _HASHED_AT_ONCE):
            states += pool.map(_read_state, distinct[start : start + _HASHED_AT_ONCE])
    return sorted(states)


def _read_state(found: _Found) -> SourceFile:
    path = written_name(found.path)
    if found.error:
        detail = f"the folder cannot be listed: {found.error.strerror}"
        return SourceFile(path, 0, "", problem=UNREADABLE, detail=detail)
    problem, detail = _problem(found.path)
    if not problem:
        try:
            return read_state(path)
        except PermissionError as error:
            problem, detail = "permission_denied", f"{error.strerror}"
        except OSError as error:
            problem, detail = "read_error", f"{error.strerror or error}"
    return SourceFile(path, 0, "", problem=problem, detail=detail)


def _problem(path: str) -> tuple[str, str]:
    """Why a path cannot be opened as a file, before it is tried."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        is_dangling = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        if is_dangling and os.path.islink(path):
            target = written_name(os.readlink(path))
            return "dangling_link", f"the link leads to {target}: {error.strerror}"
        if isinstance(error, PermissionError):
            return "permission_denied", f"{error.strerror}"
        return "read_error", f"{error.strerror}"
    if stat.S_ISREG(mode):
        return "", ""
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    return "not_a_file", f"it is {kinds.get(stat.S_IFMT(mode), 'a device')}"
