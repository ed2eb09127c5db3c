"""The step `publish`: pieces -> the Parquet parts of a run.

    pieces of tasks 0 to 11   -> data/part-1f2e3d4c-00000-of-00002.parquet
    pieces of tasks 12 to 19  -> data/part-1f2e3d4c-00001-of-00002.parquet

A part holds the rows of consecutive tasks, as `part_plans` says, in row groups, each
sorted by document_id. A duplicate gets the row of the first document with the same
text.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from precis.model import files
from precis.model.quality.fallback import (
    ABSTRACTIVE,
    SOURCE,
    FallbackConfig,
    rejects,
)
from precis.pipelines.corpus.dead_letters import DeadLetter, LetterFile
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import DATA_FOLDER, PublishedFile, describe_file
from precis.pipelines.summarize.duplicate_rows import RowFinder, copy_rows, name_first
from precis.pipelines.summarize.part_plans import PartTask
from precis.pipelines.summarize.pieces import piece_path, piece_schema, read_partition
from precis.pipelines.summarize.task_rows import flagged_rows
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.part_writing import write_sorted


class PartFigures(NamedTuple):
    """What a part reports.

    Attributes:
      rows_by_source: the rows of the part by source file, counted in what was written.
      summary_methods: rows by the method of the summary that is shown.
      quality_flags: rows by each of the flags of the summary that is shown.
      fallbacks: rows whose abstractive summary is not shown, by each of the flags that
          it was held back for.
      flagged: rows of duplicates with a quality flag.
    """

    rows_by_source: dict[str, int]
    summary_methods: dict[str, int]
    quality_flags: dict[str, int]
    fallbacks: dict[str, int]
    flagged: int = 0

    @classmethod
    def from_json(cls, content: Any) -> "PartFigures":
        """The figures of a receipt."""
        return cls(**content)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartSettings:
    """What the step needs.

    Attributes:
      layout: how rows lie in parts.
      fallback: which flags hold an abstractive summary back.
      footer: facts about the run, for the metadata of the files.
    """

    layout: PartLayout
    fallback: FallbackConfig
    footer: dict[str, str]


class PartWorker(TaskWorker):
    """Writes one part."""

    def __init__(self, job: Job, settings: PartSettings) -> None:
        self._job = job
        self._settings = settings

    def progress_size(self, task: PartTask) -> int:
        """The step is not shown: it takes a small part of the time."""
        del task
        return 0

    def run(
        self, task: PartTask, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[PartFigures]:
        """Writes the part of some pieces."""
        layout = self._settings.layout
        folder = layout.partitioning.folder(task.partition)
        name = files.join(DATA_FOLDER, *filter(None, [folder]), self._name(task))
        rows = _PartRows(task, self._job, self._settings, letters)
        count = write_sorted(
            files.join(self._job.output, name),
            rows.tables(),
            layout,
            self._settings.footer,
        )
        progress.add_flagged(rows.flagged_duplicates)
        published = [self._described(name, count, task)] if count else []
        return TaskResult(
            sources=source_counts(**rows.moved),
            counts={"truncated": rows.truncated},
            files=published,
            figures=PartFigures(
                dict(rows.sources),
                dict(rows.methods),
                dict(rows.flags),
                dict(rows.fallbacks),
                rows.flagged_duplicates,
            ),
        )

    def _described(self, name: str, rows: int, task: PartTask) -> PublishedFile:
        file = describe_file(self._job.output, name, rows=rows)
        values = self._settings.layout.partitioning.values(task.partition)
        if values:
            file["partition"] = values
        return file

    def _name(self, task: PartTask) -> str:
        run = self._job.run_id[:8]
        return f"part-{run}-{task.number:05d}-of-{task.parts:05d}.parquet"


class _PartRows:
    """The rows of a part, and their counts.

    Attributes:
      moved: what a document that failed changes in the outcomes of its duplicates, by
          source file.
      sources, methods, flags, fallbacks: rows, as in `PartFigures`.
      truncated: rows whose document a network did not read to its end.
      flagged_duplicates: rows of duplicates with a quality flag.
    """

    def __init__(
        self, task: PartTask, job: Job, settings: PartSettings, letters: LetterFile
    ) -> None:
        self.moved: dict[str, Counter[str]] = {
            name: Counter() for name in ("duplicates", "written", "reused")
        }
        self.sources: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()
        self.truncated = 0
        self.flagged_duplicates = 0
        self._task = task
        self._output = job.output
        self._layout = settings.layout
        self._fallback = settings.fallback
        self._letters = letters
        self._finder = RowFinder(job.output)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in the order of the corpus but for reused ones and duplicates."""
        for piece in self._task.pieces:
            for rows in self._piece_rows(piece):
                named = name_first(rows, self._finder)
                for name, counts in zip(
                    ("written", "reused"), named.without_first, strict=True
                ):
                    self.moved["duplicates"].subtract(counts)
                    self.moved[name].update(counts)
                self._count_all(rows)
                yield named.rows.select(self._layout.schema.names)

    def _count_all(self, rows: pa.Table) -> None:
        _count(self.sources, rows.column("source_file"))
        _count(self.methods, rows.column("summary_method"))
        _count(self.flags, pc.list_flatten(rows.column("quality_flags")))
        held_back: Counter[str] = Counter()
        _count(held_back, _held_back_flags(rows))
        self.fallbacks.update(
            {
                name: count
                for name, count in held_back.items()
                if rejects(name, self._fallback)
            }
        )
        self.truncated += pc.sum(rows.column("truncated")).as_py() or 0

    def _piece_rows(self, piece: int) -> Iterator[pa.Table]:
        """The rows of a task, those of duplicates with all columns."""
        for kind in ("written", "reused"):
            yield from self._read(piece, kind)
        schema = piece_schema(self._layout.schema)
        for duplicates in self._read(piece, "duplicates"):
            copied = copy_rows(duplicates, self._finder, schema)
            for lost in copied.lost:
                self.moved["duplicates"][lost["source_file"]] -= 1
                self._letters.write(_lost_letter(lost))
            if copied.rows.num_rows:
                self.flagged_duplicates += flagged_rows(copied.rows)
                yield copied.rows

    def _read(self, piece: int, kind: str) -> Iterator[pa.Table]:
        """The rows of a piece that belong to the part."""
        task, partitioning = self._task, self._layout.partitioning
        path = piece_path(self._output, piece, kind)
        return read_partition(path, partitioning, task.partition, task.share)


def _held_back_flags(rows: pa.Table) -> pa.ChunkedArray:
    """The flags of the abstractive summaries that are not shown."""
    method = rows.column("summary_method")
    is_shown = pc.is_in(method, pa.array([ABSTRACTIVE, SOURCE]))
    quality = rows.filter(pc.invert(is_shown)).column("abstractive_quality")
    return pc.list_flatten(pc.struct_field(quality, "flags"))


def _count(counts: Counter[str], column: pa.ChunkedArray) -> None:
    for count in pc.value_counts(column).to_pylist():
        counts[count["values"]] += count["counts"]


def _lost_letter(row: dict[str, Any]) -> DeadLetter:
    return DeadLetter(
        "publish",
        "duplicate_of_failed",
        "the first document with the same text has failed; its dead letter says why",
        row["document_id"],
        row["source_file"],
        row["source_position"],
        retryable=True,
        content_sha256=row["content_sha256"],
    )
