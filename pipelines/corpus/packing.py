"""Several tasks as one: small files together, and fewer tasks of a very large corpus.

Each task leaves files and a receipt, its keys are joined with those of all others, and
the process that starts the job knows them all. So their number is bounded, and not
their size: a million small files become some thousand tasks.
"""

from collections.abc import Iterable, Iterator, Sequence

from precis.pipelines.corpus.listing import UNREADABLE_SCHEME, combined_version
from precis.pipelines.corpus.task import Task

MOST_TASKS = 16_384


def pack_tasks(tasks: Sequence[Task], *, most: int = MOST_TASKS) -> list[Task]:
    """Tasks of consecutive ones, where there are more than `most`.

    Args:
      tasks: of a corpus, in order.
      most: about how many there may be; those of other splits, or of files that cannot
          be read, begin a further one.
    """
    if len(tasks) <= most:
        return list(tasks)
    total = sum(task.size_bytes for task in tasks)
    # An empty file costs no bytes and some time, so tasks are counted too.
    weight = total // len(tasks) + 1
    target = -(-(total + weight * len(tasks)) // most)
    return [join_tasks(group) for group in _groups(tasks, target, weight)]


def _groups(tasks: Iterable[Task], target: int, weight: int) -> Iterator[list[Task]]:
    """Runs of tasks that can be one, of about `target` each."""
    group: list[Task] = []
    size = 0
    for task in tasks:
        task_size = task.size_bytes + weight
        is_other = bool(group) and _kind(task) != _kind(group[0])
        if group and (is_other or size + task_size > target):
            yield group
            group = []
            size = 0
        group.append(task)
        size += task_size
    if group:
        yield group


def _kind(task: Task) -> tuple[object, ...]:
    return task.scheme, task.split, task.fields


def join_tasks(pieces: Sequence[Task], *, number: int = 0) -> Task:
    """The task that reads other ones, one after another.

    Args:
      pieces: tasks of one scheme and split.
      number: of the task.
    """
    first = pieces[0]
    if len(pieces) == 1:
        return first
    files = tuple(dict.fromkeys(file for piece in pieces for file in piece.files))
    is_unreadable = first.scheme == UNREADABLE_SCHEME
    return Task(
        number,
        first.scheme,
        files,
        split=first.split,
        fields=first.fields,
        version=combined_version(
            f"{piece.version}:{piece.start}:{piece.stop}" for piece in pieces
        ),
        size_bytes=sum(piece.size_bytes for piece in pieces),
        pieces=() if is_unreadable else tuple(pieces),
    )
