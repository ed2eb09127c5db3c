"""Joins the keys of documents: which text and which id stands where first.

    join   keys of one bucket -> _tasks/joined/00007

The groups of a joined file are the tasks of the corpus: each task reads what concerns
its own records. Only records that are not new have an entry.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.summarize.document_keys import (
    CONTENT_KEY,
    ID_KEY,
    ROW_KEY,
    keys_path,
)
from precis.pipelines.summarize.keyed_arrays import read_group, write_groups

_NOWHERE = -1
_NAMED = 3  # repeated ids whose places are kept
# Rows of one content, with other offsets each, that a document is compared with. Texts
# that differ in white space alone seldom have more forms.
_MOST_FORMS = 8
_LINK = np.dtype(
    [
        ("record", "<i4"),
        # The first document with the same content.
        ("first_task", "<i4"),
        ("first_record", "<i4"),
        # The first document with the same text, whose row is copied.
        ("copy_task", "<i4"),
        ("copy_record", "<i4"),
        # A row of an earlier run with the same content; a record with several rows has
        # a link for each.
        ("part", "<i4"),
        ("row", "<i4"),
    ]
)
_REPEAT = np.dtype([("record", "<i4"), ("repeat", "<i4")])


class Place(NamedTuple):
    """A document of the corpus: its task and its number among the task's records."""

    task: int
    record: int


class RowPlace(NamedTuple):
    """A row of an earlier run: the number of its part, and its place there."""

    part: int
    row: int


class Link(NamedTuple):
    """What is known of a document that is not new.

    Attributes:
      first: the first document with the same content; None where it is the first.
      copy: the first document with the same text, whose row holds for this one too;
          None where it is the first.
      earlier: rows of earlier runs with the same content, the preferred one first;
          their offsets differ.
    """

    first: Place | None
    copy: Place | None
    earlier: tuple[RowPlace, ...]


class BucketTask(NamedTuple):
    """A task of the step: a bucket of keys."""

    number: int


class JoinFigures(NamedTuple):
    """What a bucket reports.

    Attributes:
      repeated_ids: how many documents have an id that stands earlier in the corpus.
      repeated_id_places: the first of them as [task, record], for messages.
    """

    repeated_ids: int
    repeated_id_places: list[list[int]]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "JoinFigures":
        """The figures of a receipt."""
        return cls(**content)


