"""Summarizes texts outside a corpus: `precis.summarize_text`, `precis.summarize_frame`,
and `precis summarize --text FILE`.

Texts are read, summarized and checked like the documents of a corpus. If a text of a
frame fails, its row has null as summary, and the reason in another column.
"""

import functools
import itertools
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from precis.model import files
from precis.model.config import comma_list, suggestion
from precis.model.errors import DataError, JobError, UsageError
from precis.model.extractive.config import ORACLE
from precis.model.isolation import Failure
from precis.model.processes import refuse_within_import
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.model.text.document import Document, TextSettings
from precis.pipelines.corpus.formats import (
    HTML,
    OTHER_FORMAT,
    fitting_encoding,
    other_format,
)
from precis.pipelines.corpus.listing import absolute_path
from precis.pipelines.corpus.opening import open_source, written_name
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter, Task, to_article
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.corpus.text_files import document_id, to_document
from precis.pipelines.run.job_progress import load_tensorflow, shown
from precis.pipelines.run.options import option_names, read_flags
from precis.pipelines.summarize.options import (
    NOT_FOR_A_TEXT,
    STANDARD_INPUT,
    SUMMARIZE,
    SUMMARY_OPTIONS,
)
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

# Two settings, such as two networks to compare, stay loaded.
_MOST_LOADED = 2
# The corpus flags that concern the text of one document.
_OF_THE_TEXT = ("clean", "language", "max_record_mb", "encoding")
# Columns that only a document of a corpus or run has.
_NOT_ADDED = {
    *("document_id", "split", "source_file", "source_position", "duplicate_of"),
    *("reused_from", "run_id", "schema_version"),
}
FAILURE = "summary_failure"


def summarize_text(
    text: str, *, clean: str = "standard", language: str | None = None, **flags: Any
) -> dict[str, Any]:
    """Summarizes one document.

        row = precis.summarize_text(article, bundle="bundle", beam_width=6)
        print(row["summary"], row["quality_flags"])

    A bundle is loaded at the first call and kept, so later calls only take the time of
    the search. For many documents, `precis.summarize` is much faster.

    Args:
      text: the document.
      clean, language: the values of these flags of `precis summarize`.
      **flags: the flags of `precis summarize` that concern summaries.

    Returns:
      The row that `precis summarize` would write, with a value for each column of
      docs/SCHEMA.md.

    Raises:
      UsageError: an invalid flag or bundle, or a text without words.
      JobError: the summary cannot be made, for example because memory runs out.
    """
    if not isinstance(text, str):
        raise UsageError(
            f"summarize_text takes one text, not {type(text).__name__}; "
            "use precis.summarize for a corpus"
        )
    _refuse(NOT_FOR_A_TEXT, flags, "summarize_text")
    settings = TextSettings(clean, language)
    record = to_article(Document("", "", text, None), settings)
    if isinstance(record, DeadLetter):
        raise UsageError(f"the text cannot be summarized: {record.detail}")
    return summarize_article(record, flags)


