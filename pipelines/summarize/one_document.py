"""The summaries of one document, without a run: `precis.summarize_text`, and `precis
summarize --text FILE`.
"""

import functools
import json
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError, JobError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.clean import check_cleaning
from precis.pipelines.corpus.formats import fitting_encoding, other_format
from precis.pipelines.corpus.options import CLEANING_FLAGS, CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import (
    EMPTY_ARTICLE,
    TOO_LARGE,
    DeadLetter,
    FileFailure,
    Task,
)
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.corpus.text_files import to_document
from precis.pipelines.flags.flags import option_names, read_flags
from precis.pipelines.options.one_document import STANDARD_INPUT
from precis.pipelines.options.summarize import NOT_FOR_A_TEXT, SUMMARIZE
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.summarize.extractive_summaries import ORACLE
from precis.pipelines.summarize.summary_settings import (
    SUMMARY_OPTIONS,
    SummarySettings,
    read_settings,
)
from precis.pipelines.summarize.window_summarizer import WindowSummarizer

# Two sets of settings, such as two networks to compare, stay loaded.
_MOST_LOADED = 2
# The flags of a corpus that concern the text of one document.
_OF_THE_TEXT = ("clean", "strip_boilerplate", "max_record_mb", "encoding")
_READS_INPUT = "precis summarize --text -"
_EMPTY = "it holds no text to summarize; give it an article in plain text"
_NULLS = (
    "it holds null characters, so it is a binary file or UTF-16; give plain text in "
    "UTF-8"
)


def summarize_text(
    text: str,
    *,
    clean: str = "standard",
    strip_boilerplate: bool = True,
    **flags: Any,
) -> dict[str, Any]:
    """Summarizes one document.

        row = precis.summarize_text(article, bundle="bundle", beam_width=6)
        print(row["summary"], row["quality_flags"])

    A bundle is loaded at the first call and kept, so later calls take only the time of
    the search. For many documents `precis.summarize` is faster by far.

    Args:
      text: the document.
      clean: as `--clean` of `precis summarize`: standard or none.
      strip_boilerplate: leave out agency lines, as `precis summarize` does.
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
    check_cleaning(clean)
    cleaning: dict[str, Any] = {"clean": clean, "strip_boilerplate": strip_boilerplate}
    article = Article.from_text(text, **cleaning)
    if not article.body:
        raise UsageError("the text cannot be summarized: the article has no text")
    article = article.with_id_and_split(article.content_sha256, "")
    return summarize_article(article, flags, cleaning=cleaning)


def summarize_article(
    article: Article, flags: Mapping[str, Any], *, cleaning: Mapping[str, Any]
) -> dict[str, Any]:
    """The row of an article with a text.

    Args:
      article: with its id and its split.
      flags: as those of `summarize_text`.
      cleaning: as in `SummarySettings`.

    Raises:
      UsageError: an invalid flag or bundle, or a method that needs a reference.
      JobError: the summary cannot be made.
    """
    # A search process would take longer to start than one document to search.
    settings = read_settings({"search_processes": 1, **flags}, cleaning=cleaning)
    if ORACLE in settings.options.methods:
        raise UsageError(
            "--extractive oracle chooses sentences by a reference summary, and one "
            "document has none; name other methods, as in --extractive lexrank,lead"
        )
    if settings.options.bundle or settings.options.extractive_bundle:
        load_tensorflow()
    (window,) = _load(settings).summarize([article])
    for letter in window.letters:
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
      UsageError: a flag that goes with a corpus, or no such file.
      DataError: it holds no text.
    """
    check_flags(file, flags)
    is_input = file == STANDARD_INPUT
    corpus = "standard input" if is_input else file
    of_text = {name: flags.pop(name) for name in _OF_THE_TEXT if name in flags}
    (options,) = read_flags([CorpusOptions], {"corpus": f"text:{corpus}", **of_text})
    record = _read_input(options) if is_input else _read_file(file, options)
    fault = _fault("FILE" if is_input else shlex.quote(file), record)
    if fault or not isinstance(record, Article):
        raise DataError(f"{_name(file)}: {fault}")
    cleaning = {name: getattr(options, name) for name in CLEANING_FLAGS}
    return summarize_article(record, flags, cleaning=cleaning)


