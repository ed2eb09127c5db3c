"""`precis summarize --text FILE`: reads a document, gives its row, without a run."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import TOO_LARGE
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import EmptyArticle, FileFailure, Task, Unreadable
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.corpus.text_files import decode, whole_file
from precis.pipelines.flags.flags import option_names, read_flags
from precis.pipelines.options.one_document import STANDARD_INPUT
from precis.pipelines.options.summarize import NOT_FOR_A_TEXT, SUMMARIZE
from precis.pipelines.summarize.summarize_text import summarize_article
from precis.pipelines.summarize.summary_settings import SUMMARY_OPTIONS

# The flags of a corpus that concern the text of one document.
_OF_THE_TEXT = ("clean", "strip_boilerplate", "max_record_mb")
_READS_INPUT = "precis summarize --text -"
# What begins with these bytes is no plain text; the words say what it is, and how it
# becomes text.
_OTHER_FORMATS = {
    b"%PDF-": f"a PDF; `pdftotext FILE - | {_READS_INPUT}` reads its text",
    b"\x1f\x8b": f"compressed by gzip; `gunzip -c FILE | {_READS_INPUT}` reads it",
    b"PK\x03\x04": "a zip file, as .docx, .odt and .epub are; save it as plain text",
    b"PAR1": "Parquet; --corpus parquet:FILE reads its rows",
    b"{\\rtf": "rich text; save it as plain text",
    b"\xff\xfe": f"UTF-16; `iconv -f UTF-16 -t UTF-8 FILE | {_READS_INPUT}` reads it",
    b"\xfe\xff": f"UTF-16; `iconv -f UTF-16 -t UTF-8 FILE | {_READS_INPUT}` reads it",
}


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
    of_text = {name: flags.pop(name) for name in _OF_THE_TEXT if name in flags}
    corpus = file if file != STANDARD_INPUT else "standard input"
    (options,) = read_flags([CorpusOptions], {"corpus": f"text:{corpus}", **of_text})
    is_input = file == STANDARD_INPUT
    record = _read_input(options) if is_input else _read_file(file, options)
    if isinstance(record, Unreadable):
        raise DataError(f"{_name(file)}: {_fault(file, record)}")
    if isinstance(record, EmptyArticle) or not record.body:
        raise DataError(
            f"{_name(file)} holds no text to summarize; give it an article in plain "
            "text"
        )
    _refuse_binary(file, record)
    return summarize_article(
        record,
        flags,
        cleaning={
            "clean": options.clean,
            "strip_boilerplate": options.strip_boilerplate,
        },
    )


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
    known = {*option_names(SUMMARY_OPTIONS), *_OF_THE_TEXT} - set(NOT_FOR_A_TEXT)
    for flag in flags:
        is_of_corpus = flag in option_names(SUMMARIZE)
        if is_of_corpus and flag not in known:
            raise UsageError(
                f"--{flag} goes with --corpus, and not with one document ({name}); "
                "leave it out"
            )


def _name(file: str) -> str:
    return "the standard input" if file == STANDARD_INPUT else file


def _read_input(options: CorpusOptions) -> Article | Unreadable:
    content = sys.stdin.buffer.read(options.max_record_bytes + 1)
    text = decode(STANDARD_INPUT, content, options.max_record_bytes)
    if isinstance(text, Unreadable):
        return text
    document = Document("", "", text, None, {}, *whole_file(STANDARD_INPUT))
    return TaskReader(Task(0, "text", ()), options).to_article(document, content)


def _read_file(
    path: str, options: CorpusOptions
) -> Article | EmptyArticle | Unreadable:
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
        records = [
            record
            for task in list_tasks(options)
            for record in TaskReader(task, options)
        ]
    except FileFailure as failure:
        raise DataError(str(failure)) from failure
    (record,) = records
    return record


def _fault(file: str, record: Unreadable) -> str:
    """What is wrong with a document that cannot be read, and the way out."""
    other = _other_format(file, record.raw)
    if other:
        return f"it is {other}"
    if record.reason == "invalid_utf8":
        return (
            f"it is no UTF-8 ({record.detail}); `iconv -f WINDOWS-1252 -t UTF-8 "
            f"{_quoted(file)} | {_READS_INPUT}` reads the most frequent other encoding"
        )
    if record.reason == TOO_LARGE:
        return f"{record.detail}; raise --max_record_mb to read it as one document"
    return (
        f"it cannot be read ({record.reason}: {record.detail}); give a file with plain "
        f"text, or pipe the text: `cat {_quoted(file)} | {_READS_INPUT}`"
    )


def _other_format(file: str, raw: bytes) -> str:
    for beginning, words in _OTHER_FORMATS.items():
        if raw.startswith(beginning):
            return words.replace("FILE", _quoted(file))
    return ""


def _quoted(file: str) -> str:
    """The file as a shell takes it."""
    return "FILE" if file == STANDARD_INPUT else shlex.quote(file)


def _refuse_binary(file: str, article: Article) -> None:
    """Refuses a file that is UTF-8 by chance, as some PDF files are.

    Raises:
      DataError: saying what it is.
    """
    text = article.document.article
    other = _other_format(file, text[:8].encode(errors="replace"))
    if other:
        raise DataError(f"{_name(file)}: it is {other}")
    if "\0" in text:
        raise DataError(
            f"{_name(file)} holds null characters, so it is a binary file or UTF-16; "
            "give plain text in UTF-8"
        )


def as_json(row: Mapping[str, Any]) -> str:
    """A row as a line of JSON: its values as Parquet has them, its columns in the order
    of docs/SCHEMA.md.
    """
    from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

    (stored,) = summary_table([dict(row)], SUMMARY_SCHEMA).to_pylist()
    return json.dumps(stored, ensure_ascii=False, allow_nan=False)
