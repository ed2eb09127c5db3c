"""`--retry_failures`: reads the records again that an earlier run has lost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.dead_letters import UNCOUNTED, read_letters
from precis.pipelines.corpus.task import Task, position_numbers
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    check_description,
    is_whole,
    read_run_manifest,
)


def retried_files(run: str) -> dict[str, dict[str, int]]:
    """The records that a run has lost, by source file, as in `Task.only`.

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


def _by_file(letters: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    ranges: dict[str, dict[str, int]] = {}
    for letter in letters:
        is_counted = f"{letter['stage']}/{letter['reason']}" not in UNCOUNTED
        of_file = ranges.setdefault(letter["source_file"], {})
        of_file[letter["source_position"]] = letter["records"] if is_counted else 0
    return ranges


def retried_tasks(
    tasks: Sequence[Task], retried: Mapping[str, Mapping[str, int]], run: str
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
        if paths and task.only is not None:  # It reads what --sample has drawn.
            task, paths = _of_drawn(task, paths)
        if paths:
            kept.append(task._replace(number=len(kept), only=paths))
    if not kept:
        raise UsageError(
            f"--retry_failures {run}: the corpus has none of the files whose records "
            "that run has lost; name the same --corpus"
        )
    return kept


def _of_drawn(
    task: Task, lost: Mapping[str, Mapping[str, int]]
) -> tuple[Task, dict[str, Mapping[str, int]]]:
    """A task of --sample that counts the lost records that are not drawn, and those of
    them that are.
    """
    only: dict[str, Mapping[str, int]] = {}
    left_out: dict[str, int] = {}
    for path, ranges in lost.items():
        begins = [position_numbers(place) for place in ranges if ranges[place] != 1]
        only[path] = {
            place: 1
            for place in (task.only or {}).get(path, ())
            if place in ranges or any(position_numbers(place) >= b for b in begins)
        }
        left_out[path] = sum(
            max(count, 1)
            for place, count in ranges.items()
            if place not in only[path] and _is_within(place, task)
        )
    return task._replace(left_out=left_out), only


def _is_within(position: str, task: Task) -> bool:
    numbers = position_numbers(position) or (task.start,)
    return task.start <= numbers[0] and (task.stop == -1 or numbers[0] < task.stop)
