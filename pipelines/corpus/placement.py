"""Refuses an output folder that a corpus reads from, or would read from next time."""

import os
import posixpath
from collections.abc import Iterable, Sequence

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.local_listing import (
    ANY_FOLDERS,
    absolute_path,
    matches,
    split_pattern,
)
from precis.pipelines.corpus.names import local_name
from precis.pipelines.corpus.options import CorpusOptions, parse_address
from precis.pipelines.corpus.task import Task


def check_output_apart(
    output: str, options: CorpusOptions, tasks: Iterable[Task]
) -> None:
    """Checks that no file of a corpus is in the output, nor the output in the corpus.

        --corpus               --output
        text:news/*.txt        news/out    allowed: the pattern matches no file there
        text:news/*            news/out    refused: the pattern matches the folder
        text:news/**/*.txt     news/out    refused
        jsonl:runs/in/*.jsonl  runs        refused

    Links are followed before paths are compared.

    Raises:
      UsageError: the output is not apart from the corpus.
    """
    place = resolve(output)
    for path in _resolved_paths(tasks):
        if is_within(path, place):
            raise UsageError(
                f"{path} is a file of the corpus and lies in --output {output}; name "
                "a folder outside the corpus"
            )
    scheme, where = parse_address(options.corpus)
    if scheme == "stories":
        where = posixpath.join(where, ANY_FOLDERS)
    if scheme not in ("sample", "tfds") and _reaches(where, place):
        raise UsageError(
            f"--output {output} lies where {options.corpus} reads, so that the next "
            "run would read what this one writes; name a folder outside the corpus"
        )


def resolve(path: str) -> str:
    """A path without links, or a URL; without a slash at its end."""
    if files.is_local(path):
        return os.path.realpath(absolute_path(path))
    fs, name = files.filesystem(path)
    return str(fs.unstrip_protocol(name)).rstrip("/")


def _resolved_paths(tasks: Iterable[Task]) -> set[str]:
    """The files of a corpus, without links in their paths."""
    folders: dict[str, str] = {}
    resolved = set()
    for path in {path for task in tasks for path in task.paths}:
        if files.is_local(path) and os.path.islink(local_name(path)):
            resolved.add(resolve(path))
            continue
        folder, name = posixpath.split(path)
        if folder not in folders:
            folders[folder] = resolve(folder)
        resolved.add(posixpath.join(folders[folder], name))
    return resolved


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it; both as `resolve` returns them."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _reaches(pattern: str, place: str) -> bool:
    """Whether a pattern matches a folder, a folder above it, or files below it."""
    name = absolute_path(pattern) if files.is_local(pattern) else pattern
    root, parts = split_pattern(name)
    root = resolve(root)
    if not parts or not is_within(place, root):
        return False
    return _reaches_below(
        parts, [part for part in place[len(root) :].split("/") if part]
    )


def _reaches_below(parts: Sequence[str], folders: Sequence[str]) -> bool:
    if not parts or not folders:
        return True
    if parts[0] == ANY_FOLDERS:
        return True
    return matches(parts[0], folders[0]) and _reaches_below(parts[1:], folders[1:])
