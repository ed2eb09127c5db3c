"""`tfds:NAME[:SPLIT]`: data sets prepared by TensorFlow Datasets (TFDS).

TFDS gives the paths of the files and decodes the examples. TensorFlow is not imported.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.tfrecord import read_frames
from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import with_kinds
from precis.pipelines.corpus.lines import MAX_RAW_BYTES
from precis.pipelines.corpus.listing import cut_range, list_files, range_task
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.records import (
    check_fields,
    invalid_utf8,
    to_document,
    too_large,
)
from precis.pipelines.corpus.task import (
    Fields,
    Place,
    ReadRecord,
    Task,
    Unreadable,
)
from precis.pipelines.corpus.tfds_prepare import prepared_builder

# The types of kept fields, by the kind of the features' NumPy types.
_KINDS = {
    **dict.fromkeys("iu", "int64"),
    **dict.fromkeys("OSU", "string"),
    "f": "double",
    "b": "bool",
}


def list_tasks(
    where: str,
    *,
    fields: Fields,
    needed: tuple[str, ...],
    split: str,
    data_dir: str,
    task_bytes: int,
) -> list[Task]:
    """Ranges of records of the shards, about `task_bytes` each.

    A data set that is not prepared is downloaded.

    Args:
      where: `cnn_dailymail`, `cnn_dailymail:test` or `cnn_dailymail/3.4.0:test`.
      fields: names of the features to read.
      needed: features that must be there.
      split: the only split to list, or "" for all.
      data_dir: where TFDS keeps its data sets; "" for its default.
      task_bytes: about the size of a task.

    Raises:
      UsageError: the data set, the split or a feature is not there, or the files have a
          format other than TFRecord.
    """
    name, _, named_split = where.partition(":")
    if split and named_split and split != named_split:
        raise UsageError(
            f"tfds:{where} names one split and --split {split} another; "
            "give one of the two"
        )
    builder = prepared_builder(name, data_dir)
    features = builder.info.features
    check_fields(sorted(features), needed=needed, path=str(builder.data_dir))
    kinds = {
        field.name: feature_kind(field.name, features[field.name])
        for field in fields.kept
        if not field.kind
    }
    fields = fields._replace(kept=with_kinds(fields.kept, kinds))
    if builder.info.file_format.value != "tfrecord":
        raise UsageError(
            f"{builder.data_dir} is kept as {builder.info.file_format.value}; "
            "prepare it again with file_format='tfrecord'"
        )
    tasks: list[Task] = []
    for split_name in _split_names(builder, name, split or named_split):
        info = builder.info.splits[split_name]
        for shard, records in zip(info.filenames, info.shard_lengths, strict=True):
            path = files.join(str(builder.data_dir), shard)
            tasks.extend(
                _shard_tasks(
                    path,
                    records,
                    split=split_name,
                    fields=fields,
                    task_bytes=task_bytes,
                )
            )
    return tasks


def feature_kind(name: str, feature: Any) -> str:
    """The type of a kept field.

    Raises:
      UsageError: the feature is no text and no single number.
    """
    dtype = getattr(feature, "np_dtype", None)
    code = getattr(np.dtype(dtype), "kind", "") if dtype is not None else ""
    if getattr(feature, "shape", None) == () and code in _KINDS:
        return _KINDS[code]
    raise UsageError(
        f"--keep_fields {name}: the feature is a {type(feature).__name__} and no "
        f"single value; write {name}:json to keep it as JSON"
    )


def _split_names(builder: Any, name: str, only_split: str) -> list[str]:
    """The splits of a data set, or only the split that is named."""
    names = list(builder.info.splits)
    if not only_split:
        return names
    if only_split not in names:
        raise UsageError(
            f"tfds:{name} has no split {only_split!r}; it has {', '.join(names)}"
        )
    return [only_split]


def _shard_tasks(
    path: str, records: int, *, split: str, fields: Fields, task_bytes: int
) -> Iterator[Task]:
    if not records:
        return
    (file,) = list_files(path)
    edges = cut_range(records, min(records, -(-file.size_bytes // task_bytes)))
    for start, stop in itertools.pairwise(edges):
        size_bytes = file.size_bytes * (stop - start) // records
        yield range_task(
            "tfds",
            file,
            start,
            stop,
            size_bytes=size_bytes,
            fields=fields,
            split=split,
        )


def read(task: Task, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task.

    Where a shard is damaged, its records from there on are lost. Each task reports the
    records of its own range.
    """
    (path,) = task.paths
    features = tfds.core.features.FeaturesDict.from_config(path.rpartition("/")[0])
    with open_source(path) as file:
        frames = read_frames(file, name=path)
        for index in itertools.count():
            if index == task.stop:
                return
            try:
                frame = next(frames, None)
            except DataError:
                frame = None
            if frame is None:
                yield ReadRecord(_lost_records(path, index, task), 1.0)
                return
            if index >= task.start:
                place = Place(path, f"record {index}")
                content: Document | Unreadable
                if len(frame) > max_record_bytes:
                    content = too_large(len(frame), max_record_bytes, place, frame)
                else:
                    content = _to_document(frame, features, task.fields, place)
                share = (index + 1 - task.start) / (task.stop - task.start)
                yield ReadRecord(content, share, frame[:MAX_RAW_BYTES])


def _lost_records(path: str, damaged: int, task: Task) -> Unreadable:
    first = max(damaged, task.start)
    detail = (
        f"the shard is damaged or ends at record {damaged}; "
        f"records {first} to {task.stop - 1} are lost"
    )
    place = Place(path, f"record {first}")
    return Unreadable(*place, "broken_shard", detail, b"", task.stop - first)


def _to_document(
    frame: bytes, features: Any, fields: Fields, place: Place
) -> Document | Unreadable:
    example = features.deserialize_example_np(frame)
    wanted = fields.names
    try:
        record = {
            name: _text(value) for name, value in example.items() if name in wanted
        }
    except UnicodeDecodeError as error:
        return invalid_utf8(error, "a feature", place=place, raw=frame)
    return to_document(record, fields, place=place, raw=frame)


def _text(value: Any) -> Any:
    """The Python value of a feature: a string for text, a number for a number."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if getattr(value, "ndim", None) == 0 else value