def summarize_article(article: Article, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the row of an article that has a text.

    Args:
      article: the article with its id and split.
      flags: the same flags as for `summarize_text`.

    Raises:
      UsageError: an invalid flag or bundle, or a method that needs a reference.
      JobError: the summary cannot be made.
    """
    # One document is searched faster than a search process starts.
    settings = read_settings({"search_processes": 1, **flags}, article.settings)
    if ORACLE in settings.options.methods:
        raise UsageError(
            "--extractive oracle needs a reference summary, but one document has none; "
            "name other methods, such as --extractive lexrank,lead"
        )
    (window,) = _loaded(settings).summarize([article])
    for letter in window.dead_letters:
        raise JobError(f"the text cannot be summarized: {letter.detail}")
    (row,) = window.rows
    return row


def _load(settings: SummarySettings) -> WindowSummarizer:
    """Opens a summarizer with its models."""
    if settings.uses_tensorflow:
        load_tensorflow()
    summarizer = WindowSummarizer(settings)
    summarizer.load()
    return summarizer


_loaded = functools.lru_cache(maxsize=_MOST_LOADED)(_load)


def summarize_frame(
    frame: Any,
    text: str,
    *,
    columns: str | Sequence[str] = (),
    clean: str = "standard",
    language: str | None = None,
    **flags: Any,
) -> Any:
    """Summarizes the texts of a data frame.

        news = pandas.read_parquet("news.parquet")
        news = precis.summarize_frame(news, text="body", bundle="hf://org/name")
        print(news[["headline", "summary", "quality_flags"]])

    Args:
      frame: a frame of pandas or polars, or an Arrow table.
      text: the name of the column with the documents.
      columns: the columns to add beside `summary_failure`, as a list or with commas;
        all if empty.
      clean, language: the values of these flags of `precis summarize`.
      **flags: the flags of `precis summarize` that concern summaries.

    Returns:
      A frame of the same kind, with the same rows and columns, the added columns of
      docs/SCHEMA.md, by default all that concern summaries, and `summary_failure`: the
      reason if a row has no summary, else null.

    Raises:
      UsageError: an invalid flag or bundle, a missing column, or a new column that the
          frame already has.
      TypeError: `frame` is not a data frame.
      JobError: all rows fail in the same way.
    """
    import narwhals as nw

    refuse_within_import()
    _refuse(("output",), flags, "summarize_frame")
    table = nw.from_native(frame, eager_only=True)
    names = [name for name in SUMMARY_SCHEMA.names if name not in _NOT_ADDED]
    chosen = comma_list(columns) if isinstance(columns, str) else columns
    for name in chosen:
        if name not in (*names, FAILURE):
            way_out = suggestion(name, names) or f"name some of {', '.join(names)}"
            raise UsageError(f"`columns=`: no column {name!r} is added; {way_out}")
    names = [name for name in dict.fromkeys(chosen) if name != FAILURE] or names
    if text not in table.columns:
        way_out = suggestion(text, table.columns) or "name a column of the frame"
        raise UsageError(f"the frame has no column {text!r}; {way_out}")
    for name in {*names, FAILURE} & {*table.columns}:
        raise UsageError(f"the frame already has a column {name!r}; rename it")
    column, missing = table[text], table[text].is_null().to_list()
    # Every form of a missing text, such as NaN, counts as None.
    texts = [
        "" if is_missing else value
        for value, is_missing in zip(column.to_list(), missing, strict=True)
    ]
    with shown("summarize"):
        settings = read_settings(flags, TextSettings(clean, language))
        rows, reasons = _summarize(texts, settings)
    added = rows.select(names).append_column(FAILURE, pa.array(reasons, pa.string()))
    made = nw.from_arrow(added, backend=table.implementation)
    return nw.to_native(table.with_columns(*made.iter_columns()))


def _summarize(
    texts: Sequence[Any], settings: SummarySettings
) -> tuple[pa.Table, list[str | None]]:
    """Summarizes texts; returns rows with nulls for failures, and the reasons."""
    unread: list[str | None] = []  # why a text could not be read
    failed: list[str | None] = []  # why an article could not be summarized

    def articles() -> Iterator[Article]:
        for text in texts:
            record = to_article(Document("", "", text, None), settings.text)
            if isinstance(record, Article):
                unread.append(None)
                yield record
            else:
                unread.append(_reason(record))
                progress.advance(1)

    tables = [SUMMARY_SCHEMA.empty_table()]
    summarizer = _load(settings)
    try:
        with stage("summarize", total=len(texts)) as progress:
            for window in summarizer.summarize(articles()):
                tables.append(summarizer.table(window))
                failed += [_reason(row.failure) for row in window.documents]
                progress.advance(len(window.documents))
    finally:
        summarizer.close()
    of_articles = iter(failed)
    reasons = [reason or next(of_articles) for reason in unread]
    rows = itertools.count()
    taken = [None if reason else next(rows) for reason in reasons]
    return pa.concat_tables(tables).take(pa.array(taken, pa.int64())), reasons


def _reason(failure: DeadLetter | Failure | None) -> str | None:
    return failure and f"{failure.reason}: {failure.detail}"


def _refuse(names: Iterable[str], flags: Mapping[str, Any], function: str) -> None:
    for name in names:
        if name in flags:
            raise UsageError(f"{function} does not take {name}; use precis.summarize")


def summarize_document(file: str, **flags: Any) -> dict[str, Any]:
    """Summarizes a file with one document, or the standard input.

    Args:
      file: the path of the file, or "-".
      **flags: the flags of `precis summarize` that concern summaries and the text.

    Returns:
      The row that `precis summarize --corpus text:FILE` would write, except the columns
      of the run. Standard input has no file name, so its id is the hash of its text.

    Raises:
      UsageError: the file does not exist, or a flag needs a corpus.
      DataError: the file holds no text.
    """
    for flag in option_names(SUMMARIZE):
        is_of_text = flag in (*option_names(SUMMARY_OPTIONS), *_OF_THE_TEXT)
        if flag in flags and (flag in NOT_FOR_A_TEXT or not is_of_text):
            raise UsageError(
                f"--{flag} is for a corpus, but --text {file} is one document; leave "
                "one of them out"
            )
    of_text = {name: flags.pop(name) for name in _OF_THE_TEXT if name in flags}
    article = read_document(file, of_text)
    return summarize_article(article, flags)


def read_document(file: str, of_text: Mapping[str, Any]) -> Article:
    """Reads the article in a file, or on the standard input.

    Args:
      file: the path of the file, or "-".
      of_text: the flags that concern the text.

    Raises:
      UsageError: the file does not exist.
      DataError: the file holds no text.
    """
    name = "the standard input" if file == STANDARD_INPUT else file
    (options,) = read_flags([CorpusOptions], {"corpus": f"text:{name}", **of_text})
    path = file
    if file != STANDARD_INPUT and files.is_local(file):
        path = written_name(absolute_path(file))
    most = options.max_record_bytes + 1
    try:
        if file == STANDARD_INPUT:
            raw = sys.stdin.buffer.read(most)
        else:
            with open_source(path) as opened:
                raw = opened.read(most)
    except OSError as error:
        raise UsageError(
            f"{file}: it cannot be read ({error.strerror or error}); name a text file, "
            "- for the standard input, or many files with --corpus 'text:*.txt'"
        ) from error
    document = to_document(path, raw, options)
    if isinstance(document, Document) and file != STANDARD_INPUT:
        document = document._replace(document_id=document_id(path, file))
    record = TaskReader(Task(0, "text"), options).to_article(document, raw)
    # Some binary files, such as some PDF files, are valid UTF-8.
    shown = "FILE" if file == STANDARD_INPUT else shlex.quote(file)
    other = other_format(raw, shown, is_text=True)
    if other and other_format(raw, "FILE") != HTML:
        raise DataError(f"{name}: it is {other}")
    if not isinstance(record, Article):
        way_out = ""
        if record.reason == "invalid_utf8":
            kind = fitting_encoding(raw) or "binary data"
            way_out = f"; it seems to be {kind}: save it as text in UTF-8"
        # The only other format here is HTML without the package that reads it.
        error = UsageError if record.reason == OTHER_FORMAT else DataError
        raise error(f"{name}: {record.reason}: {record.detail}{way_out}")
    if not record.body or "\0" in record.document.article:
        raise DataError(
            f"{name}: it holds no text, or null characters like a binary file; give an "
            "article in plain text"
        )
    return record


def as_json(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON: values as in Parquet, columns as in docs/SCHEMA.md."""
    (stored,) = summary_table([dict(row)], SUMMARY_SCHEMA).to_pylist()
    return json.dumps(stored, ensure_ascii=False, allow_nan=False)
