"""`--sample`: draws documents from the whole corpus.

corpus        a b - c d e f g     - is no document: it is empty or cannot be read
--sample 3      b     d     g     the smallest hashes of all

A document counts if it has a text and is of `--split`. Which documents are drawn
depends on the corpus alone, and neither on workers nor on the size of the tasks.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from precis.model.progress.stages import stage
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    UNREADABLE_SCHEME,
    FileFailure,
    Task,
)
from precis.pipelines.corpus.task_reader import TaskReader, read_records

# A drawn document: its digest, with a minus, as the largest is in front of a heap; the
# task and the record, whose order decides between equal digests; and its place.
_Drawn = tuple[int, int, int, str, str]


def draw_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    """The tasks that read the drawn documents alone, and count the others.

    Args:
      tasks: of the corpus, in order.
      options: how it is read.
    """
    drawn: list[_Drawn] = []
    records: dict[int, Counter[str]] = {}
    failures: dict[int, FileFailure] = {}
    with stage("select", total=len(tasks), unit="tasks") as selecting:
        for task in tasks:
            records[task.number] = Counter()
            before = list(drawn)
            try:
                for each in _candidates(task, options, drawn, records[task.number]):
                    heapq.heappush(drawn, each)
                    if len(drawn) > options.sample:
                        heapq.heappop(drawn)
            except FileFailure as failure:
                drawn = before
                failures[task.number] = failure
            selecting.advance()
    positions: dict[int, dict[str, set[str]]] = {task.number: {} for task in tasks}
    for _, number, _, path, position in drawn:
        positions[-number].setdefault(path, set()).add(position)
    return [
        _failed(task, failures[task.number])
        if task.number in failures
        else _of_drawn(task, positions[task.number], records[task.number])
        for task in tasks
    ]


def _of_drawn(task: Task, drawn: dict[str, set[str]], records: Counter[str]) -> Task:
    left_out = records - Counter({path: len(each) for path, each in drawn.items()})
    return task._replace(
        only={path: dict.fromkeys(sorted(each), 1) for path, each in drawn.items()},
        left_out=dict(left_out),
    )


def _failed(task: Task, failure: FileFailure) -> Task:
    """A task whose files are lost, as one of them could not be read."""
    files = tuple(
        file._replace(problem=failure.reason, detail=failure.detail)
        for file in task.files
    )
    return task._replace(scheme=UNREADABLE_SCHEME, files=files, pieces=())


def _candidates(
    task: Task, options: CorpusOptions, drawn: list[_Drawn], records: Counter[str]
) -> Iterator[_Drawn]:
    """The documents of a task that may be in the sample, beside those drawn so far.

    Args:
      task: the task.
      options: how it is read.
      drawn: a heap; it grows while this is read.
      records: counts the records of each file.
    """
    reader = TaskReader(task, options)
    for number, (record, _) in enumerate(read_records(task, options)):
        content = record.content
        if not isinstance(content, Document):
            records[content.source_file] += content.records
            continue
        records[content.source_file] += 1
        key = -_digest(content, options.sample_seed), -task.number, -number
        # The text of few documents is looked at: of those that may be taken.
        may_be_drawn = len(drawn) < options.sample or key > drawn[0][:3]
        if may_be_drawn and reader.is_document(content):
            yield (*key, content.source_file, content.source_position)


def _digest(document: Document, seed: int) -> int:
    """A number that decides whether a document is drawn.

    Of equal documents each has a number of its own, by its position. The folder of the
    corpus is no part of it.
    """
    name = document.document_id or document.article
    content = f"{seed}\n{document.source_position}\n{name}"
    digest = hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
