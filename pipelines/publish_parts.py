"""The step `publish`: pieces -> the Parquet parts of a run.

    pieces of tasks 0 to 11   -> data/part-1f2e3d4c-00000-of-00002.parquet
    pieces of tasks 12 to 19  -> data/part-1f2e3d4c-00001-of-00002.parquet

A part holds the rows of consecutive tasks, in row groups, each sorted by document_id.
A duplicate gets the row of the first document with the same text.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model import files
from precis.model.quality.fallback import (
    ABSTRACTIVE,
    SOURCE,
    FallbackConfig,
    rejects,
)
from precis.pipelines.accounts import source_counts
from precis.pipelines.dead_letters import DeadLetter, LetterFile
from precis.pipelines.duplicate_rows import RowFinder, copy_rows, name_first
from precis.pipelines.job import TASKS_FOLDER, Job
from precis.pipelines.pieces import KINDS, piece_schema, read_piece
from precis.pipelines.progress import TaskProgress
from precis.pipelines.result_files import DATA_FOLDER
from precis.pipelines.summarize_task import SummaryFigures
from precis.pipelines.tasks import TaskReport, TaskResult, describe_file

STEP = "publish"
# Rows of a row group are sorted by them, which makes page statistics narrow.
SORT_KEY = ("document_id", "document_id_repeat")
_MB = 1 << 20


class PartTask(NamedTuple):
    """A task of the step.

    Attributes:
      number: position among the parts.
      parts: how many parts there are.
      pieces: the tasks whose pieces it holds.
    """

    number: int
    parts: int
    pieces: tuple[int, ...]


class PartFigures(NamedTuple):
    """What a part reports.

    Attributes:
      rows_by_source: the rows of the part by source file, counted in what was written.
      summary_methods: rows by the method of the summary that is shown.
      quality_flags: rows by each of the flags of the summary that is shown.
      fallbacks: rows whose abstractive summary is not shown, by each of the flags that
          it was held back for.
    """

    rows_by_source: dict[str, int]
    summary_methods: dict[str, int]
    quality_flags: dict[str, int]
    fallbacks: dict[str, int]

    @classmethod
    def from_json(cls, content: Any) -> "PartFigures":
        """The figures of a receipt."""
        return cls(**content)


def plan_parts(
    reports: Iterable[TaskReport[SummaryFigures]], job: Job, *, target_bytes: int
) -> list[PartTask]:
    """Puts consecutive tasks together until their pieces are large enough for a part.

    Parts that an interrupted run made of other pieces are made anew.

    Args:
      reports: of the step before, in any order.
      job: the job.
      target_bytes: about the size of a part.
    """
    reports = sorted(reports, key=lambda report: report.task)
    _forget_other_parts(job, [report.files for report in reports])
    return group_pieces(reports, target_bytes=target_bytes)


def group_pieces(
    reports: Sequence[TaskReport[SummaryFigures]], *, target_bytes: int
) -> list[PartTask]:
    """The parts of pieces, in order.

    Args:
      reports: of the step before, by task.
      target_bytes: about the size of a part.
    """
    groups: list[list[int]] = []
    size = target_bytes
    for report in reports:
        piece_bytes = _piece_bytes(report)
        if not piece_bytes:
            continue
        if size + piece_bytes > target_bytes:
            groups.append([])
            size = 0
        groups[-1].append(report.task)
        size += piece_bytes
    return [
        PartTask(number, len(groups), tuple(group))
        for number, group in enumerate(groups)
    ]


def _forget_other_parts(job: Job, pieces: Sequence[Any]) -> None:
    """Removes the receipts of parts, and the parts, that were made of other pieces."""
    folder = files.join(job.output, TASKS_FOLDER)
    path = files.join(folder, "pieces.json")
    digest = files.sha256_json(pieces)
    if files.exists(path) and files.read_json(path) != digest:
        for receipt in files.glob(files.join(folder, STEP, "*.json")):
            for file in files.read_json(receipt)["files"]:
                files.remove(
                    files.path_within(job.output, file["file"], listed_in=receipt)
                )
        files.remove(files.join(folder, STEP))
    files.write_json(path, digest)


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
    return size + rows["duplicates"] * (size // own if own else _MB // 256)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartSettings:
    """What the step needs.

    Attributes:
      schema: of the rows.
      row_group_bytes: about the size of a row group in memory.
      fallback: which flags hold an abstractive summary back.
      footer: facts about the run, for the metadata of the files.
    """

    schema: Any
    row_group_bytes: int
    fallback: FallbackConfig
    footer: dict[str, str]


class PartWorker:
    """Writes one part."""

    def __init__(self, job: Job, settings: PartSettings) -> None:
        self._job = job
        self._settings = settings

    def progress_size(self, task: PartTask) -> int:
        """The step is not shown: it takes a small part of the time."""
        del task
        return 0

    def load(self) -> None:
        """Nothing is to be loaded."""

    def close(self) -> None:
        """Nothing is to be given back."""

    def run(
        self, task: PartTask, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[PartFigures]:
        """Writes the part of some pieces."""
        del progress
        name = files.join(DATA_FOLDER, self._name(task))
        rows = _PartRows(task, self._job, self._settings, letters)
        count = write_sorted(
            files.join(self._job.output, name), rows.tables(), self._settings
        )
        published = []
        if count:
            published.append(describe_file(self._job.output, name, rows=count))
        return TaskResult(
            sources=source_counts(**rows.moved),
            counts={"truncated": rows.truncated},
            files=published,
            figures=PartFigures(
                dict(rows.sources),
                dict(rows.methods),
                dict(rows.flags),
                dict(rows.fallbacks),
            ),
        )

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
    """

    def __init__(
        self, task: PartTask, job: Job, settings: PartSettings, letters: LetterFile
    ) -> None:
        self.moved: dict[str, Counter[str]] = {
            "duplicates": Counter(),
            "written": Counter(),
        }
        self.sources: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()
        self.truncated = 0
        self._pieces = task.pieces
        self._output = job.output
        self._schema = settings.schema
        self._fallback = settings.fallback
        self._letters = letters
        self._finder = RowFinder(job.output)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in the order of the corpus but for reused ones and duplicates."""
        for piece in self._pieces:
            for rows in self._piece_rows(piece):
                named = name_first(rows, self._finder)
                self.moved["duplicates"].subtract(named.without_first)
                self.moved["written"].update(named.without_first)
                self._count_all(rows)
                yield named.rows.select(self._schema.names)

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
            yield from read_piece(self._output, piece, kind)
        for duplicates in read_piece(self._output, piece, "duplicates"):
            copied = copy_rows(duplicates, self._finder, piece_schema(self._schema))
            for lost in copied.lost:
                self.moved["duplicates"][lost["source_file"]] -= 1
                self._letters.write(_lost_letter(lost))
            if copied.rows.num_rows:
                yield copied.rows


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


def write_sorted(path: str, tables: Iterable[pa.Table], settings: PartSettings) -> int:
    """Writes a Parquet file, and publishes it when it is complete.

    Equal rows give equal bytes. Without rows there is no file.

    Returns:
      The number of rows.
    """
    schema = settings.schema.with_metadata(
        {**settings.schema.metadata, **settings.footer}
    )
    order = [pq.SortingColumn(schema.get_field_index(name)) for name in SORT_KEY]
    rows = 0
    groups = _row_groups(tables, settings.row_group_bytes)
    first = next(groups, None)
    if first is None:
        return 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_compliant_nested_type=True,
            sorting_columns=order,
            write_page_index=True,
            write_page_checksum=True,
        ) as writer,
    ):
        for group in _chain(first, groups):
            table = group.sort_by([(name, "ascending") for name in SORT_KEY])
            writer.write_table(
                table.replace_schema_metadata(schema.metadata),
                row_group_size=table.num_rows,
            )
            rows += table.num_rows
    return rows


def _chain(first: pa.Table, others: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from others


def _row_groups(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Joins tables until they are large enough for a row group."""
    waiting: list[pa.Table] = []
    waiting_bytes = 0
    for table in tables:
        if not table.num_rows:
            continue
        waiting.append(table)
        waiting_bytes += table.nbytes
        if waiting_bytes >= size:
            yield pa.concat_tables(waiting)
            waiting = []
            waiting_bytes = 0
    if waiting:
        yield pa.concat_tables(waiting)
