"""Finds the files of a corpus and cuts them into pieces of work."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError

_MAGIC = "*?[{"
# What tells one content from another, the surest first; each file system offers some of
# them.
_STAMPS = ("etag", "ETag", "generation", "mtime", "updated", "LastModified", "created")


class SourceFile(NamedTuple):
    """A file of a corpus.

    Attributes:
      path: as fsspec opens it.
      size_bytes: as stored.
      version: what changes when the content does.
    """

    path: str
    size_bytes: int
    version: str


def list_files(pattern: str) -> list[SourceFile]:
    """The files that a glob matches, sorted by path.

    Raises:
      UsageError: nothing matches.
    """
    fs, name = files.filesystem(pattern)
    # A file's own name comes before its reading as a pattern: `notes[1].txt` is one.
    found = [fs.info(name)] if fs.isfile(name) else fs.glob(name, detail=True).values()
    listed = _source_files(fs, pattern, found)
    if not listed and fs.isdir(name):
        raise UsageError(
            f"{pattern} is a folder; name the files in it, as in {pattern.rstrip('/')}/*"
        )
    if not listed:
        root = fixed_root(pattern)
        known = (
            f"the folder {root} exists"
            if root and fs.isdir(files.filesystem(root)[1])
            else f"there is no folder {root}"
        )
        raise UsageError(
            f"no file matches {pattern} ({known if root else 'in the working directory'}); check the path and quote the pattern"
        )
    return listed


def list_folder(folder: str, suffix: str) -> list[SourceFile]:
    """The files below a folder whose names end in `suffix`, sorted by path.

    Raises:
      UsageError: there is no such folder, or no such file in it.
    """
    fs, name = files.filesystem(folder)
    if not fs.isdir(name):
        raise UsageError(f"there is no folder {folder}; check the path")
    found = [
        info
        for info in fs.find(name, detail=True).values()
        if str(info["name"]).endswith(suffix)
    ]
    if not found:
        raise UsageError(f"no file below {folder} ends in {suffix}; check the path")
    return _source_files(fs, folder, found)


def _source_files(
    fs: Any, pattern: str, found: Iterable[dict[str, Any]]
) -> list[SourceFile]:
    listed = []
    for info in found:
        if info["type"] != "file":
            continue
        path = (
            info["name"]
            if files.is_local(pattern)
            else fs.unstrip_protocol(info["name"])
        )
        stamp = next((info[key] for key in _STAMPS if info.get(key)), "")
        listed.append(SourceFile(path, info["size"], f"{info['size']}:{stamp}"))
    return sorted(listed)


def fixed_root(pattern: str) -> str:
    """The folder part of a glob that comes before its first wildcard, without the last
    slash.

    news/2024-*/*.txt  ->  news        gs://bucket/*.txt  ->  gs://bucket        *.txt  ->  (empty)
    """
    first = min(
        (pattern.index(sign) for sign in _MAGIC if sign in pattern),
        default=len(pattern),
    )
    return pattern[:first].rpartition("/")[0]


def group_files(
    listed: Iterable[SourceFile], task_bytes: int
) -> Iterator[list[SourceFile]]:
    """Cuts a list of small files into runs of about `task_bytes` each."""
    group: list[SourceFile] = []
    group_bytes = 0
    for file in listed:
        if group and group_bytes + file.size_bytes > task_bytes:
            yield group
            group, group_bytes = [], 0
        group.append(file)
        group_bytes += file.size_bytes
    if group:
        yield group


def group_version(group: Iterable[SourceFile]) -> str:
    """One version for several files: it changes when any of them does."""
    return hashlib.sha256(
        " ".join(file.version for file in group).encode()
    ).hexdigest()[:16]


def cut_range(size: int, pieces: int) -> list[int]:
    """The edges of equal pieces of [0, size): `cut_range(10, 3)` is [0, 3, 6, 10]."""
    return [size * piece // pieces for piece in range(pieces + 1)]
