"""The records of a task -> windows of documents."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import (
    DeadLetter,
    empty_article_letter,
    unreadable_letter,
)
from precis.pipelines.corpus.task import EmptyArticle, Position, Unreadable
from precis.pipelines.summarize.summary_rows import SourceDocument, source_document
from precis.pipelines.summarize.summary_settings import SummarySettings

# A window of long documents ends before it has --window_documents of them: their
# sources and words are in memory together.
WINDOW_CHARACTERS = 8_000_000


class DocumentWindow(NamedTuple):
    """Some hundred documents that follow each other.

    Attributes:
      documents: those that can be summarized.
      letters: the dead letters of the others.
      records: how many records were read, those of the dead letters included.
      position: how far the task is read with the window; there only in a command.
    """

    documents: list[SourceDocument]
    letters: list[DeadLetter]
    records: int
    position: Position = Position()


def read_windows(
    records: Iterable[Article | EmptyArticle | Unreadable], settings: SummarySettings
) -> Iterator[DocumentWindow]:
    """Cuts the records of a task into windows; the last one may be empty.

    A window ends after `window_documents` documents or WINDOW_CHARACTERS.
    """
    documents: list[SourceDocument] = []
    letters: list[DeadLetter] = []
    record_count = 0
    characters = 0
    for record in records:
        if isinstance(record, Unreadable):
            record_count += record.records
            letters.append(unreadable_letter(record))
            continue
        record_count += 1
        if isinstance(record, EmptyArticle):
            letters.append(empty_article_letter(record))
        else:
            documents.append(
                source_document(record, settings.fallback.min_source_words)
            )
            characters += len(record.body)
        is_full = len(documents) == settings.options.window_documents
        if is_full or characters >= WINDOW_CHARACTERS:
            yield DocumentWindow(documents, letters, record_count)
            documents = []
            letters = []
            record_count = 0
            characters = 0
    yield DocumentWindow(documents, letters, record_count)
