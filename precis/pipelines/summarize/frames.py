"""`precis.summarize_frame`: a data frame -> the same frame with summaries.

Rows are read, summarized and checked as those of a corpus; a row that would be a dead
letter there has null in place of a summary, and the reason beside it.
"""

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.inference.process_limits import refuse_within_import
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter, to_article
from precis.pipelines.run.job_progress import load_tensorflow, shown
from precis.pipelines.summarize.summary_settings import read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

# What is known of a document of a corpus, or of its run.
_NOT_ADDED = {
    *("document_id", "split", "source_file", "source_position", "duplicate_of"),
    *("reused_from", "run_id", "schema_version"),
}
FAILURE = "summary_failure"


def summarize_frame(
    frame: Any, text: str, *, clean: str = "standard", **flags: Any
) -> Any:
    """Summarizes the texts of a data frame.

        news = pandas.read_parquet("news.parquet")
        news = precis.summarize_frame(news, text="body", bundle="hf://org/name")
        print(news[["headline", "summary", "quality_flags"]])

    Args:
      frame: of pandas or polars, or an Arrow table.
      text: the column with the documents.
      clean: as `--clean` of `precis summarize`: standard or none.
      **flags: the flags of `precis summarize` that concern summaries.

    Returns:
      A frame of the same kind, with the same rows and columns, the columns of
      docs/SCHEMA.md that concern summaries, and `summary_failure`: why a row has no
      summary, else null.

    Raises:
      UsageError: an invalid flag or bundle, no such column, or a new column that the
        frame has.
      TypeError: this is no data frame.
      JobError: all rows fail alike.
    """
    import narwhals as nw

    refuse_within_import()
    if "output" in flags:
        raise UsageError("summarize_frame takes no output; precis.summarize does")
    table = nw.from_native(frame, eager_only=True)
    names = [name for name in SUMMARY_SCHEMA.names if name not in _NOT_ADDED]
    if text not in table.columns:
        way_out = suggestion(text, table.columns) or "name one that it has"
        raise UsageError(f"the frame has no column {text!r}; {way_out}")
    for name in {*names, FAILURE} & {*table.columns}:
        raise UsageError(f"the frame has the added column {name!r} already; rename it")
    column, missing = table[text], table[text].is_null().to_list()
    # None in a text is what is missing in any form, as NaN.
    texts = [
        "" if is_missing else value
        for value, is_missing in zip(column.to_list(), missing, strict=True)
    ]
    with shown("summarize"):
        settings = read_settings(flags, clean)
        if settings.options.uses_tensorflow:
            load_tensorflow()
        rows, reasons = _summarize(texts, WindowSummarizer(settings), clean)
    added = rows.select(names).append_column(FAILURE, pa.array(reasons, pa.string()))
    made = nw.from_arrow(added, backend=table.implementation)
    return nw.to_native(table.with_columns(*made.iter_columns()))


def _summarize(
    texts: Sequence[Any], summarizer: WindowSummarizer, clean: str
) -> tuple[pa.Table, list[str | None]]:
    """The rows of documents, with nulls where there is none, and why there is none.

    Args:
      texts: the documents.
      summarizer: of the settings.
      clean: as in `Article`.
    """
    reasons: list[str | None] = []
    waiting: collections.deque[int] = collections.deque()  # places of articles

    def articles() -> Iterator[Article]:
        for text in texts:
            record = to_article(Document("", "", text, None), clean=clean)
            if isinstance(record, DeadLetter):
                reasons.append(f"{record.reason}: {record.detail}")
                progress.advance(1)
            else:
                waiting.append(len(reasons))
                reasons.append(None)
                yield record

    tables = [SUMMARY_SCHEMA.empty_table()]
    summarizer.load()
    try:
        with stage("summarize", total=len(texts)) as progress:
            for window in summarizer.summarize(articles()):
                tables.append(summarizer.table(window))
                for row in window.documents:
                    place = waiting.popleft()
                    if row.failure:
                        reasons[place] = f"{row.failure.reason}: {row.failure.detail}"
                progress.advance(len(window.documents))
    finally:
        summarizer.close()
    rows = itertools.count()
    taken = [None if reason else next(rows) for reason in reasons]
    return pa.concat_tables(tables).take(pa.array(taken, pa.int64())), reasons
