"""`tfds:NAME[:SPLIT]`: data sets that TensorFlow Datasets has prepared, read without
importing TensorFlow.

TFDS itself is asked only where the files are and how an example is laid out.
"""

import itertools
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow_datasets as tfds

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.tfrecord import read_frames
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import MAX_RAW_BYTES
from precis.pipelines.corpus.listing import cut_range, list_files
from precis.pipelines.corpus.records import check_fields, to_document
from precis.pipelines.corpus.task import Fields, Task, Unreadable

_URL_LISTS = {
    "train_urls": "all_train.txt",
    "val_urls": "all_val.txt",
    "test_urls": "all_test.txt",
}
_STORIES = ("cnn/stories", "dailymail/stories")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
# Asked before a download: offline, TFDS itself tries for minutes before it gives up.
_PROBE_URLS = {"cnn_dailymail": "https://drive.google.com"}
_PROBE_URL = "https://storage.googleapis.com"
_PROBE_SECONDS = 5


def list_tasks(
    where: str,
    *,
    fields: Fields,
    needed: tuple[str, ...],
    split: str,
    data_dir: str,
    task_bytes: int,
) -> list[Task]:
    """Ranges of records of the shards, about `task_bytes` each. A data set that is not
    there is downloaded.

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
            f"tfds:{where} names one split and --split {split} another; give one of the two"
        )
    builder = _prepared_builder(name, data_dir)
    check_fields(
        sorted(builder.info.features), needed=needed, path=str(builder.data_dir)
    )
    if builder.info.file_format.value != "tfrecord":
        raise UsageError(
            f"{builder.data_dir} is kept as {builder.info.file_format.value}; prepare it again with file_format='tfrecord'"
        )
    wanted = split or named_split
    if wanted and wanted not in builder.info.splits:
        raise UsageError(
            f"tfds:{name} has no split {wanted!r}; it has {', '.join(builder.info.splits)}"
        )
    tasks: list[Task] = []
    for split_name in [wanted] if wanted else list(builder.info.splits):
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


def _shard_tasks(
    path: str, records: int, *, split: str, fields: Fields, task_bytes: int
) -> Iterator[Task]:
    if not records:
        return
    (file,) = list_files(path)
    edges = cut_range(records, min(records, -(-file.size_bytes // task_bytes)))
    for start, stop in itertools.pairwise(edges):
        size = file.size_bytes * (stop - start) // records
        yield Task(
            0,
            "tfds",
            (path,),
            start,
            stop,
            split=split,
            fields=fields,
            version=file.version,
            size_bytes=size,
        )


def read(task: Task) -> Iterator[Document | Unreadable]:
    """The documents of a task. Damage costs the records of the shard from there on;
    each task tells those that it lost.
    """
    (path,) = task.paths
    features = tfds.core.features.FeaturesDict.from_config(path.rpartition("/")[0])
    with files.open_read(path) as file:
        frames = read_frames(file, name=path)
        for index in itertools.count():
            if index == task.stop:
                return
            try:
                frame = next(frames, None)
            except DataError:
                frame = None
            if frame is None:
                first = max(index, task.start)
                detail = f"the shard is damaged or ends at record {index}; records {first} to {task.stop - 1} are lost"
                yield Unreadable(
                    f"{path}:record {first}",
                    "broken_shard",
                    detail,
                    b"",
                    task.stop - first,
                )
                return
            if index >= task.start:
                yield _to_document(
                    frame, features, task.fields, location=f"{path}:record {index}"
                )


def _to_document(
    frame: bytes, features: Any, fields: Fields, *, location: str
) -> Document | Unreadable:
    example = features.deserialize_example_np(frame)
    try:
        record = {
            name: _text(value) for name, value in example.items() if name in fields
        }
    except UnicodeDecodeError as error:
        return Unreadable(
            location,
            "invalid_utf8",
            f"byte {error.start} of a feature: {error.reason}",
            frame[:MAX_RAW_BYTES],
        )
    return to_document(record, fields, location=location, raw=frame)


def _text(value: Any) -> Any:
    """A feature as Python has it: text as a string, a number as a number."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _prepared_builder(name: str, data_dir: str) -> Any:
    """The builder of a data set that is there, after a download where it was not."""
    path, _, last = name.rpartition("/")
    set_name, version = (path, last) if _VERSION.fullmatch(last) else (name, None)
    try:
        builder = tfds.builder(set_name, version=version, data_dir=data_dir or None)
    except (tfds.core.DatasetNotFoundError, AssertionError, ValueError) as error:
        raise UsageError(
            f"tfds:{name} is no data set that TensorFlow Datasets knows: {str(error).splitlines()[0]}"
        ) from error
    if builder.is_prepared():
        return builder
    problem = _unreachable(_PROBE_URLS.get(builder.name, _PROBE_URL))
    if not problem:
        try:
            builder.download_and_prepare()
        except Exception as error:  # Downloads fail in every way there is.
            problem = f"the download failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if problem:
        raw = (
            " or prepare it from raw stories with --stories_dir and --urls_dir"
            if builder.name == "cnn_dailymail"
            else ""
        )
        raise UsageError(
            f"tfds:{name} is not prepared in {builder.data_dir} and cannot be downloaded ({problem}); "
            f"copy a prepared data_dir there and name it with --data_dir,{raw or ' or run again where there is a network'}"
        )
    return builder


