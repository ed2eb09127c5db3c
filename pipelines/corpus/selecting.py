"""`--limit` and `--sample`: the documents of a corpus that a job takes.

corpus        a b - c d e f g     - is no document: it is empty or cannot be read
--limit 3     a b - c             the task of c ends behind it, later tasks are left out
--sample 3      b     d     g     the smallest hashes of all

A document counts if it has a text and is of `--split`. Which documents are taken
depends on the corpus alone, and neither on workers nor on the size of the tasks.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    FileFailure,
    Place,
    Selection,
    Task,
    Unreadable,
)
from precis.pipelines.corpus.task_reader import TaskReader, read_records

# A file that cannot be read now may be readable when the job comes to it; its documents
# are not among those that were counted.
_NOTHING = Selection(drawn={})
_MOST_SURPLUS = 1000


class Drawn(NamedTuple):
    """A document that may be in the sample.

    Attributes:
      digest: the sample has the documents with the smallest.
      task, record: its place in the order of the corpus, which decides between equal
          digests.
      place: where it stands.
    """

    digest: int
    task: int
    record: int
    place: Place


class SmallestDigests:
    """Keeps the documents with the smallest digests.

    Attributes:
      documents: the candidates; after `cut` those that are kept.
      largest: documents behind this one need not be added; None where all may count.
    """

    def __init__(self, count: int, largest: Drawn | None = None) -> None:
        self.documents: list[Drawn] = []
        self.largest = largest
        self._count = count

    def may_take(self, digest: int, task: int, record: int) -> bool:
        """Whether a document can be among the smallest."""
        return self.largest is None or (digest, task, record) < self.largest[:3]

    def add(self, document: Drawn) -> None:
        """Adds a candidate."""
        self.documents.append(document)
        if len(self.documents) >= self._count + max(_MOST_SURPLUS, self._count // 4):
            self.cut()

    def cut(self) -> None:
        """Leaves the smallest in `documents`."""
        self.documents.sort()
        del self.documents[self._count :]
        if len(self.documents) == self._count:
            self.largest = self.documents[-1]


def select_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    """The tasks that read what `--limit` or `--sample` takes; all without them.

    Args:
      tasks: of the corpus, in order.
      options: how it is read.
    """
    if options.limit:
        return _first_documents(tasks, options)
    if options.sample:
        return _drawn_documents(tasks, options)
    return list(tasks)


def _first_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    taken: list[Task] = []
    left = options.limit
    for task in tasks:
        try:
            documents, ended = _read_to(left, task, options)
        except FileFailure:
            taken.append(task._replace(selected=_NOTHING))
            continue
        taken.append(ended)
        left -= documents
        if not left:
            break
    return taken


def _read_to(most: int, task: Task, options: CorpusOptions) -> tuple[int, Task]:
    """How many documents a task has, up to `most`, and the task that ends there."""
    documents = 0
    reader = TaskReader(task, options)
    for record in reader:
        if isinstance(record, Article):
            documents += 1
            if documents == most:
                document = record.document
                last = Place(document.source_file, document.source_position)
                return documents, task._replace(
                    selected=Selection(last=last),
                    size_bytes=max(1, int(task.size_bytes * reader.position.share)),
                )
    return documents, task


def _drawn_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    sample = SmallestDigests(options.sample)
    with stage("select", total=len(tasks), unit="tasks") as selecting:
        for task in tasks:
            of_task = SmallestDigests(options.sample, sample.largest)
            with contextlib.suppress(FileFailure):
                _draw(task, options, of_task)
                for document in of_task.documents:
                    sample.add(document)
            selecting.advance()
    sample.cut()
    positions: dict[int, dict[str, set[str]]] = {task.number: {} for task in tasks}
    for document in sample.documents:
        path, position = document.place
        positions[document.task].setdefault(path, set()).add(position)
    return [
        task._replace(
            selected=Selection(
                drawn={
                    path: frozenset(of_file)
                    for path, of_file in positions[task.number].items()
                }
            )
        )
        for task in tasks
    ]


def _draw(task: Task, options: CorpusOptions, sample: SmallestDigests) -> None:
    """Adds the documents of a task that may be in the sample."""
    reader = TaskReader(task, options)
    for number, record in enumerate(read_records(task, options)):
        content = record.content
        if isinstance(content, Unreadable):
            continue
        key = _digest(content, options.sample_seed), task.number, number
        # The text of few documents is looked at: of those that may be taken.
        if sample.may_take(*key) and reader.is_document(content):
            place = Place(content.source_file, content.source_position)
            sample.add(Drawn(*key, place))


def _digest(document: Document, seed: int) -> int:
    """A number that decides whether a document is drawn.

    Of equal documents each has a number of its own, by its position. The folder of the
    corpus is no part of it.
    """
    name = document.document_id or document.article
    content = f"{seed}\n{document.source_position}\n{name}"
    digest = hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
