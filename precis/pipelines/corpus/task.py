"""Tasks, the fields that they read, and what reading them gives."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.model.text.document import Document

# The part of a record that its dead letter keeps.
MAX_RAW_BYTES = 64 << 10
UNREADABLE_SCHEME = "unreadable"
# The reason of a record that is longer than --max_record_mb allows.
TOO_LARGE = "record_too_large"
EMPTY_ARTICLE = "empty_article"
MISSING_FIELD = "missing_field"
WHOLE_FILE = "file"  # in place of a position


class KeptField(NamedTuple):
    """A field of the source that travels along with the document.

    Attributes:
      name: the field.
      kind: one of `kept_fields.KINDS`, `json_text` for text that is JSON already, a
          type with `_found` behind it where the first records of JSON have it, or ""
          where `list_tasks` has yet to find it.
    """

    name: str
    kind: str = ""


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


class CorpusFile(NamedTuple):
    """A file of a corpus as it was when the corpus was listed.

    Attributes:
      path: as it is written in results: absolute or a URL, valid UTF-8
          (`precis.pipelines.corpus.opening`); `open_source` opens it.
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


class Place(NamedTuple):
    """Where a record stands in the corpus.

    Attributes:
      source_file: the path of the file.
      source_position: the position in it, as `byte 1234` (of the uncompressed file),
          `row group 0 row 17`, `record 5`, or `file` for all of it.
    """

    source_file: str
    source_position: str


class Task(NamedTuple):
    """A piece of a corpus that one worker reads without a break; minutes of work.

    Attributes:
      number: position among the tasks of the corpus; names the output.
      scheme: a row of `SCHEMES`, or UNREADABLE_SCHEME for files that could not be read
          when the corpus was listed. A module of a scheme leaves it empty.
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
      only: the positions of the records to read, by file, as in `Place`; None where all
          are read.
      pieces: tasks that are read one after another in its place; `files` are theirs.
      left_out: how many records of each file `--sample` did not draw; they are counted
          and not read.
      where: what `--corpus` says behind the scheme.
      dialect: of a csv file: the delimiter, the quote and where a backslash escapes.
    """

    number: int = 0
    scheme: str = ""
    files: tuple[CorpusFile, ...] = ()
    start: int = 0
    stop: int = -1
    split: str = ""
    fields: Fields = Fields()
    version: str = ""
    size_bytes: int = 0
    only: Mapping[str, Sequence[str]] | None = None
    pieces: tuple["Task", ...] = ()
    left_out: Mapping[str, int] = {}
    where: str = ""
    dialect: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files."""
        return tuple(file.path for file in self.files)


def position_numbers(position: str) -> tuple[int, ...]:
    """The numbers of a position, which order those of a file: none for the whole file.

    row group 2 row 17 -> (2, 17)
    """
    return tuple(map(int, re.findall(r"\d+", position)))


def may_hold(task: Task, position: str) -> bool:
    """Whether the record at a position may be among those of a task that reads its
    file: the range of a task and the first number of a position have the same unit.
    """
    first = (*position_numbers(position), task.start)[0]
    return task.start <= first and (task.stop == -1 or first < task.stop)


class DeadLetter(NamedTuple):
    """A record or document that ended before its result.

    Attributes:
      stage: where it ended, as in `read`.
      reason: a short constant name; dead letters are counted by it.
      detail: one line that says what was wrong, without the document's text.
      document_id: None where there was no document yet, or it has no id of its own.
      source_file: the file it stands in; "" where there is none.
      source_position: its place in that file, as in `byte 1234`.
      raw: the record's bytes, cut at 64 KiB, or None.
      records: how many records are lost: this one and those that follow it in the file,
          lost for the same reason.
      error_class: the name of the exception, or None where there was none.
      retryable: whether the same record may succeed another time: the machine failed,
          not the data.
      content_sha256: as in the summaries; None where no text was read.
    """

    stage: str
    reason: str
    detail: str
    document_id: str | None = None
    source_file: str = ""
    source_position: str = ""
    raw: bytes | None = None
    records: int = 1
    error_class: str | None = None
    retryable: bool = False
    content_sha256: str | None = None


def unread(place: Place, reason: str, detail: str, records: int = 1) -> DeadLetter:
    """The dead letter of a record that cannot be read as a document."""
    return DeadLetter("read", reason, detail, None, *place, records=records)


def unread_file(path: str, reason: str, detail: str) -> DeadLetter:
    """The dead letter of a file that fails its task; it may be read another time."""
    return unread(Place(path, WHOLE_FILE), reason, detail)._replace(retryable=True)


class FileError(DataError):
    """A file was changed, removed or damaged since its corpus was listed.

    The task that reads it has no result but this dead letter. The number of records
    that are lost with it is not known.

    Attributes:
      letter: of the file, with the reason `file_changed` or `file_unreadable`.
    """

    def __init__(self, letter: DeadLetter) -> None:
        super().__init__(letter)
        self.letter = letter

    def __str__(self) -> str:
        return f"{self.letter.source_file}: {self.letter.detail}"


def empty_article(document: Document) -> DeadLetter:
    """The dead letter of a document that has no text to summarize."""
    place = Place(document.source_file, document.source_position)
    letter = unread(place, EMPTY_ARTICLE, "the article has no text")
    return letter._replace(document_id=document.document_id or None)


# The fields of a document that a program has made, and the types of their values.
_DOCUMENT_TYPES: dict[str, type | tuple[type, ...]] = {
    "document_id": str,
    "split": str,
    "article": str,
    "highlights": (str, type(None)),
}


def to_article(document: Document, *, clean: str) -> Article | DeadLetter:
    """The article of a document that a program has made, or its dead letter; without an
    id, the document has the hash of its content.

    Args:
      document: the document, with values of any type.
      clean: as in `Article`.
    """
    has_id = isinstance(document.document_id, str)
    for name, kinds in _DOCUMENT_TYPES.items():
        value = getattr(document, name)
        if not isinstance(value, kinds):
            detail = f"{name!r} holds a value of type {type(value).__name__}"
            document_id = document.document_id if has_id else None
            return DeadLetter("read", "wrong_type", detail, document_id)
        try:
            str(value).encode()
        except UnicodeEncodeError:
            detail = f"{name!r} holds half of a surrogate pair, which is no character"
            return DeadLetter("read", "invalid_text", detail)
    article = Article(document, clean=clean)
    if not article.body:
        return empty_article(document)
    if document.document_id:
        return article
    return article.with_id_and_split(article.content_sha256, document.split)


class ReadRecord(NamedTuple):
    """A record as the module of a scheme reads it.

    Attributes:
      content: the document, or why there is none.
      share: how much of its task is read with it, from 0 to 1: the share of the bytes
          on disk, compressed ones where the file is compressed, or of the records where
          the files are cut by record.
      raw: the record's bytes, where they cost nothing; its dead letter keeps them.
    """

    content: Document | DeadLetter
    share: float
    raw: bytes = b""


class Position(NamedTuple):
    """How far a task is read.

    Attributes:
      records: those read so far, the unreadable ones included.
      share: how much of the task they are, from 0 to 1, as in `ReadRecord`.
    """

    records: int = 0
    share: float = 0.0
