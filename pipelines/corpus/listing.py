"""Finds the files of a corpus and cuts them into tasks."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus import local_listing
from precis.pipelines.corpus.opening import UNREADABLE, object_version
from precis.pipelines.corpus.task import (
    Fields,
    ReadRecord,
    SourceFile,
    Task,
    Unreadable,
)

_WILDCARDS = "*?[{"
# The scheme of the files that cannot be read, and how many of them a task has.
UNREADABLE_SCHEME = "unreadable"
_UNREADABLE_FILES = 1000
# What these problems hide may be thousands of records or one.
_PROBLEMS_OF_CONTENT = ("permission_denied", "read_error")


def list_files(pattern: str) -> list[SourceFile]:
    """The files that a glob matches, sorted by path.

    Links to files are files. What is neither a file nor a folder, and files that cannot
    be read, are listed with their problem.

    Raises:
      UsageError: nothing matches.
    """
    if files.is_local(pattern):
        source_files = local_listing.list_matches(pattern)
        is_folder = local_listing.is_folder(pattern)
    else:
        fs, name = files.filesystem(pattern)
        if fs.isfile(name) and not local_listing.matches_itself(name):
            infos = [fs.info(name)]
        else:
            infos = list(fs.glob(name, detail=True).values())
        source_files = _objects(fs, infos)
        is_folder = not source_files and fs.isdir(name)
    if not source_files and is_folder:
        raise UsageError(
            f"{pattern} is a folder; name the files in it, "
            f"as in {pattern.rstrip('/')}/*"
        )
    if not source_files:
        raise UsageError(
            f"no file matches {pattern} ({_root_state(pattern)}); "
            "check the path and quote the pattern"
        )
    return source_files


def _root_state(pattern: str) -> str:
    """Whether the folder exists in which a pattern's files would be."""
    root = fixed_root(pattern)
    if not root:
        return "in the working directory"
    return (
        f"the folder {root} exists" if _is_dir(root) else f"there is no folder {root}"
    )


def _is_dir(folder: str) -> bool:
    if files.is_local(folder):
        return local_listing.is_folder(folder)
    fs, name = files.filesystem(folder)
    return bool(fs.isdir(name))


def list_folder(folder: str, suffix: str) -> list[SourceFile]:
    """The files below a folder whose names end in `suffix`, sorted by path.

    Raises:
      UsageError: there is no such folder, or no such file in it.
    """
    if not _is_dir(folder):
        raise UsageError(f"there is no folder {folder}; check the path")
    if files.is_local(folder):
        source_files = local_listing.list_below(folder, suffix)
    else:
        fs, name = files.filesystem(folder)
        infos = fs.find(name, detail=True).values()
        source_files = _objects(
            fs, (info for info in infos if str(info["name"]).endswith(suffix))
        )
    if not source_files:
        raise UsageError(f"no file below {folder} ends in {suffix}; check the path")
    return source_files


def _objects(fs: Any, infos: Iterable[dict[str, Any]]) -> list[SourceFile]:
    """The files of an object store."""
    return sorted(
        SourceFile(
            fs.unstrip_protocol(info["name"]), info["size"], object_version(info)
        )
        for info in infos
        if info["type"] == "file"
    )


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
        (file,),
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
            tuple(group),
            version=_group_version(group),
            size_bytes=sum(file.size_bytes for file in group),
        )
        for group in _groups(source_files, task_bytes)
    ]


def unreadable_tasks(
    source_files: Iterable[SourceFile], *, holds_one_document: bool
) -> list[Task]:
    """Tasks whose records are files that could not be read, each one lost record.

    Args:
      source_files: files with a problem.
      holds_one_document: whether a file of the corpus is one document. A file of
          records that cannot be read has the reason `file_unreadable` instead of its
          problem, as the number of its records is not known.
    """
    named = [
        file
        if holds_one_document or file.problem not in _PROBLEMS_OF_CONTENT
        else file._replace(problem=UNREADABLE)
        for file in source_files
    ]
    groups = (
        named[start : start + _UNREADABLE_FILES]
        for start in range(0, len(named), _UNREADABLE_FILES)
    )
    return [
        Task(0, UNREADABLE_SCHEME, tuple(group), version=_group_version(group))
        for group in groups
    ]


def read_unreadable(task: Task) -> Iterator[ReadRecord]:
    """The records of a task of `unreadable_tasks`."""
    for number, file in enumerate(task.files, start=1):
        content = Unreadable(file.path, "file", file.problem, file.detail, b"")
        yield ReadRecord(content, number / len(task.files))


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
    return combined_version(file.version or file.problem for file in group)


def combined_version(versions: Iterable[str]) -> str:
    """One version of several: it changes when any of them does."""
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:16]


def cut_range(size: int, pieces: int) -> list[int]:
    """The edges of equal pieces of [0, size): `cut_range(10, 3)` is [0, 3, 6, 10]."""
    return [size * piece // pieces for piece in range(pieces + 1)]
