"""`arrow:GLOB`: Arrow files, as `datasets` and Feather write them, cut by batch.

A file in the stream format can only be read from its beginning, so one task reads it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.corpus import arrow_rows, listing
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import CorpusFile, Place, ReadRecord, Task, unread

_FILE_FORMAT = b"ARROW1"


def list_tasks(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[Task]:
    """Groups batches into tasks of about `task_bytes`; unreadable files get tasks too.

    Raises:
      UsageError: no file is an Arrow file, or a file lacks a field that is needed.
    """
    return arrow_rows.list_tasks(corpus_files, options, "arrow", _read_head)


def _read_head(
    opened: IO[bytes], file: CorpusFile, options: CorpusOptions
) -> arrow_rows.Head:
    try:
        reader = _open(opened)
    except pa.ArrowNotImplementedError as error:
        raise UsageError(
            f"{file.path} cannot be read, not even its other columns: {error}; "
            "write the file again without this column, or with it as a string"
        ) from error
    edges = [0, -1]
    if isinstance(reader, pa.RecordBatchFileReader):
        batches = reader.num_record_batches
        pieces = min(batches, -(-file.size_bytes // options.task_bytes))
        edges = listing.cut_range(batches, pieces) if batches else []
    size = file.size_bytes // max(len(edges) - 1, 1)
    return reader.schema, [(*edge, size) for edge in itertools.pairwise(edges)]


def _open(opened: IO[bytes], included: list[int] | None = None) -> Any:
    """The reader of a file, of the columns with these indices, by default of all."""
    opened.seek(0)
    is_file = opened.read(len(_FILE_FORMAT)) == _FILE_FORMAT
    opened.seek(0)
    open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
    return open_reader(opened, options=pa.ipc.IpcReadOptions(included_fields=included))


def _check(batch: pa.RecordBatch) -> None:
    """Checks the offsets of a batch, because reading damaged ones ends the process.

    Raises:
      ArrowInvalid: the batch is damaged.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        # UTF-8 is checked last, and an invalid text costs only its row.
        if "UTF8" not in str(error):
            raise


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task; after damage, the rest of its batches are lost."""
    path, number = task.paths[0], task.start
    with open_source(path) as opened:
        schema = _open(opened).schema
        columns = arrow_rows.columns_of(schema, task.fields)
        needed = [f"{column}." for column in columns.values()]
        included = [
            index
            for index, name in enumerate(schema.names)
            if any(column.startswith(f"{name}.") for column in needed)
        ]
        reader = _open(opened, included)
        try:
            batches: Iterable[pa.RecordBatch] = reader
            if isinstance(reader, pa.RecordBatchFileReader):
                batches = map(reader.get_batch, range(task.start, task.stop))
            for batch in batches:
                _check(batch)
                share = (number + 1 - task.start) / (task.stop - task.start)
                if task.stop == -1:
                    share = min(opened.tell() / max(task.size_bytes, 1), 1.0)
                position = f"batch {number} row"
                for content, raw in arrow_rows.read_batch(
                    batch, columns, task, options, position
                ):
                    yield ReadRecord(content, share, raw)
                number += 1
        except (pa.ArrowInvalid, OSError) as error:
            if not is_damage(error):
                raise
            detail = f"the file is damaged from batch {number} on: {error}"
            letter = unread(Place(path, f"batch {number}"), "broken_arrow", detail)
            yield ReadRecord(letter, 1.0)
