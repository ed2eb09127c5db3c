"""`tfds:NAME[:SPLIT]`: data sets that TensorFlow Datasets (TFDS) prepared.

TFDS lists the files and decodes the examples; TensorFlow is not imported. A shard holds
serialized examples in one of these formats:

    tfrecord        read from its beginning; records after damage are lost
    array_record    damage costs its record alone
    parquet         one binary column; damage costs the rest of its row group
"""

import contextlib
import importlib.util
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow_datasets as tfds
from google.protobuf.message import DecodeError

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.example import read_frames
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.compression import is_damage
from precis.pipelines.corpus.opening import local_name, open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import CorpusFile, Place, ReadRecord, Task, unread

_VERSION = re.compile(r"(.+)/(\d+\.\d+\.\d+)")
_BATCH_ROWS = 256
# The reason for records that are lost to damage.
_BROKEN = "broken_shard"
# The errors of TFDS for bytes that are not an example, and for None.
_NO_EXAMPLE = (DecodeError, LookupError, RuntimeError, TypeError, ValueError)
# The types of kept fields, by the kind of NumPy type.
_KINDS = dict(
    i="int64", u="int64", O="string", S="string", U="string", f="double", b="bool"
)


def list_tasks(where: str, options: CorpusOptions) -> list[Task]:
    """Cuts the shards into ranges of records of about `task_bytes`.

    Args:
      where: `cnn_dailymail`, `cnn_dailymail:test` or `cnn_dailymail/3.4.0:test`.
      options: how to read the data set.

    Raises:
      UsageError: the data set, split or feature does not exist, or its files cannot be
          read.
    """
    name, _, split = where.partition(":")
    builder = _builder(name, options.data_dir)
    features, folder = builder.info.features, str(builder.data_dir)
    needed = options.required_fields
    records.check_record_fields(sorted(features), needed, options.fields, folder)
    fields = options.typed_fields(lambda field: feature_kind(features[field]))
    kind = _check_format(builder.info.file_format.value, folder)
    splits = list(builder.info.splits)
    for only in filter(None, (split, options.split)):
        if only not in splits:
            raise UsageError(
                f"tfds:{name} has no split {only!r}; it has {', '.join(splits)}"
            )
        splits = [only]
    tasks = []
    for split in splits:
        info = builder.info.splits[split]
        for shard, count in zip(info.filenames, info.shard_lengths, strict=True):
            if not count:
                continue
            (file,) = listing.list_files(files.join(folder, shard))
            if kind == "parquet":
                _check_rows(file, count)
            pieces = min(count, -(-file.size_bytes // options.task_bytes))
            for start, stop in itertools.pairwise(listing.cut_range(count, pieces)):
                size = file.size_bytes * (stop - start) // count
                task = listing.range_task(file, start, stop, size, fields)
                tasks.append(task._replace(split=split, dialect=(kind,)))
    return tasks


def _check_format(kind: str, folder: str) -> str:
    """Checks that the shards of a format can be read; returns the format.

    Raises:
      UsageError: they cannot.
    """
    reason = ""
    if kind not in _READERS:
        reason = f"the format {kind}, which precis does not read"
    elif kind == "array_record" and not files.is_local(folder):
        reason = "the format array_record, which is only read from a local disk"
    elif kind == "array_record" and not importlib.util.find_spec(kind):
        reason = "the format array_record, and the package array_record is missing"
    if reason:
        raise UsageError(
            f"{folder} has {reason}; prepare it again with file_format='tfrecord'"
        )
    return kind


def _check_rows(file: CorpusFile, count: int) -> None:
    """Checks that a Parquet shard has all its examples: TFDS 4.9 leaves out most of
    them if there are more than 100. A damaged shard is not checked.

    Raises:
      UsageError: examples are missing.
    """
    with (
        contextlib.suppress(pa.ArrowInvalid, OSError),
        open_source(file.path) as opened,
    ):
        rows = pq.read_metadata(opened).num_rows
        if rows < count:
            raise UsageError(
                f"{file.path} has {rows:,} of the {count:,} examples that TensorFlow "
                "Datasets counted, which it does not write to Parquet; prepare it "
                "again with file_format='array_record'"
            )


def _builder(name: str, data_dir: str) -> Any:
    """The TFDS builder of a prepared data set.

    Raises:
      UsageError: the data set does not exist or is not prepared.
    """
    match = _VERSION.fullmatch(name)
    set_name, version = match.groups() if match else (name, None)
    try:
        builder = tfds.builder(set_name, version=version, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, AssertionError, ValueError) as error:
        raise UsageError(
            f"tfds:{name} is unknown to TensorFlow Datasets: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if not builder.is_prepared():
        raise UsageError(
            f"tfds:{name} is not prepared in {builder.data_dir}; prepare it with "
            f"`tfds build {name}`, or name the folder that holds it with --data_dir"
        )
    return builder


def feature_kind(feature: Any) -> str:
    """The type of a kept field: text or a number, or else JSON."""
    dtype = getattr(feature, "np_dtype", None)
    is_single = getattr(feature, "shape", None) == () and dtype is not None
    return _KINDS.get(np.dtype(dtype).kind, "json") if is_single else "json"


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task.

    Records that are lost to damage have dead letters in the tasks of their ranges.
    """
    (path,) = task.paths
    features = tfds.features.FeaturesDict.from_config(path.rpartition("/")[0])
    end = 0
    for index, example in _READERS[task.dialect[0]](path, task.start):
        if index >= task.stop:
            break
        end = index + 1
        if index >= task.start:
            content = _to_document(
                example, features, task, Place(path, f"record {index}"), options
            )
            share = (end - task.start) / (task.stop - task.start)
            yield ReadRecord(content, share, example or b"")
    if end < task.stop:
        lost = range(max(end, task.start), task.stop)
        detail = (
            f"the shard is damaged or ends at record {end}; "
            f"records {lost[0]} to {lost[-1]} are lost"
        )
        place = Place(path, f"record {lost[0]}")
        letter = unread(place, _BROKEN, detail, records=len(lost))
        yield ReadRecord(letter, 1.0)


# A reader yields the positions and the examples of a shard, without an example for a
# damaged record. It may begin before the start, and end at damage.
_Examples = Iterator[tuple[int, bytes | None]]


def _read_tfrecord(path: str, start: int) -> _Examples:
    with open_source(path) as file, contextlib.suppress(DataError):
        yield from enumerate(read_frames(file, name=path))


def _read_array_record(path: str, start: int) -> _Examples:
    from array_record.python.array_record_module import ArrayRecordReader

    # Without these options, each task would read ahead, in threads.
    options = "readahead_buffer_size:0,max_parallelism:0"
    reader = ArrayRecordReader(local_name(path.removeprefix("file://")), options)
    # It is not closed, which would raise the error of a damaged record again.
    for index in range(start, reader.num_records()):
        try:
            (example,) = reader.read([index])
        except RuntimeError:
            example = None
        yield index, example


def _read_parquet(path: str, start: int) -> _Examples:
    with open_source(path) as file, _until_damage():
        parquet = pq.ParquetFile(file)
        first = 0
        for group in range(parquet.num_row_groups):
            end = first + parquet.metadata.row_group(group).num_rows
            if start < end:
                with _until_damage():
                    for batch in parquet.iter_batches(_BATCH_ROWS, [group], ["data"]):
                        yield from enumerate(batch.column(0).to_pylist(), first)
                        first += batch.num_rows
                yield from ((index, None) for index in range(first, end))
            first = end


@contextlib.contextmanager
def _until_damage() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if not is_damage(error):
            raise


_READERS = {
    "tfrecord": _read_tfrecord,
    "array_record": _read_array_record,
    "parquet": _read_parquet,
}


def _to_document(
    example: bytes | None,
    features: Any,
    task: Task,
    place: Place,
    options: CorpusOptions,
) -> Any:
    if example and len(example) > options.max_record_bytes:
        return records.too_large(len(example), options.max_record_bytes, place)
    try:
        values = features.deserialize_example_np(example)
    except _NO_EXAMPLE:
        return unread(place, _BROKEN, "the record is damaged")
    try:
        names = task.fields.names & values.keys()
        record = {name: _plain(values[name]) for name in names}
    except UnicodeDecodeError as error:
        return records.undecodable(error, "a feature", place)
    return records.to_document(record, task.fields, place)


def _plain(value: Any) -> Any:
    """The Python value of a feature: a string for text, a number for a number."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if getattr(value, "ndim", None) == 0 else value
