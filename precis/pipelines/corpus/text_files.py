"""`text:GLOB`: text files with one document each."""

import importlib
import posixpath
from collections.abc import Iterator, Sequence

from precis.model import files
from precis.model.config import install_command
from precis.model.text.document import Document
from precis.pipelines.corpus import listing
from precis.pipelines.corpus.formats import HTML, OTHER_FORMAT, STAND_INS, other_format
from precis.pipelines.corpus.opening import open_source, written_name
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.records import undecodable
from precis.pipelines.corpus.task import (
    COMPLEX_HTML,
    TOO_LARGE,
    CorpusFile,
    DeadLetter,
    Place,
    ReadRecord,
    Task,
    unread,
)


def list_tasks(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[Task]:
    """Groups the files into tasks of about `task_bytes`."""
    for file in corpus_files[:1]:
        with open_source(file.path) as opened:
            if other_format(opened.read(1000), "FILE") == HTML:
                importlib.import_module("precis.model.text.html")
    groups = listing.groups_of(
        corpus_files, lambda file: file.size_bytes, options.task_bytes
    )
    return [listing.files_task(group) for group in groups]


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task."""
    bytes_read = 0
    for path in task.paths:
        with open_source(path) as file:
            raw = file.read(options.max_record_bytes + 1)
        bytes_read += len(raw)
        content = to_document(path, raw, options)
        if isinstance(content, Document):
            content = content._replace(document_id=document_id(path, task.where))
        yield ReadRecord(content, bytes_read / max(task.size_bytes, 1), raw)


def to_document(path: str, raw: bytes, options: CorpusOptions) -> Document | DeadLetter:
    """Turns a file into a document without id, or a dead letter.

    Args:
      path: the path of the file.
      raw: the bytes of the file; more than `max_record_bytes` are too many.
      options: the encoding and the maximum size.
    """
    place = Place(path, "file")
    most = options.max_record_bytes
    if len(raw) > most:
        detail = f"the file has more than {most:,} bytes (--max_record_mb)"
        return unread(place, TOO_LARGE, detail)
    other = other_format(raw, "FILE")
    if other == HTML:
        return _page_to_document(raw, place, options)
    try:
        # Drop the byte order mark.
        is_utf_8 = options.encoding == "utf-8"
        text = raw.decode("utf-8-sig" if is_utf_8 else options.encoding)
    except UnicodeDecodeError as error:
        letter = undecodable(error, "", place)
        return letter._replace(detail=f"it is {other}") if other else letter
    if other and ("\0" in text or other in STAND_INS):
        return unread(place, OTHER_FORMAT, f"the file is {other}")
    return Document("", "", text, None, {}, *place)


def _page_to_document(
    raw: bytes, place: Place, options: CorpusOptions
) -> Document | DeadLetter:
    try:
        from precis.model.text import html

        text = html.decode(raw)
        if options.clean != "html":  # Otherwise `Article` does it.
            text = html.to_text(text)
    except ModuleNotFoundError:
        install = install_command("web")
        detail = f"the file is an HTML page, whose text needs a package; {install}"
        return unread(place, OTHER_FORMAT, detail)
    except ValueError as error:
        return unread(place, COMPLEX_HTML, str(error))
    return Document("", "", text, None, {}, *place)


def document_id(path: str, pattern: str) -> str:
    """The path below the pattern's fixed folder, which is unique to the file.

    The extension is left out if the pattern ends with it:

    news/*/*.txt   news/2024/storm.txt  ->  2024/storm
    news/*/*       news/2024/storm.txt  ->  2024/storm.txt
    """
    # The path is absolute; the pattern may be relative or begin with `~`.
    root = listing.fixed_root(pattern) or "."
    if files.is_local(pattern):
        root = written_name(listing.absolute_path(root))
    else:
        _, root = files.filesystem(root)
        _, path = files.filesystem(path)
    below_root = posixpath.relpath(path, root)
    return below_root.removesuffix(posixpath.splitext(pattern)[1])