class JoinWorker(TaskWorker):
    """Joins the keys of one bucket."""

    def __init__(self, job: Job, *, buckets: int, tasks: int, parts: int) -> None:
        """Stores its arguments.

        Args:
          job: the job.
          buckets: the number of buckets.
          tasks: the number of tasks of the corpus.
          parts: the number of parts of earlier runs.
        """
        self._job = job
        self._buckets = buckets
        self._tasks = tasks
        self._parts = parts

    def progress_size(self, task: BucketTask) -> int:
        """The step is not shown."""
        del task
        return 0

    def run(
        self, task: BucketTask, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[JoinFigures]:
        """Writes the links and the repeated ids of a bucket."""
        del progress, letters
        contents = self._keys(task.number, CONTENT_KEY, range(self._tasks))
        first_part = self._tasks
        rows = self._keys(
            task.number, ROW_KEY, range(first_part, first_part + self._parts)
        )
        links = _join_contents(*contents, *rows, first_part=first_part)
        ids = self._keys(self._buckets + task.number, ID_KEY, range(self._tasks))
        repeats = _count_repeats(*ids)
        groups = {2 * number: group for number, group in _by_task(*links).items()}
        groups |= {
            2 * number + 1: group for number, group in _by_task(*repeats).items()
        }
        path = joined_path(self._job.output, task.number)
        write_groups(path, groups)
        name = path.removeprefix(files.join(self._job.output, ""))
        described = describe_file(self._job.output, name, rows=len(links[0]))
        places = np.stack([repeats[1], repeats[0]["record"]], axis=1)[:_NAMED]
        figures = JoinFigures(len(repeats[0]), places.tolist())
        return TaskResult(source_counts(), [described], figures)

    def _keys(
        self, group: int, dtype: np.dtype, numbers: range
    ) -> tuple[np.ndarray, np.ndarray]:
        """The keys of a group in all files, and the number of the file of each."""
        parts = [
            read_group(keys_path(self._job.output, number), group, dtype)
            for number in numbers
        ]
        sizes = [len(part) for part in parts]
        keys = np.concatenate(parts) if parts else np.empty(0, dtype)
        return keys, np.repeat(np.array(list(numbers), "<i4"), sizes)


def _join_contents(
    keys: np.ndarray,
    tasks: np.ndarray,
    rows: np.ndarray,
    parts: np.ndarray,
    *,
    first_part: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The links of the documents of a bucket, and the task of each."""
    order = np.lexsort((keys["record"], tasks, keys["high"], keys["low"]))
    keys, tasks = keys[order], tasks[order]
    content_group = _group_starts(keys["low"], keys["high"])
    # Equal texts of one content lie together when they are sorted once more; the sort
    # is stable, so the first of them stays the first.
    by_text = np.lexsort((keys["text"], content_group))
    text_start = _group_starts(keys["text"][by_text], content_group[by_text])
    copy = np.empty(len(keys), np.int64)
    copy[by_text] = by_text[text_start]
    links = np.zeros(len(keys), _LINK)
    links["record"] = keys["record"]
    is_first = content_group == np.arange(len(keys))
    is_original = copy == np.arange(len(keys))
    for name, source, is_own in (
        ("first", content_group, is_first),
        ("copy", copy, is_original),
    ):
        links[f"{name}_task"] = np.where(is_own, _NOWHERE, tasks[source])
        links[f"{name}_record"] = np.where(is_own, _NOWHERE, keys["record"][source])
    counts, found = _find_rows(keys, rows)
    index = np.repeat(np.arange(len(keys)), np.maximum(counts, 1))
    links, tasks = links[index], tasks[index]
    has_row = counts[index] > 0
    links["part"] = _NOWHERE
    links["row"] = _NOWHERE
    links["part"][has_row] = parts[found] - first_part
    links["row"][has_row] = rows["row"][found]
    is_linked = ~is_first[index] | has_row
    return links[is_linked], tasks[is_linked]


def _group_starts(*columns: np.ndarray) -> np.ndarray:
    """For each element of sorted columns the position of the first equal one."""
    size = len(columns[0])
    begins = np.ones(size, bool)
    begins[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.maximum.accumulate(np.where(begins, np.arange(size), 0))


def _find_rows(keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows with the content of each key, at most one for each form of its text.

    The rows stand in the order in which earlier runs were named, so the run that was
    named first is preferred.

    Returns:
      How many rows each key has, and the positions of the rows of all keys, in order.
    """
    order = np.lexsort((rows["offsets"], rows["high"], rows["low"]))
    form = _group_starts(*(rows[name][order] for name in ("low", "high", "offsets")))
    forms = np.sort(order[form == np.arange(len(order))])
    # Equal contents get equal numbers.
    low = np.concatenate([rows["low"][forms], keys["low"]])
    high = np.concatenate([rows["high"][forms], keys["high"]])
    order = np.lexsort((high, low))
    content = np.empty(len(order), np.int64)
    content[order] = _group_starts(low[order], high[order])
    of_forms, of_keys = content[: len(forms)], content[len(forms) :]
    order = np.argsort(of_forms, kind="stable")
    begin = np.searchsorted(of_forms[order], of_keys, side="left")
    end = np.searchsorted(of_forms[order], of_keys, side="right")
    counts = np.minimum(end - begin, _MOST_FORMS)
    # 0, 1, 2 for a key with three rows, 0, 1 for one with two.
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return counts, forms[order][np.repeat(begin, counts) + steps]


def _count_repeats(
    keys: np.ndarray, tasks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The documents whose id stands earlier, how often, and the task of each."""
    order = np.lexsort((keys["record"], tasks, keys["high"], keys["low"]))
    keys, tasks = keys[order], tasks[order]
    start = _group_starts(keys["low"], keys["high"])
    repeat = np.arange(len(keys)) - start
    repeats = np.empty(len(keys), _REPEAT)
    repeats["record"] = keys["record"]
    repeats["repeat"] = repeat
    return repeats[repeat > 0], tasks[repeat > 0]


def _by_task(records: np.ndarray, tasks: np.ndarray) -> dict[int, np.ndarray]:
    order = np.lexsort((records["record"], tasks))
    records, tasks = records[order], tasks[order]
    numbers, starts = np.unique(tasks, return_index=True)
    pieces = np.split(records, starts[1:])
    return dict(zip(numbers.tolist(), pieces, strict=False))


def joined_path(output: str, bucket: int) -> str:
    """Where the result of a bucket lies while the job runs."""
    return files.join(output, TASKS_FOLDER, "joined", f"{bucket:05d}")


class JoinedTask(NamedTuple):
    """What the join found for a task of the corpus.

    Attributes:
      links: by record; a record without one is new.
      repeats: for a record whose id stands earlier in the corpus, how often.
    """

    links: dict[int, Link]
    repeats: dict[int, int]


def read_joined(output: str, task: int, *, buckets: int) -> JoinedTask:
    """What the join found for a task of the corpus.

    Raises:
      DataError: a file of the join is damaged.
    """
    links: dict[int, Link] = {}
    repeats: dict[int, int] = {}
    for bucket in range(buckets):
        path = joined_path(output, bucket)
        for record, *places in read_group(path, 2 * task, _LINK).tolist():
            link = _to_link(places)
            before = links.get(record)
            earlier = (*(before.earlier if before else ()), *link.earlier)
            links[record] = link._replace(earlier=earlier)
        repeats.update(read_group(path, 2 * task + 1, _REPEAT).tolist())
    return JoinedTask(links, repeats)


def _to_link(places: Sequence[int]) -> Link:
    first_task, first_record, copy_task, copy_record, part, row = places
    return Link(
        None if first_task == _NOWHERE else Place(first_task, first_record),
        None if copy_task == _NOWHERE else Place(copy_task, copy_record),
        () if part == _NOWHERE else (RowPlace(part, row),),
    )