def check_flags(file: str, flags: Mapping[str, Any]) -> None:
    """Refuses flags that go with a corpus.

    Raises:
      UsageError: with the way out.
    """
    name = _name(file)
    if "corpus" in flags:
        raise UsageError(
            f"{name} is one document and --corpus {flags['corpus']} many; leave one of "
            "them out"
        )
    if "output" in flags:
        raise UsageError(
            f"the summary of one document ({name}) is printed, so --output has nothing "
            "to hold; leave it out and write `> summary.txt` behind the command, or "
            "name --corpus 'text:*.txt' in place of --text for a folder with Parquet"
        )
    of_text = {*option_names(SUMMARY_OPTIONS), *_OF_THE_TEXT} - set(NOT_FOR_A_TEXT)
    for flag in flags:
        if flag in option_names(SUMMARIZE) and flag not in of_text:
            raise UsageError(
                f"--{flag} goes with --corpus, and not with one document ({name}); "
                "leave it out"
            )


def _name(file: str) -> str:
    return "the standard input" if file == STANDARD_INPUT else file


def _read_input(options: CorpusOptions) -> Article | DeadLetter:
    content = sys.stdin.buffer.read(options.max_record_bytes + 1)
    document = to_document(STANDARD_INPUT, content, options)
    return TaskReader(Task(0, "text", ()), options).to_article(document, content)


def _read_file(path: str, options: CorpusOptions) -> Article | DeadLetter:
    """The document of a file, as a run over it reads it."""
    if not files.exists(path):
        raise UsageError(
            f"{path}: there is no such file; name one document, - for the standard "
            "input, or many by --corpus 'text:*.txt'"
        )
    if files.is_local(path) and os.path.isdir(path):
        raise UsageError(
            f"{path} is a folder; name one document, or all of it by --corpus "
            f"'text:{os.path.join(path, '*.txt')}'"
        )
    try:
        (task,) = list_tasks(options)
        (record,) = TaskReader(task, options)
    except FileFailure as failure:
        raise DataError(str(failure)) from failure
    return record


def _fault(file: str, record: Article | DeadLetter) -> str:
    """Why a document cannot be summarized, and the way out; "" where it can.

    Args:
      file: its path as a shell takes it.
      record: the document.
    """
    if isinstance(record, DeadLetter):
        raw = record.raw or b""
    else:  # A file may be UTF-8 by chance, as some PDF files are.
        raw = record.document.article[:1000].encode(errors="replace")
    other = other_format(raw, file, is_text=True)
    if other:
        return f"it is {other}"
    if isinstance(record, Article):
        if not record.body:
            return _EMPTY
        return _NULLS if "\0" in record.document.article else ""
    if record.reason == EMPTY_ARTICLE:
        return _EMPTY
    if record.reason == "invalid_utf8":
        encoding = fitting_encoding(raw)
        way_out = f"; --encoding {encoding} fits" if encoding else ""
        return f"it is no UTF-8 ({record.detail}){way_out}"
    if record.reason == TOO_LARGE:
        return f"{record.detail}; raise --max_record_mb to read it as one document"
    return (
        f"it cannot be read ({record.reason}: {record.detail}); give a file with plain "
        f"text, or pipe the text: `cat {file} | {_READS_INPUT}`"
    )


def as_json(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON: its values as Parquet has them, its columns in the order
    of docs/SCHEMA.md.
    """
    from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

    (stored,) = summary_table([dict(row)], SUMMARY_SCHEMA).to_pylist()
    return json.dumps(stored, ensure_ascii=False, allow_nan=False)
