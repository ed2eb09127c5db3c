"""`sample:[COUNT]`: the built-in corpus, with the number of documents."""

from collections.abc import Iterator

from precis.model.errors import UsageError
from precis.pipelines.corpus.sample import generator
from precis.pipelines.corpus.task import ReadRecord, Task

DEFAULT_DOCUMENTS = 6000
_BYTES_PER_DOCUMENT = 900


def list_tasks(spec: str, *, task_documents: int = 1000) -> list[Task]:
    """Cuts the corpus into tasks of `task_documents` documents.

    Args:
      spec: the number of documents; empty for the default.
      task_documents: documents in a task.

    Raises:
      UsageError: the spec is no positive whole number.
    """
    if spec and not (spec.isascii() and spec.isdecimal() and int(spec) > 0):
        raise UsageError(
            f"sample:{spec}: {spec!r} is not a positive whole number of documents; "
            "write sample: or sample:20000"
        )
    documents = int(spec) if spec else DEFAULT_DOCUMENTS
    tasks = []
    for index, start in enumerate(range(0, documents, task_documents)):
        stop = min(start + task_documents, documents)
        task = Task(index, "sample", (), start, stop, version=generator.VERSION)
        tasks.append(task._replace(size_bytes=(stop - start) * _BYTES_PER_DOCUMENT))
    return tasks


def read(task: Task) -> Iterator[ReadRecord]:
    """The documents of a task, in order."""
    for index in range(task.start, task.stop):
        document = generator.document(index)._replace(
            source_file="sample:", source_position=f"record {index}"
        )
        share = (index + 1 - task.start) / (task.stop - task.start)
        yield ReadRecord(document, share)
