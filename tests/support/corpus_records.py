"""The documents and unreadable records of a corpus."""

from collections.abc import Iterator
from typing import Any

from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample import generator
from precis.pipelines.corpus.task import DeadLetter, Position, Task


def read_records(task: Task, options: CorpusOptions) -> Iterator[Document | DeadLetter]:
    """`read_task`, with the document of each article.

    Checks on the way that the reader's position only grows, to the end of the task.
    """
    before = Position()
    reader = read_task(task, options)
    for record in reader:
        position = reader.position
        assert position.records > before.records
        assert before.share <= position.share <= 1
        before = position
        yield record.document if isinstance(record, Article) else record


def place_and_reason(letter: DeadLetter) -> tuple[str, str, str]:
    """Where a record stands that cannot be read, and why."""
    return letter.source_file, letter.source_position, letter.reason


def read_corpus(
    corpus: str, **options: Any
) -> tuple[list[Task], list[Document | DeadLetter]]:
    """The tasks of a corpus, and the records of all tasks in order."""
    corpus_options = CorpusOptions(corpus=corpus, **options)
    tasks = list_tasks(corpus_options)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    records = [
        record for task in tasks for record in read_records(task, corpus_options)
    ]
    return tasks, records


def parted(
    records: list[Document | DeadLetter],
) -> tuple[list[Document], list[DeadLetter]]:
    """The documents among some records, and the dead letters."""
    documents = [record for record in records if isinstance(record, Document)]
    return documents, [record for record in records if isinstance(record, DeadLetter)]


def story(index: int, **changes: Any) -> dict[str, Any]:
    """A document of the built-in corpus behind the hand-written ones, as a record."""
    document = generator.document(len(generator.hand_written()) + index)
    return {
        "id": f"d{index:02}",
        "article": document.article,
        "highlights": document.highlights,
        **changes,
    }
