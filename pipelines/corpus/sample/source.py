"""`sample:[COUNT]`: the built-in corpus, with the number of documents."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from precis.model.errors import UsageError
from precis.pipelines.corpus.sample import generator
from precis.pipelines.corpus.task import ReadRecord, Task

if TYPE_CHECKING:
    from precis.pipelines.corpus.options import CorpusOptions

DEFAULT_DOCUMENTS = 6000
_BYTES_PER_DOCUMENT = 900
# A document counts as this much, so that a task of the default size has a thousand
# documents: the built-in corpus is made for small machines.
_TASK_BYTES_PER_DOCUMENT = 16 << 10


def list_tasks(source: str, options: "CorpusOptions") -> list[Task]:
    """Cuts the corpus into tasks of some documents.

    Args:
      source: the number of documents; empty for the default.
      options: with `task_bytes`.

    Raises:
      UsageError: the source is no positive whole number.
    """
    if source and not (source.isascii() and source.isdecimal() and int(source) > 0):
        raise UsageError(
            f"sample:{source}: {source!r} is not a positive whole number of documents; "
            "write sample: or sample:20000"
        )
    documents = int(source) if source else DEFAULT_DOCUMENTS
    task_documents = max(1, options.task_bytes // _TASK_BYTES_PER_DOCUMENT)
    tasks = []
    for index, start in enumerate(range(0, documents, task_documents)):
        stop = min(start + task_documents, documents)
        task = Task(index, "sample", (), start, stop, version=generator.VERSION)
        tasks.append(task._replace(size_bytes=(stop - start) * _BYTES_PER_DOCUMENT))
    return tasks


def read(task: Task, options: "CorpusOptions") -> Iterator[ReadRecord]:
    """The documents of a task, in order."""
    del options
    for index in range(task.start, task.stop):
        document = generator.document(index)._replace(
            source_file="sample:", source_position=f"record {index}"
        )
        share = (index + 1 - task.start) / (task.stop - task.start)
        yield ReadRecord(document, share)
