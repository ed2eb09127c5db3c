"""The documents and unreadable records of a corpus."""

from collections.abc import Iterator

from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.source import CorpusOptions, read_task
from precis.pipelines.corpus.task import Task, Unreadable


def read_records(task: Task, options: CorpusOptions) -> Iterator[Document | Unreadable]:
    """`read_task`, with the document of each article."""
    for record in read_task(task, options):
        yield record.document if isinstance(record, Article) else record
