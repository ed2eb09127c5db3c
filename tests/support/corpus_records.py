"""The documents and unreadable records of a corpus."""

from collections.abc import Iterator
from typing import Any

from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import Task, Unreadable


def read_records(task: Task, options: CorpusOptions) -> Iterator[Document | Unreadable]:
    """`read_task`, with the document of each article."""
    for record in read_task(task, options):
        yield record.document if isinstance(record, Article) else record


def read_corpus(
    corpus: str, **options: Any
) -> tuple[list[Task], list[Document | Unreadable]]:
    """The tasks of a corpus, and the records of all tasks in order."""
    corpus_options = CorpusOptions(corpus=corpus, **options)
    tasks = list_tasks(corpus_options)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    records = [
        record for task in tasks for record in read_records(task, corpus_options)
    ]
    return tasks, records
