"""`tfds:NAME[:SPLIT]`: data sets that TensorFlow Datasets (TFDS) prepared.

TFDS lists the files and decodes the examples; TensorFlow is not imported.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.example import read_frames
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Place, ReadRecord, Task, unread

_VERSION = re.compile(r"(.+)/(\d+\.\d+\.\d+)")
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
      UsageError: the data set, split or feature does not exist, or the files have
          another format than TFRecord.
    """
    name, _, split = where.partition(":")
    builder = _builder(name, options.data_dir)
    features, folder = builder.info.features, str(builder.data_dir)
    records.check_record_fields(sorted(features), options.required_fields, folder)
    fields = options.typed_fields(lambda field: feature_kind(features[field]))
    if builder.info.file_format.value != "tfrecord":
        raise UsageError(
            f"{folder} has the format {builder.info.file_format.value}; "
            "prepare it again with file_format='tfrecord'"
        )
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
            pieces = min(count, -(-file.size_bytes // options.task_bytes))
            for start, stop in itertools.pairwise(listing.cut_range(count, pieces)):
                size = file.size_bytes * (stop - start) // count
                task = listing.range_task(file, start, stop, size, fields)
                tasks.append(task._replace(split=split))
    return tasks


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

    If a shard is damaged, its records from there onwards are lost. Each task reports
    the lost records of its range.
    """
    (path,) = task.paths
    features = tfds.features.FeaturesDict.from_config(path.rpartition("/")[0])
    with open_source(path) as file:
        frames = read_frames(file, name=path)
        for index in range(task.stop):
            try:
                frame = next(frames, None)
            except DataError:
                frame = None
            if frame is None:
                lost = range(max(index, task.start), task.stop)
                detail = (
                    f"the shard is damaged or ends at record {index}; "
                    f"records {lost[0]} to {lost[-1]} are lost"
                )
                place = Place(path, f"record {lost[0]}")
                letter = unread(place, "broken_shard", detail, records=len(lost))
                yield ReadRecord(letter, 1.0)
                return
            if index >= task.start:
                place = Place(path, f"record {index}")
                content = _to_document(frame, features, task, place, options)
                share = (index + 1 - task.start) / (task.stop - task.start)
                yield ReadRecord(content, share, frame)


def _to_document(
    frame: bytes, features: Any, task: Task, place: Place, options: CorpusOptions
) -> Any:
    if len(frame) > options.max_record_bytes:
        return records.too_large(len(frame), options.max_record_bytes, place)
    example = features.deserialize_example_np(frame)
    names = task.fields.names & example.keys()
    try:
        record = {name: _plain(example[name]) for name in names}
    except UnicodeDecodeError as error:
        return records.undecodable(error, "a feature", place)
    return records.to_document(record, task.fields, place)


def _plain(value: Any) -> Any:
    """The Python value of a feature: a string for text, a number for a number."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if getattr(value, "ndim", None) == 0 else value
