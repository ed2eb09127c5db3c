"""Finds the files of a corpus and cuts them into tasks."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import Fields, Task

_WILDCARDS = "*?[{"
# The file information that changes with the content, the most reliable first; each file
# system offers some of it.
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
    # `notes[1].txt` may be the name of a file. As a pattern it matches another file.
    if fs.isfile(name):
        infos = [fs.info(name)]
    else:
        infos = list(fs.glob(name, detail=True).values())
    source_files = _source_files(fs, pattern, infos)
    if not source_files and fs.isdir(name):
        raise UsageError(
            f"{pattern} is a folder; name the files in it, "
            f"as in {pattern.rstrip('/')}/*"
        )
    if not source_files:
        raise UsageError(
            f"no file matches {pattern} ({_root_state(fs, pattern)}); "
            "check the path and quote the pattern"
        )
    return source_files


def _root_state(fs: Any, pattern: str) -> str:
    """Whether the folder exists in which a pattern's files would be."""
    root = fixed_root(pattern)
    if not root:
        return "in the working directory"
    if fs.isdir(files.filesystem(root)[1]):
        return f"the folder {root} exists"
    return f"there is no folder {root}"


def list_folder(folder: str, suffix: str) -> list[SourceFile]:
    """The files below a folder whose names end in `suffix`, sorted by path.

    Raises:
      UsageError: there is no such folder, or no such file in it.
    """
    fs, name = files.filesystem(folder)
    if not fs.isdir(name):
        raise UsageError(f"there is no folder {folder}; check the path")
    infos = [
        info
        for info in fs.find(name, detail=True).values()
        if str(info["name"]).endswith(suffix)
    ]
    if not infos:
        raise UsageError(f"no file below {folder} ends in {suffix}; check the path")
    return _source_files(fs, folder, infos)


def _source_files(
    fs: Any, pattern: str, infos: Iterable[dict[str, Any]]
) -> list[SourceFile]:
    source_files = []
    for info in infos:
        if info["type"] != "file":
            continue
        path = info["name"]
        if not files.is_local(pattern):
            path = fs.unstrip_protocol(path)
        stamp = next((info[key] for key in _STAMPS if info.get(key)), "")
        source_files.append(SourceFile(path, info["size"], f"{info['size']}:{stamp}"))
    return sorted(source_files)


def fixed_root(pattern: str) -> str:
    """The folder of a glob up to its first wildcard, without the last slash.

    news/2024-*/*.txt   ->  news
    gs://bucket/*.txt   ->  gs://bucket
    *.txt               ->  (empty)
    """
    first = min(
        (pattern.index(sign) for sign in _WILDCARDS if sign in pattern),
        default=len(pattern),
    )
    return pattern[:first].rpartition("/")[0]


def range_task(
    scheme: str,
    file: SourceFile,
    start: int,
    stop: int,
    *,
    size_bytes: int,
    fields: Fields,
    split: str = "",
) -> Task:
    """The task that reads the range [start, stop) of one file."""
    return Task(
        0,
        scheme,
        (file.path,),
        start,
        stop,
        split=split,
        fields=fields,
        version=file.version,
        size_bytes=size_bytes,
    )


def group_tasks(
    scheme: str, source_files: Iterable[SourceFile], task_bytes: int
) -> list[Task]:
    """Tasks that read runs of small files, about `task_bytes` each."""
    return [
        Task(
            0,
            scheme,
            tuple(file.path for file in group),
            version=_group_version(group),
            size_bytes=sum(file.size_bytes for file in group),
        )
        for group in _groups(source_files, task_bytes)
    ]


def _groups(
    source_files: Iterable[SourceFile], task_bytes: int
) -> Iterator[list[SourceFile]]:
    group: list[SourceFile] = []
    group_bytes = 0
    for file in source_files:
        if group and group_bytes + file.size_bytes > task_bytes:
            yield group
            group = []
            group_bytes = 0
        group.append(file)
        group_bytes += file.size_bytes
    if group:
        yield group


def _group_version(group: Iterable[SourceFile]) -> str:
    """One version for several files: it changes when any of them does."""
    versions = " ".join(file.version for file in group)
    return hashlib.sha256(versions.encode()).hexdigest()[:16]


def cut_range(size: int, pieces: int) -> list[int]:
    """The edges of equal pieces of [0, size): `cut_range(10, 3)` is [0, 3, 6, 10]."""
    return [size * piece // pieces for piece in range(pieces + 1)]
