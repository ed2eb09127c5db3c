"""The results of windows of documents."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from precis.model.inference.batches import SearchedBatch
from precis.model.isolation import Failure
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import DeadLetter, document_letter
from precis.pipelines.summarize.document_windows import DocumentWindow
from precis.pipelines.summarize.summary_rows import SummaryRow

ItemT = TypeVar("ItemT")


class SummarizedWindow(NamedTuple):
    """A window and its result.

    Attributes:
      window: the documents.
      rows: of the documents that did not fail, in their order.
      batches: what was searched; empty without a network.
      letters: the dead letters of the documents that failed, beside those of `window`.
      articles: of the rows.
    """

    window: DocumentWindow
    rows: list[SummaryRow]
    batches: list[SearchedBatch]
    letters: list[DeadLetter]
    articles: list[Article]


def sort_out(
    summarized: SummarizedWindow, results: Sequence[SummaryRow | Failure]
) -> SummarizedWindow:
    """A window with new results of its articles, the failures as dead letters."""
    rows = []
    articles = []
    letters = [*summarized.letters]
    for article, result in zip(summarized.articles, results, strict=True):
        if isinstance(result, Failure):
            letters.append(document_letter(article, result))
        else:
            rows.append(result)
            articles.append(article)
    return summarized._replace(rows=rows, articles=articles, letters=letters)


def one_ahead(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yields each item when the next one has been made."""
    iterator = iter(items)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current
        current = following
    yield current
