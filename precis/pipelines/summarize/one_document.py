"""The summaries of one document, without a run: `precis.summarize_text`, and `precis
summarize --text FILE`.
"""

import functools
import json
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError, JobError, UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.formats import fitting_encoding, other_format
from precis.pipelines.corpus.listing import absolute_path
from precis.pipelines.corpus.opening import open_source, written_name
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Task
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.corpus.text_files import document_id, to_document
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.run.options import option_names, read_flags
from precis.pipelines.summarize.extractive_summaries import ORACLE
from precis.pipelines.summarize.options import (
    NOT_FOR_A_TEXT,
    STANDARD_INPUT,
    SUMMARIZE,
    SUMMARY_OPTIONS,
)
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer

# Two sets of settings, such as two networks to compare, stay loaded.
_MOST_LOADED = 2
# The flags of a corpus that concern the text of one document.
_OF_THE_TEXT = ("clean", "max_record_mb", "encoding")


def summarize_text(
    text: str, *, clean: str = "standard", **flags: Any
) -> dict[str, Any]:
    """Summarizes one document.

        row = precis.summarize_text(article, bundle="bundle", beam_width=6)
        print(row["summary"], row["quality_flags"])

    A bundle is loaded at the first call and kept, so later calls take only the time of
    the search. For many documents `precis.summarize` is faster by far.

    Args:
      text: the document.
      clean: as `--clean` of `precis summarize`: standard or none.
      **flags: the flags of `precis summarize` that concern summaries.

    Returns:
      The row that `precis summarize` would write, a value for each column of
      docs/SCHEMA.md.

    Raises:
      UsageError: an invalid flag or bundle, or a text without words.
      JobError: the summary cannot be made, as where memory runs out.
    """
    if not isinstance(text, str):
        raise UsageError(
            f"summarize_text takes one text, not {type(text).__name__}; "
            "precis.summarize takes a corpus"
        )
    for name in NOT_FOR_A_TEXT:
        if name in flags:
            raise UsageError(f"summarize_text takes no {name}; precis.summarize does")
    article = Article.from_text(text, clean=clean)
    if not article.body:
        raise UsageError("the text cannot be summarized: the article has no text")
    article = article.with_id_and_split(article.content_sha256, "")
    return summarize_article(article, flags, clean=clean)


def summarize_article(
    article: Article, flags: Mapping[str, Any], *, clean: str
) -> dict[str, Any]:
    """The row of an article with a text.

    Args:
      article: with its id and its split.
      flags: as those of `summarize_text`.
      clean: as in `SummarySettings`.

    Raises:
      UsageError: an invalid flag or bundle, or a method that needs a reference.
      JobError: the summary cannot be made.
    """
    # A search process would take longer to start than one document to search.
    settings = read_settings({"search_processes": 1, **flags}, clean)
    if ORACLE in settings.options.methods:
        raise UsageError(
            "--extractive oracle chooses sentences by a reference summary, and one "
            "document has none; name other methods, as in --extractive lexrank,lead"
        )
    if settings.options.uses_tensorflow:
        load_tensorflow()
    (window,) = _load(settings).summarize([article])
    for letter in window.dead_letters:
        raise JobError(f"the text cannot be summarized: {letter.detail}")
    (row,) = window.rows
    return row


@functools.lru_cache(maxsize=_MOST_LOADED)
def _load(settings: SummarySettings) -> WindowSummarizer:
    """A summarizer with its models in memory."""
    summarizer = WindowSummarizer(settings)
    summarizer.load()
    return summarizer


def summarize_document(file: str, **flags: Any) -> dict[str, Any]:
    """Summarizes a file with one document, or the standard input.

    Args:
      file: its path, or "-".
      **flags: the flags of `precis summarize` that concern summaries and the text.

    Returns:
      The row that `precis summarize --corpus text:FILE` would write, but for the
      columns of the run; the standard input has no file name, and so its id is the hash
      of its text.

    Raises:
      UsageError: no such file, or a flag that goes with a corpus.
      DataError: it holds no text.
    """
    for flag in option_names(SUMMARIZE):
        is_of_text = flag in (*option_names(SUMMARY_OPTIONS), *_OF_THE_TEXT)
        if flag in flags and (flag in NOT_FOR_A_TEXT or not is_of_text):
            raise UsageError(
                f"--{flag} goes with a corpus, and --text {file} is one document whose "
                "summary is printed; leave one of them out"
            )
    of_text = {name: flags.pop(name) for name in _OF_THE_TEXT if name in flags}
    article = read_document(file, of_text)
    return summarize_article(article, flags, clean=of_text.get("clean", "standard"))


def read_document(file: str, of_text: Mapping[str, Any]) -> Article:
    """The article of a file, or of the standard input.

    Args:
      file: its path, or "-".
      of_text: the flags that concern the text.

    Raises:
      UsageError: there is no such file.
      DataError: it holds no text.
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
            f"{file}: it cannot be read ({error.strerror or error}); name one document "
            "in plain text, - for the standard input, or many by --corpus 'text:*.txt'"
        ) from error
    document = to_document(path, raw, options)
    if isinstance(document, Document) and file != STANDARD_INPUT:
        document = document._replace(document_id=document_id(path, file))
    record = TaskReader(Task(0, "text"), options).to_article(document, raw)
    # A file may be UTF-8 by chance, as some PDF files are.
    shown = "FILE" if file == STANDARD_INPUT else shlex.quote(file)
    other = other_format(raw, shown, is_text=True)
    if other:
        raise DataError(f"{name}: it is {other}")
    if not isinstance(record, Article):
        way_out = ""
        if record.reason == "invalid_utf8":
            way_out = f"; it reads as {fitting_encoding(raw)}: save it as UTF-8"
        raise DataError(f"{name}: {record.reason}: {record.detail}{way_out}")
    if not record.body or "\0" in record.document.article:
        raise DataError(
            f"{name}: it holds no text, or null characters as a binary file does; give "
            "an article in plain text"
        )
    return record


def as_json(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON: its values as Parquet has them, its columns in the order
    of docs/SCHEMA.md.
    """
    from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

    (stored,) = summary_table([dict(row)], SUMMARY_SCHEMA).to_pylist()
    return json.dumps(stored, ensure_ascii=False, allow_nan=False)