def _unreachable(url: str) -> str:
    """Why a host does not answer within seconds, or "" where it does."""
    answers: list[str] = []

    def ask() -> None:
        try:
            urllib.request.urlopen(
                urllib.request.Request(url, method="HEAD"), timeout=_PROBE_SECONDS
            ).close()
            answers.append("")
        except urllib.error.HTTPError:
            answers.append("")  # Even a refusal is an answer.
        except OSError as error:
            answers.append(f"{url} does not answer: {error}")

    # In a thread of its own because the look-up of a name knows no time limit.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PROBE_SECONDS)
    return answers[0] if answers else f"{url} does not answer"


def prepare_from_stories(stories_dir: str, urls_dir: str, data_dir: str) -> str:
    """Prepares cnn_dailymail from raw stories by TFDS's own builder, where it is not
    prepared yet.

    Args:
      stories_dir: holds `cnn/stories` and `dailymail/stories`.
      urls_dir: holds `all_train.txt`, `all_val.txt` and `all_test.txt`; the sha1 of a
          URL is the name of its story.
      data_dir: where TFDS keeps its data sets; "" for its default.

    Returns:
      The folder of the prepared data set.

    Raises:
      UsageError: a folder or a list is not there.
    """
    for needed in [files.join(stories_dir, name) for name in _STORIES] + [
        files.join(urls_dir, name) for name in _URL_LISTS.values()
    ]:
        if not files.exists(needed):
            raise UsageError(
                f"{needed} is missing; --stories_dir holds {' and '.join(_STORIES)}, --urls_dir {', '.join(_URL_LISTS.values())}"
            )
    given = {"cnn_stories": stories_dir, "dm_stories": stories_dir}
    given.update({key: files.join(urls_dir, name) for key, name in _URL_LISTS.items()})
    builder = _story_builder(given)(data_dir=data_dir or None)
    builder.download_and_prepare()  # does nothing where the data set is there
    return str(builder.data_dir)


class _GivenFiles:
    """Answers the builder's call for downloads with files that are there."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = given

    def download_and_extract(self, urls: Mapping[str, str]) -> dict[str, str]:
        return {key: self.given[key] for key in urls}


def _story_builder(given: Mapping[str, str]) -> Any:
    upstream = tfds.builder_cls("cnn_dailymail")
    # TFDS names a data set after its class and would refuse a second class of the name.
    with tfds.core.registered.skip_registration():

        class CnnDailymail(upstream):  # type: ignore[misc,valid-type]
            def _split_generators(self, dl_manager: Any) -> Any:
                return super()._split_generators(_GivenFiles(given))

    return CnnDailymail
