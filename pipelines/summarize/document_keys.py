"""The keys of documents, by which equal texts and equal ids are found.

    scan   tasks of the corpus -> _tasks/keys/00003         keys of its documents
           parts of earlier runs -> _tasks/keys/run-00001   keys of their rows

A key stands in the group of its bucket, so that the next step (`join_keys`) holds the
keys of one bucket at a time and memory does not grow with the corpus.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import TaskReader, read_task
from precis.pipelines.corpus.task import FileFailure, Task
from precis.pipelines.engines.tasks import (
    Step,
    TaskResult,
    TaskWorker,
    read_receipt,
    receipt_path,
)
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.summarize.earlier_rows import EarlierPart, read_part_keys
from precis.pipelines.summarize.keyed_arrays import write_groups

# The steps that come after this one, by the names of their receipts.
LATER_STEPS = ("join", "infer", "publish")

# Some million keys of the shortest documents, a hundred thousand of the usual ones.
MOST_BUCKET_BYTES = 128 << 20
_BUCKET_ROWS = 500_000
MAX_BUCKETS = 1024

# Digests of 16 bytes, as two numbers that are sorted fast: of 10**9 documents two have
# the same by chance with a probability of 10**-21.
DIGEST = [("high", "<u8"), ("low", "<u8")]
# A document: its content, its text as it was read, and its place among the records of
# its task.
CONTENT_KEY = np.dtype([*DIGEST, ("text", "<u8"), ("record", "<i4")])
ID_KEY = np.dtype([*DIGEST, ("record", "<i4")])
# A row of an earlier run: its content, its offsets, and its place in its part.
ROW_KEY = np.dtype([*DIGEST, ("offsets", "<u8"), ("row", "<i4")])


class KeyTask(NamedTuple):
    """A task of the step: either one of the corpus, or a part of an earlier run.

    Attributes:
      number: first those of the corpus, under their own numbers, then the parts.
      corpus_task: what is read; None for a part.
      part: the part; None for a task of the corpus.
    """

    number: int
    corpus_task: Task | None
    part: EarlierPart | None


class KeyFigures(NamedTuple):
    """What the step reports.

    Attributes:
      documents: that were read.
      failure: the file that failed the task, the reason and the detail; empty where
          none did. The task has no keys then, and no rows: a later step reads the file
          no more, even if it could.
    """

    failure: tuple[str, ...] = ()
    documents: int = 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "KeyFigures":
        """The figures of a receipt."""
        failure = tuple(content.get("failure", ()))
        return cls(failure, content.get("documents", 0))


def key_tasks(tasks: Sequence[Task], parts: Sequence[EarlierPart]) -> list[KeyTask]:
    """The tasks of the step."""
    return [
        *(KeyTask(task.number, task, None) for task in tasks),
        *(
            KeyTask(number, None, part)
            for number, part in enumerate(parts, start=len(tasks))
        ),
    ]


def count_buckets(tasks: Sequence[Task], parts: Sequence[EarlierPart] = ()) -> int:
    """The number of buckets for the keys of a corpus and of earlier runs."""
    size = sum(task.size_bytes for task in tasks)
    rows = sum(part.rows for part in parts)
    buckets = max(1, -(-size // MOST_BUCKET_BYTES), -(-rows // _BUCKET_ROWS))
    return min(buckets, MAX_BUCKETS)


def keys_path(output: str, number: int) -> str:
    """Where the keys of a task lie while the job runs.

    Group b holds the content keys of bucket b, and group buckets + b the id keys.
    """
    return files.join(output, TASKS_FOLDER, "keys", f"{number:05d}")


def content_digest(content_sha256: str, reference: str | None) -> bytes:
    """The digest of what the summaries of a document depend on.

    Args:
      content_sha256: of the article.
      reference: the highlights where a summary depends on them, as those of the oracle
          do; else None.
    """
    digest = bytes.fromhex(content_sha256)
    if reference is not None:
        digest = hashlib.sha256(digest + reference.encode(errors="replace")).digest()
    return digest[:16]


class KeyWorker(TaskWorker):
    """Writes the keys of one task of the corpus, or of one part of an earlier run."""

    def __init__(
        self, corpus: CorpusOptions, job: Job, *, buckets: int, uses_references: bool
    ) -> None:
        """Stores its arguments.

        Args:
          corpus: how the corpus is read.
          job: the job.
          buckets: the number of buckets.
          uses_references: whether a summary depends on the highlights.
        """
        self._corpus = corpus
        self._job = job
        self._buckets = buckets
        self._uses_references = uses_references

    def progress_size(self, task: KeyTask) -> int:
        """Progress is counted in bytes of the corpus."""
        return scan_size(task.corpus_task) if task.corpus_task else 0

    def run(
        self, task: KeyTask, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[KeyFigures]:
        """Writes the keys; dead letters are written when the documents are used."""
        del letters
        failure: tuple[str, ...] = ()
        documents = 0
        groups: Mapping[int, np.ndarray] = {}
        try:
            if task.corpus_task is not None:
                reader = read_task(task.corpus_task, self._corpus)
                groups = self._document_groups(reader, progress)
                documents = reader.position.records
            elif task.part is not None:
                groups = self._row_groups(task.part)
        except FileFailure as error:
            progress.give_back()
            failure = (error.path, error.reason, error.detail)
        path = keys_path(self._job.output, task.number)
        write_groups(path, groups)
        name = path.removeprefix(files.join(self._job.output, ""))
        rows = sum(len(group) for group in groups.values())
        described = describe_file(self._job.output, name, rows=rows)
        figures = KeyFigures(failure, documents)
        return TaskResult(source_counts(), [described], figures)

    def _document_groups(
        self, reader: TaskReader, progress: TaskProgress
    ) -> dict[int, np.ndarray]:
        contents: list[tuple[int, int, int, int]] = []
        ids: list[tuple[int, int, int]] = []
        for record, article in enumerate(reader):
            if record % 100 == 0:
                progress.advance_to(reader.position)
            if not isinstance(article, Article):
                continue
            contents.append((*self._content(article), _text_digest(article), record))
            ids.append((*_halves(_id_digest(article.document.document_id)), record))
        progress.advance_to(reader.position)
        in_buckets = _by_bucket(np.array(contents, CONTENT_KEY), self._buckets)
        ids_in_buckets = _by_bucket(np.array(ids, ID_KEY), self._buckets)
        return {
            **dict(in_buckets),
            **{self._buckets + bucket: keys for bucket, keys in ids_in_buckets},
        }

    def _content(self, article: Article) -> tuple[int, int]:
        highlights = article.document.highlights or ""
        reference = highlights if self._uses_references else None
        return _halves(content_digest(article.content_sha256, reference))

    def _row_groups(self, part: EarlierPart) -> dict[int, np.ndarray]:
        rows = read_part_keys(part, uses_references=self._uses_references)
        keys = [
            (
                *_halves(content_digest(row.content_sha256, row.reference)),
                int.from_bytes(row.offsets, "big"),
                row.row,
            )
            for row in rows
        ]
        return dict(_by_bucket(np.array(keys, ROW_KEY), self._buckets))


def scan_step(job: Job) -> Step[KeyFigures]:
    """The step, whose receipts later steps read."""
    return Step(job, "scan", KeyFigures.from_json)


def check_scanned(job: Job, task: int) -> None:
    """Fails a task that a file failed when its keys were made.

    Raises:
      FileFailure: as it was then.
    """
    report = read_receipt(scan_step(job), task)
    if report is not None and report.figures.failure:
        raise FileFailure(*report.figures.failure)


def forget_failed_scans(job: Job, tasks: Sequence[Task]) -> None:
    """Lets an interrupted job read the files again that failed its tasks.

    What was found with their keys missing is found anew, too.
    """
    step = scan_step(job)
    failed = []
    for task in tasks:
        report = read_receipt(step, task.number)
        if report is not None and report.figures.failure:
            failed.append(task.number)
    # The failures go last: after a kill, they are found again.
    for name in LATER_STEPS if failed else ():
        files.remove(files.join(job.output, TASKS_FOLDER, name))
    for number in failed:
        files.remove(receipt_path(step, number))


def scan_size(task: Task) -> int:
    """How much of a task's progress the step is."""
    return task.size_bytes // 20


def _halves(digest: bytes) -> tuple[int, int]:
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")


def _id_digest(document_id: str) -> bytes:
    content = document_id.encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


def _text_digest(article: Article) -> int:
    """Tells texts of one content apart, which differ in white space alone."""
    content = article.document.article.encode(errors="surrogatepass")
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _by_bucket(keys: np.ndarray, buckets: int) -> Iterable[tuple[int, np.ndarray]]:
    """The keys of each bucket, in their order."""
    numbers = keys["low"] % np.uint64(buckets)
    for bucket in np.unique(numbers).tolist():
        yield bucket, keys[numbers == bucket]
