"""Refuses an output folder that a corpus reads from, or would read from next time."""

import functools
import os
import posixpath
from collections.abc import Iterable, Iterator

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.listing import (
    ANY_FOLDERS,
    absolute_path,
    matcher,
    split_pattern,
)
from precis.pipelines.corpus.names import local_name
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
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
    for scheme, where in parse_addresses(options.corpus):
        pattern = SCHEMES[scheme].pattern(where)
        if pattern and _reaches(pattern, place):
            raise UsageError(
                f"--output {output} lies where {options.corpus} reads, so that the "
                "next run would read what this one writes; name a folder outside the "
                "corpus"
            )


def resolve(path: str) -> str:
    """A path without links, or a URL; without a slash at its end."""
    if files.is_local(path):
        return os.path.realpath(absolute_path(path))
    fs, name = files.filesystem(path)
    return str(fs.unstrip_protocol(name)).rstrip("/")


def _resolved_paths(tasks: Iterable[Task]) -> Iterator[str]:
    """The files of a corpus, without links in their paths."""
    resolve_folder = functools.cache(resolve)
    for path in {path for task in tasks for path in task.paths}:
        if files.is_local(path) and os.path.islink(local_name(path)):
            yield resolve(path)
        else:
            folder, name = posixpath.split(path)
            yield posixpath.join(resolve_folder(folder), name)


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
    folders = [part for part in place[len(root) :].split("/") if part]
    for part, folder in zip(parts, folders, strict=False):
        if part == ANY_FOLDERS:
            return True
        if not matcher(part)(folder):
            return False
    return True
