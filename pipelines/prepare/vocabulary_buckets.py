"""The buckets of the first pass of `precis prepare`: content hashes and word counts.

    _tasks/scanned/00003   of a task: group b holds the hashes of bucket b, group
                           buckets + b the words of bucket b
    _tasks/merged/00007    of a bucket of hashes: the records of each task whose article
                           stands earlier in the corpus
    _tasks/merged/00012    of a bucket of words: the counts of the most frequent words

A process holds one bucket at a time, so memory does not grow with the corpus.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.tokenization import vocabulary
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.prepare.keyed_arrays import read_group, write_groups
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import describe_file

WORD_BUCKETS = 32  # pieces that word counts are summed in, apart from each other
HASH_BYTES = 16
# One document's content hash and where it stands.
PLACE = np.dtype([("hash", f"S{HASH_BYTES}"), ("task", "<i4"), ("record", "<i4")])
_RECORD = np.dtype("<i4")
_BYTES = np.dtype("u1")  # of word counts as JSON


class ScanFigures(NamedTuple):
    """What the steps report.

    Attributes:
      documents: that were read; 0 for the step `merge`.
    """

    documents: int = 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ScanFigures":
        """The figures of a receipt."""
        return cls(content.get("documents", 0))


class BucketTask(NamedTuple):
    """A task of the step `merge`.

    Attributes:
      number: that of the bucket: first those of hashes, then those of words.
    """

    number: int


def scanned_path(output: str, task: int) -> str:
    """Where the hashes and word counts of a task lie while the job runs."""
    return files.join(output, TASKS_FOLDER, "scanned", f"{task:05d}")


def merged_path(output: str, bucket: int) -> str:
    """Where the result of a bucket lies while the job runs."""
    return files.join(output, TASKS_FOLDER, "merged", f"{bucket:05d}")


def publish_groups(
    job: Job, path: str, groups: Mapping[int, np.ndarray], *, documents: int = 0
) -> TaskResult[ScanFigures]:
    """Publishes the file of a task; it accounts for no records."""
    write_groups(path, groups)
    name = path.removeprefix(files.join(job.output, ""))
    described = describe_file(job.output, name, rows=0)
    return TaskResult(source_counts(), [described], ScanFigures(documents))


class MergeWorker(TaskWorker):
    """Merges one bucket of all tasks."""

    def __init__(self, job: Job, *, buckets: int) -> None:
        self._job = job
        self._buckets = buckets

    def progress_size(self, task: BucketTask) -> int:
        """The step is not shown."""
        del task
        return 0

    def run(
        self, task: BucketTask, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[ScanFigures]:
        """Writes the duplicates, or the most frequent words, of a bucket."""
        del progress, letters
        if task.number < self._buckets:
            groups = find_duplicates(
                np.concatenate(list(self._read(task.number, PLACE)))
            )
        else:
            counts = map(unpack_words, self._read(task.number, _BYTES))
            words = vocabulary.most_frequent(vocabulary.merge_counts(counts))
            groups = {0: pack_words(words)}
        return publish_groups(
            self._job, merged_path(self._job.output, task.number), groups
        )

    def _read(self, group: int, dtype: np.dtype) -> Iterator[np.ndarray]:
        """A group of the files of all tasks."""
        for task in range(self._job.tasks):
            yield read_group(scanned_path(self._job.output, task), group, dtype)


def word_buckets(words: Mapping[str, int]) -> list[dict[str, int]]:
    """Word counts, cut into buckets by the hash of the word."""
    buckets: list[dict[str, int]] = [{} for _ in range(WORD_BUCKETS)]
    for word, count in words.items():
        digest = hashlib.md5(word.encode(), usedforsecurity=False).digest()
        buckets[digest[0] % WORD_BUCKETS][word] = count
    return buckets


def pack_words(counts: Mapping[str, int]) -> np.ndarray:
    """Word counts as the records of a group."""
    content = json.dumps(counts, ensure_ascii=False).encode() if counts else b""
    return np.frombuffer(content, _BYTES)


def unpack_words(content: np.ndarray) -> dict[str, int]:
    """The word counts of a group."""
    return json.loads(content.tobytes()) if len(content) else {}


def hash_groups(places: np.ndarray, buckets: int) -> dict[int, np.ndarray]:
    """`PLACE` records by the bucket of their hash."""
    # The first bytes of a hash are spread evenly.
    leading = places["hash"].astype("S4").view(">u4")
    numbers = leading % buckets
    return {number: places[numbers == number] for number in np.unique(numbers).tolist()}


def find_duplicates(places: np.ndarray) -> dict[int, np.ndarray]:
    """The records of one bucket of hashes whose article stands earlier in the corpus.

    Args:
      places: the `PLACE` records of the bucket, in any order.

    Returns:
      For each task with duplicates the positions of those records.
    """
    places = places[np.lexsort((places["record"], places["task"], places["hash"]))]
    repeated = places[1:][places["hash"][1:] == places["hash"][:-1]]
    repeated = repeated[np.lexsort((repeated["record"], repeated["task"]))]
    numbers, starts = np.unique(repeated["task"], return_index=True)
    records = np.split(repeated["record"], starts[1:])
    return dict(zip(numbers.tolist(), records, strict=False))


def read_duplicates(output: str, task: int, *, buckets: int) -> set[int]:
    """The records of a task whose article stands earlier in the corpus.

    Raises:
      DataError: a file of the pass is damaged.
    """
    return {
        record
        for bucket in range(buckets)
        for record in read_group(merged_path(output, bucket), task, _RECORD).tolist()
    }


def read_words(output: str, *, buckets: int) -> Iterator[dict[str, int]]:
    """The most frequent words of each bucket of words, with their counts.

    No word is in two buckets.

    Raises:
      DataError: a file of the pass is damaged.
    """
    for bucket in range(buckets, buckets + WORD_BUCKETS):
        yield unpack_words(read_group(merged_path(output, bucket), 0, _BYTES))
