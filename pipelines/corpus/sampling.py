"""A sample of a corpus: small pieces from all over it, in an order that a seed decides.

tasks      |      0      |      1      |      2      |   as the job has them
pieces     | | | | | | | | | | | | | | | | | | | | | |   about 400
sample          5           11    14              20     a task that reads these
"""

import dataclasses
import random
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.packing import join_tasks
from precis.pipelines.corpus.selecting import drawn_documents
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import Task

_SEED = 20
_PIECES = 400
_LEAST_PIECE_BYTES = 4096
# Of a piece that cannot be cut smaller, such as a row group or a compressed file.
_PIECE_RECORDS = 64
# Files are read once more where the corpus is listed again in smaller pieces.
_SECONDS_TO_LIST_AGAIN = 5.0
_COUNTED_RECORDS = 4000
_COUNTING_SECONDS = 4.0
_LEAST_COUNTED_PIECES = 16


class CorpusSample(NamedTuple):
    """A listed corpus and the pieces to sample it by.

    Attributes:
      tasks: those of the job.
      pieces: small tasks, in the order in which they are taken. With `--sample` they
          take every record, so that they need not hold drawn ones.
      records: about how many the corpus has that the job takes: not those of another
          split, and with `--sample` the drawn ones.
      counted_records: how many were read to know that.
      piece_records: about how many of its split a piece has.
      listing_seconds: how long the listing of the job takes.
      skipping_seconds: in which the job reads the records that `--sample` left out,
          shared by its workers.
    """

    tasks: list[Task]
    pieces: list[Task]
    records: float
    counted_records: int
    piece_records: float
    listing_seconds: float
    skipping_seconds: float

    def sampled_tasks(self, records: float, number: int) -> list[Task]:
        """Tasks that read about so many records in all, each from many places.

        Args:
          records: of all tasks.
          number: of tasks; there may be more where documents have the split of their
            task.
        """
        count = max(1, min(len(self.pieces), round(records / self.piece_records)))
        by_split: dict[str, list[Task]] = {}
        for piece in self.pieces[:count]:
            by_split.setdefault(piece.split, []).append(piece)
        groups = [
            pieces[start::number]
            for pieces in by_split.values()
            for start in range(min(number, len(pieces)))
        ]
        return [
            join_tasks(pieces, number=position)
            for position, pieces in enumerate(groups)
        ]


class _Counted(NamedTuple):
    """What was read of a piece.

    Attributes:
      read: records.
      taken: those of the split that is asked for.
      size_bytes: how many bytes of the corpus they are.
    """

    read: int
    taken: int
    size_bytes: float


def sample_corpus(options: CorpusOptions) -> CorpusSample:
    """Lists a corpus and counts the records of some pieces.

    Raises:
      UsageError: nothing is there to read, or not what the options say.
      FileFailure: a file cannot be read.
    """
    started = time.monotonic()
    tasks = list_tasks(options)
    seconds = time.monotonic() - started
    pieces = _small_pieces(tasks, options, seconds)
    random.Random(_SEED).shuffle(pieces)
    counted = list(_count_records(pieces, options))
    taken = sum(piece.taken for piece in counted)
    size = sum(piece.size_bytes for piece in counted)
    all_records = taken / max(1.0, size) * sum(task.size_bytes for task in tasks)
    return CorpusSample(
        tasks=tasks,
        pieces=pieces,
        records=drawn_documents(tasks) if options.sample else all_records,
        counted_records=sum(piece.read for piece in counted),
        piece_records=max(1, taken) / max(1, len(counted)),
        listing_seconds=seconds,
        # The listing has read them too, to draw the sample.
        skipping_seconds=seconds if options.sample else 0.0,
    )


def _small_pieces(
    tasks: Sequence[Task], options: CorpusOptions, listing_seconds: float
) -> list[Task]:
    pieces = list(tasks)
    # Most of the time of a listing with `--sample` is that of the drawing.
    is_fast = bool(options.sample) or listing_seconds < _SECONDS_TO_LIST_AGAIN
    if options.sample:
        options = dataclasses.replace(options, sample=0)
        pieces = [task._replace(selected=None) for task in tasks]
    if len(tasks) < _PIECES and is_fast:
        size = sum(task.size_bytes for task in tasks)
        smaller = min(options.task_bytes, max(_LEAST_PIECE_BYTES, size // _PIECES))
        pieces = list_tasks(dataclasses.replace(options, task_bytes=smaller))
    return [
        piece._replace(max_records=_PIECE_RECORDS)
        for piece in pieces
        if piece.size_bytes
    ]


def _count_records(
    pieces: Sequence[Task], options: CorpusOptions
) -> Iterator[_Counted]:
    ends = time.monotonic() + _COUNTING_SECONDS
    total = 0
    for number, piece in enumerate(pieces):
        is_enough = total >= _COUNTED_RECORDS or time.monotonic() > ends
        if is_enough and number >= _LEAST_COUNTED_PIECES:
            return
        reader = read_task(join_tasks([piece]), options)
        taken = sum(1 for _ in reader)
        records = reader.read.total()
        share = reader.position.share if records >= piece.max_records else 1.0
        total += records
        yield _Counted(records, taken, share * piece.size_bytes)
