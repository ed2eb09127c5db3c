"""Which rows of a run become which part.

    tasks 0 to 11 have 20 MB of split=test, 250 MB of split=train
    tasks 12 to 19         15 MB                210 MB

    data/split=test/part-1f2e3d4c-00000-of-00003.parquet    tasks 0 to 19
    data/split=train/part-1f2e3d4c-00001-of-00003.parquet   tasks 0 to 11
    data/split=train/part-1f2e3d4c-00002-of-00003.parquet   tasks 12 to 19

The step `infer` has counted the rows of each task by partition, so no row is read here.
"""

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.result_files import DATA_FOLDER, DEAD_LETTERS_FOLDER
from precis.pipelines.summarize.pieces import KINDS
from precis.pipelines.summarize.summarize_task import SummaryFigures
from precis.pipelines.tables.partitions import check_partitions

STEP = "publish"
_DUPLICATE_BYTES = 4096  # where a task has no row that says more


class PartTask(NamedTuple):
    """A task of the step.

    Attributes:
      number: position among the parts.
      parts: how many parts there are.
      pieces: the tasks whose pieces it holds.
      partition: the key of the partition whose rows it holds.
      share: (1, 3) for the second of three parts that share the rows of one task.
    """

    number: int
    parts: int
    pieces: tuple[int, ...]
    partition: str = "[]"
    share: tuple[int, int] = (0, 1)


class _Group(NamedTuple):
    """The pieces of one part, and about the bytes that there is room for."""

    pieces: list[int]
    room: int
    share: tuple[int, int] = (0, 1)


def plan_parts(
    reports: Iterable[TaskReport[SummaryFigures]],
    job: Job,
    *,
    target_bytes: int,
    partition_by: Sequence[str] = (),
) -> list[PartTask]:
    """Puts consecutive tasks together until their pieces are large enough for a part.

    Parts that an interrupted run made of other pieces are made anew.

    Args:
      reports: of the step before, in any order.
      job: the job.
      target_bytes: about the size of a part.
      partition_by: the columns of the partitions, for messages.

    Raises:
      DataError: there are too many partitions.
    """
    reports = sorted(reports, key=lambda report: report.task)
    _forget_other_parts(job, [report.files for report in reports])
    return group_pieces(reports, target_bytes=target_bytes, partition_by=partition_by)


def group_pieces(
    reports: Sequence[TaskReport[SummaryFigures]],
    *,
    target_bytes: int,
    partition_by: Sequence[str] = (),
) -> list[PartTask]:
    """The parts of pieces, in order.

    The arguments are those of `plan_parts`; the reports are sorted.

    Raises:
      DataError: there are too many partitions.
    """
    partitions: dict[str, list[_Group]] = {}
    for report in reports:
        piece_bytes = _piece_bytes(report)
        rows_of_all = sum(report.figures.partitions.values())
        for key, rows in report.figures.partitions.items():
            groups = partitions.setdefault(key, [])
            _add(groups, report.task, piece_bytes * rows // rows_of_all, target_bytes)
        check_partitions(len(partitions), partition_by)
    groups_of_all = [
        (key, group) for key in sorted(partitions) for group in partitions[key]
    ]
    return [
        PartTask(number, len(groups_of_all), tuple(group.pieces), key, group.share)
        for number, (key, group) in enumerate(groups_of_all)
    ]


def _add(groups: list[_Group], piece: int, size: int, target_bytes: int) -> None:
    """Adds the rows of a task to the last part of a partition, or to new ones."""
    parts = round(size / target_bytes)
    if parts > 1:
        groups += [_Group([piece], 0, (number, parts)) for number in range(parts)]
    elif groups and size <= groups[-1].room:
        groups[-1].pieces.append(piece)
        groups[-1] = groups[-1]._replace(room=groups[-1].room - size)
    else:
        groups.append(_Group([piece], max(0, target_bytes - size)))


def _forget_other_parts(job: Job, pieces: Sequence[Any]) -> None:
    """Removes the receipts of parts, and the parts, that were made of other pieces."""
    folder = files.join(job.output, TASKS_FOLDER)
    path = files.join(folder, "pieces.sha256")
    digest = files.sha256_json(pieces)
    if files.exists(path) and files.read_bytes(path) != digest.encode():
        # Without their receipts: one may be damaged, and its part would stay.
        for where in (DATA_FOLDER, DEAD_LETTERS_FOLDER):
            fs, name = files.filesystem(files.join(job.output, where))
            for made in fs.find(name) if fs.isdir(name) else ():
                kind = "part" if where == DATA_FOLDER else STEP
                if posixpath.basename(made).startswith(f"{kind}-{job.run_id[:8]}-"):
                    fs.rm(made)
        files.remove(files.join(folder, STEP))
    files.write_bytes(path, digest.encode())


def _piece_bytes(report: TaskReport[SummaryFigures]) -> int:
    """About how large the rows of a task are; a duplicate counts as the mean row."""
    rows = {**dict.fromkeys(KINDS, 0), **report.figures.rows}
    size = sum(
        file["bytes"]
        for file in report.files
        if not file["file"].endswith("-duplicates.parquet")
    )
    own = rows["written"] + rows["reused"]
    if not rows["duplicates"]:
        return size
    return size + rows["duplicates"] * (size // own if own else _DUPLICATE_BYTES)
