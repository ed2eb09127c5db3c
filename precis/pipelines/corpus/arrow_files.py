"""`arrow:GLOB`: Arrow files, as `datasets` and Feather write them, cut by batch.

A file in the stream format can only be read from its beginning, so one task reads it.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa

from precis.model.errors import UsageError
from precis.pipelines.corpus import arrow_rows, listing, records
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.formats import describe_format
from precis.pipelines.corpus.opening import UNREADABLE, open_source
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
    tasks: list[Task] = []
    unreadable = []
    forms: dict[tuple[str, ...], str] = {}
    for file in corpus_files:
        try:
            with open_source(file.path) as opened:
                reader = _open(opened)
                schema = reader.schema
                batches = getattr(reader, "num_record_batches", None)
        except pa.ArrowNotImplementedError as error:
            raise UsageError(
                f"{file.path} cannot be read, not even its other columns: {error}; "
                "write the file again without this column, or with it as a string"
            ) from error
        except (pa.ArrowInvalid, OSError) as error:
            if not is_damage(error):
                raise
            other = describe_format(file.path, "arrow", options)
            detail = f"it is {other}" if other else f"{str(error).splitlines()[0]}"
            unreadable.append(file._replace(problem=UNREADABLE, detail=detail))
            continue
        types = arrow_rows.checked_types(file.path, schema, options)
        kinds = {name: arrow_rows.kind_of(types[name]) for name in types}
        forms.setdefault(records.main_kinds(kinds, options.fields), file.path)
        fields = options.typed_fields(kinds.__getitem__)
        edges = [0, -1]
        if batches is not None:
            pieces = min(batches, -(-file.size_bytes // options.task_bytes))
            edges = listing.cut_range(batches, pieces) if batches else []
        for start, stop in itertools.pairwise(edges):
            size = file.size_bytes // (len(edges) - 1)
            tasks.append(listing.range_task(file, start, stop, size, fields))
    if unreadable and len(unreadable) == len(corpus_files):
        file = unreadable[0]
        raise UsageError(
            f"{file.path} cannot be read as Arrow: {file.detail}; name complete files "
            "in the stream or file format of Arrow"
        )
    records.note_mixed_files(forms, options.fields)
    return [*tasks, *listing.unreadable_tasks(unreadable)]


def _open(opened: IO[bytes], names: Sequence[str] | None = None) -> Any:
    """The reader of a file.

    Args:
      opened: the file.
      names: the columns to read; by default all.
    """
    opened.seek(0)
    is_file = opened.read(len(_FILE_FORMAT)) == _FILE_FORMAT
    open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
    opened.seek(0)
    reader = open_reader(opened)
    if names is None:
        return reader
    found = [index for index, name in enumerate(reader.schema.names) if name in names]
    opened.seek(0)
    return open_reader(opened, options=pa.ipc.IpcReadOptions(included_fields=found))


def _batches(reader: Any, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return (reader.get_batch(number) for number in range(start, stop))
    return iter(reader)


def _check(batch: pa.RecordBatch) -> None:
    """Checks the offsets of a batch, because reading damaged ones ends the process.

    Raises:
      ArrowInvalid: the batch is damaged.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):  # It costs a row alone, and is checked last.
            raise


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task; after damage, the rest of its batches are lost."""
    path, number = task.paths[0], task.start
    with open_source(path) as opened:
        schema = _open(opened).schema
        columns = arrow_rows.columns_of(schema, task.fields)
        names = [
            name
            for name in schema.names
            if any(f"{column}.".startswith(f"{name}.") for column in columns.values())
        ]
        try:
            for batch in _batches(_open(opened, names), task.start, task.stop):
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
