"""Tasks, the fields that they read, and what reading them gives."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import KeptField


class Fields(NamedTuple):
    """Names of the fields of a record in the user's files; empty if there is none.

    Attributes:
      article, highlights, document_id, split: names.
      kept: the fields that travel along with the document.
    """

    article: str = "article"
    highlights: str = "highlights"
    document_id: str = "id"
    split: str = ""
    kept: tuple[KeptField, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The names of all fields to read."""
        kept = (field.name for field in self.kept)
        return frozenset(filter(None, (*self[:4], *kept)))


class SourceFile(NamedTuple):
    """A file of a corpus as it was when the corpus was listed.

    Attributes:
      path: as it is written in results: absolute or a URL, valid UTF-8
          (`precis.pipelines.corpus.names`); `open_source` opens it.
      size_bytes: as stored.
      version: what changes when the content does, and only then: the checksum of a
          local file; of an object the checksum, etag or generation that its store has.
      stamp: what changes when a local file is written to or replaced, but also when it
          is only touched: times and inode. It is no part of a job's fingerprint. Empty
          where it cannot be relied on; `version` decides there.
      problem: why the file cannot be read, a short constant name; "" if it can.
      detail: the problem in words.
    """

    path: str
    size_bytes: int
    version: str
    stamp: str = ""
    problem: str = ""
    detail: str = ""


class FileFailure(Exception):
    """A file was changed, removed or damaged since its corpus was listed.

    The task that reads it has no result. The number of records that are lost with it is
    not known.

    Attributes:
      path: the file, as in `SourceFile`.
      reason: `file_changed` or `file_unreadable`.
      detail: one line that says what happened.
    """

    def __init__(self, path: str, reason: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[Any, ...]:
        return FileFailure, (self.path, self.reason, self.detail)


class RetriedFile(NamedTuple):
    """The records of a file that are read again, and no others.

    Attributes:
      positions: of the records, as in `Place`.
      begin: the numbers of a position from which on all records are read; None where
          there is no such position.
    """

    positions: frozenset[str]
    begin: tuple[int, ...] | None


class Place(NamedTuple):
    """Where a record stands in the corpus.

    Attributes:
      source_file: the path of the file.
      source_position: the position in it, as `byte 1234` (of the uncompressed file),
          `row group 0 row 17`, `record 5`, or `file` for all of it.
    """

    source_file: str
    source_position: str


class Selection(NamedTuple):
    """The records of a task that `--limit` or `--sample` takes.

    Attributes:
      drawn: their positions, by file; None where all are taken up to `last`.
      last: behind this record nothing is read; None where the task is read to its end.
    """

    drawn: Mapping[str, frozenset[str]] | None = None
    last: Place | None = None

    def takes(self, place: Place) -> bool:
        """Whether the record at a place is taken."""
        if self.drawn is None:
            return True
        return place.source_position in self.drawn.get(place.source_file, ())


class Task(NamedTuple):
    """A piece of a corpus that one worker reads without a break; minutes of work.

    Attributes:
      number: position among the tasks of the corpus; names the output.
      scheme: the source's scheme, as in `jsonl`, or `unreadable` for files that could
          not be read when the corpus was listed.
      files: the files read, in order. Empty for the built-in corpus.
      start, stop: the half-open range within the corpus or file; its unit (byte,
          record, row group) is the scheme's. stop is -1 where the range goes to the
          end.
      split: the split that all documents of the task belong to, or "" if the document
          or the hash of its id decides.
      fields: names of the record's fields.
      version: changes when the content of the files does. For the job's fingerprint.
      size_bytes: about how much there is to read, for progress; as it lies on disk
          where the scheme can tell.
      only: the records to read, by file; None for all.
      pieces: tasks that are read one after another in its place; `files` are theirs.
      selected: the records to take; None for all.
    """

    number: int
    scheme: str
    files: tuple[SourceFile, ...]
    start: int = 0
    stop: int = -1
    split: str = ""
    fields: Fields = Fields()
    version: str = ""
    size_bytes: int = 0
    only: Mapping[str, RetriedFile] | None = None
    pieces: tuple["Task", ...] = ()
    selected: Selection | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(file.path for file in self.files)


def position_numbers(position: str) -> tuple[int, ...]:
    """The numbers of a position, which order those of a file: none for the whole file.

    row group 2 row 17 -> (2, 17)
    """
    return tuple(map(int, re.findall(r"\d+", position)))


class Unreadable(NamedTuple):
    """A record of a source that cannot be read as a document.

    Attributes:
      source_file, source_position: as in `Place`.
      reason: a short constant name such as `invalid_json`, by which dead letters are
          counted.
      detail: one line that says what is wrong, without the document's text.
      raw: the record's bytes, cut at 64 KiB.
      records: how many records are lost; more than one if a file is damaged from this
          position on.
    """

    source_file: str
    source_position: str
    reason: str
    detail: str
    raw: bytes
    records: int = 1


class EmptyArticle(NamedTuple):
    """A document without a text to summarize.

    Attributes:
      document: the document. Without an id of its own its id is empty: all empty
          articles have one content hash.
      raw: the record's bytes, cut at 64 KiB, where the reader had them.
    """

    document: Document
    raw: bytes


class ReadRecord(NamedTuple):
    """A record as the module of a scheme reads it.

    Attributes:
      content: the document, or why there is none.
      share: how much of its task is read with it, from 0 to 1: the share of the bytes
          on disk, compressed ones where the file is compressed, or of the records where
          the files are cut by record.
      raw: the record's bytes, cut at 64 KiB, where they cost nothing.
      is_taken: whether it is among the records that its task takes.
    """

    content: Document | Unreadable
    share: float
    raw: bytes = b""
    is_taken: bool = True


class Position(NamedTuple):
    """How far a task is read.

    Attributes:
      records: those read so far, the unreadable ones included.
      share: how much of the task they are, from 0 to 1, as in `ReadRecord`.
    """

    records: int = 0
    share: float = 0.0
