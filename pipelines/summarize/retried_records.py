"""`--retry_failures`: reads the records again that an earlier run has lost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.dead_letters import UNCOUNTED, read_letters
from precis.pipelines.corpus.task import RetriedFile, Task, position_numbers
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    check_description,
    is_whole,
    read_run_manifest,
)


def retried_files(run: str) -> dict[str, RetriedFile]:
    """The places of the records that a run has lost, by source file.

    Raises:
      UsageError: it is no run, or has lost none.
      DataError: its dead letters are damaged.
    """
    path = files.join(run, DESCRIPTION_FILES["summaries"])
    if not files.exists(path):
        raise UsageError(
            f"--retry_failures {run}: it is no run, for it has no manifest.json; name "
            "the --output of an earlier `precis summarize`"
        )
    check_description(
        run,
        "summaries",
        way_out="repair that run by its own command",
        flag="--retry_failures",
    )
    listed = read_run_manifest(path)["dead_letters"]
    for file in listed:
        if not is_whole(run, file):
            raise DataError(
                f"--retry_failures: {files.join(run, file['file'])} is missing or "
                "damaged; repair that run by its own command"
            )
    paths = [files.join(run, file["file"]) for file in listed]
    retried = _by_file(letter for path in paths for letter in read_letters(path))
    if not retried:
        raise UsageError(f"--retry_failures {run}: that run has lost no record")
    return retried


def _by_file(letters: Iterable[Mapping[str, Any]]) -> dict[str, RetriedFile]:
    positions: dict[str, set[str]] = {}
    begins: dict[str, tuple[int, ...]] = {}
    for letter in letters:
        file, position = letter["source_file"], letter["source_position"]
        positions.setdefault(file, set()).add(position)
        reason = f"{letter['stage']}/{letter['reason']}"
        if letter["records"] > 1 or reason in UNCOUNTED:
            place = position_numbers(position)
            begins[file] = min(begins.get(file, place), place)
    return {
        file: RetriedFile(frozenset(positions[file]), begins.get(file))
        for file in positions
    }


def retried_tasks(
    tasks: Sequence[Task], retried: Mapping[str, RetriedFile], run: str
) -> list[Task]:
    """The tasks that read such records, and no others.

    Args:
      tasks: of the corpus.
      retried: the places.
      run: the earlier run, for the message.

    Raises:
      UsageError: the corpus has none of the files.
    """
    kept: list[Task] = []
    for task in tasks:
        paths = {path: retried[path] for path in task.paths if path in retried}
        if task.scheme == "sample" and "sample:" in retried:
            paths = dict(retried)
        if paths:
            kept.append(task._replace(number=len(kept), only=paths))
    if not kept:
        raise UsageError(
            f"--retry_failures {run}: the corpus has none of the files whose records "
            "that run has lost; name the same --corpus"
        )
    return kept
