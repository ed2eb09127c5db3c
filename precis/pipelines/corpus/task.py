"""Tasks, the fields that they read, and the results of reading."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model.errors import DataError
from precis.model.text.document import Document, TextSettings
from precis.pipelines.corpus.values import id_text

if TYPE_CHECKING:
    from precis.model.text.article import Article

# The part of a record that its dead letter keeps.
MAX_RAW_BYTES = 64 << 10
UNREADABLE_SCHEME = "unreadable"
# The reason for a record that is longer than --max_record_mb.
TOO_LARGE = "record_too_large"
EMPTY_ARTICLE = "empty_article"
MISSING_FIELD = "missing_field"
# The reason for a page that would take minutes.
COMPLEX_HTML = "complex_html"
WHOLE_FILE = "file"  # instead of a position


class KeptField(NamedTuple):
    """A field of the corpus that is copied to the results.

    Attributes:
      name: the name of the field.
      kind: a type of `kept_fields.KINDS`, also with a form, as in `date(%d.%m.%Y)`;
          `json_text` for text that is already JSON; a type with the suffix `_found`
          that was inferred from the first JSON records; or "" until `list_tasks` finds
          the type.
    """

    name: str
    kind: str = ""


class Fields(NamedTuple):
    """The names of the fields of a record; empty for a field that is not read.

    Attributes:
      article, highlights, document_id, split: the names of these fields.
      kept: the fields that are copied to the results.
      joins_highlights: whether a list of highlights is one reference, a line each.
    """

    article: str = "article"
    highlights: str = "highlights"
    document_id: str = "id"
    split: str = ""
    kept: tuple[KeptField, ...] = ()
    joins_highlights: bool = False

    def with_lines(self) -> "Fields":
        """These fields, with the suffix `:lines` of the highlights understood."""
        name = self.highlights.removesuffix(":lines")
        return self._replace(highlights=name, joins_highlights=name != self.highlights)

    @property
    def names(self) -> frozenset[str]:
        """The names of all fields to read."""
        kept = (field.name for field in self.kept)
        return frozenset(filter(None, (*self[:4], *kept)))


class CorpusFile(NamedTuple):
    """A file of a corpus, as it was when the corpus was listed.

    Attributes:
      path: the path as results contain it: absolute or a URL, valid UTF-8
          (`precis.pipelines.corpus.opening`); `open_source` opens it.
      size_bytes: the size as stored, compressed or not.
      version: changes if and only if the content changes: the checksum of a local file,
          or the checksum, etag or generation that an object store has.
      stamp: times and inode of a local file, which change when it is written, replaced
          or only touched. Not part of a job's fingerprint. Empty if it is unreliable;
          then `version` decides.
      problem: a constant name for why the file cannot be read; "" if it can.
      detail: the problem in words.
    """

    path: str
    size_bytes: int
    version: str
    stamp: str = ""
    problem: str = ""
    detail: str = ""


class Place(NamedTuple):
    """The position of a record in the corpus.

    Attributes:
      source_file: the path of its file.
      source_position: the position in the file, such as `byte 1234` (uncompressed),
          `row group 0 row 17`, `record 5`, or `file` for the whole file.
    """

    source_file: str
    source_position: str


class Task(NamedTuple):
    """A piece of a corpus that one worker reads at once; minutes of work.

    Attributes:
      number: the number of the task in the corpus; part of output names.
      scheme: a key of `SCHEMES`, or UNREADABLE_SCHEME for files that could not be read
          when the corpus was listed. The module of a scheme leaves it empty.
      files: the files to read, in order; empty for the built-in corpus.
      start, stop: the half-open range in the corpus or file, in the unit of the scheme
          (byte, record, row group). A stop of -1 is the end.
      split: the split of all documents of the task, or "" if the document or the hash
          of its id decides.
      fields: the names of the record's fields.
      version: changes when the content of the files changes; for the job's fingerprint.
      size_bytes: the approximate size to read, for progress; the size on disk if the
          scheme knows it.
      only: the positions of the records to read, by file, as in `Place`; None to read
          all records.
      pieces: tasks to read instead, one after another; `files` are their files.
      left_out: the number of records of each file that `--sample` did not draw; they
          are counted but not read.
      where: the part of `--corpus` after the scheme.
      dialect: for csv: the delimiter, the quote and where a backslash escapes; for
          tfds: the format of the shards.
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
        """The paths of the task's files."""
        return tuple(file.path for file in self.files)


def position_numbers(position: str) -> tuple[int, ...]:
    """The numbers of a position, by which positions sort; none for the whole file.

    row group 2 row 17 -> (2, 17)
    """
    return tuple(map(int, re.findall(r"\d+", position)))


def may_hold(task: Task, position: str) -> bool:
    """Whether a task that reads a file may read the record at a position: the range of
    a task and the first number of a position have the same unit.
    """
    first = (*position_numbers(position), task.start)[0]
    return task.start <= first and (task.stop == -1 or first < task.stop)


class DeadLetter(NamedTuple):
    """A record or document that did not get a result.

    Attributes:
      stage: the stage that failed, such as `read`.
      reason: a constant name; dead letters are counted by reason.
      detail: one line that explains the failure, without the document's text.
      document_id: None if there was no document yet, or it has no id.
      source_file: the file of the record; "" if there is none.
      source_position: the position in that file, such as `byte 1234`.
      raw: the record's bytes, cut at 64 KiB, or None.
      records: the number of lost records: this one and those after it in the file that
          are lost for the same reason.
      error_class: the class of the exception; None if there was none.
      retryable: whether the same record may succeed later, because the machine failed
          and not the data.
      content_sha256: as in the summaries; None if no text was read.
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
    """The dead letter of a file that fails its task; it may be readable later."""
    return unread(Place(path, WHOLE_FILE), reason, detail)._replace(retryable=True)


class FileError(DataError):
    """Raised if a file was changed, removed or damaged after its corpus was listed.

    The task that reads it has only this dead letter as result. How many records are
    lost is unknown.

    Attributes:
      letter: the file's letter, with the reason `file_changed` or `file_unreadable`.
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


def to_article(document: Document, settings: TextSettings) -> "Article | DeadLetter":
    """The article of a document made by a program, or its dead letter. A document
    without id gets the hash of its content.

    Args:
      document: the document, with values of any type.
      settings: as for `Article`.
    """
    from precis.model.text.article import Article

    try:
        document_id = id_text(document.document_id)
    except TypeError as error:
        return DeadLetter("read", "wrong_type", f"'document_id' holds {error}")
    document = document._replace(document_id=document_id)
    texts: list[tuple[str, Any]] = [
        ("document_id", document_id),
        ("split", document.split),
        ("article", document.article),
        ("highlights", "" if document.highlights is None else document.highlights),
        *(("other_highlights", each) for each in document.other_highlights),
    ]
    for name, value in texts:
        if not isinstance(value, str):
            detail = f"{name!r} holds a value of type {type(value).__name__}"
            return DeadLetter("read", "wrong_type", detail, document_id)
        try:
            value.encode()
        except UnicodeEncodeError:
            detail = f"{name!r} holds half of a surrogate pair, not a character"
            return DeadLetter("read", "invalid_text", detail)
    try:
        article = Article(document, settings)
    except ValueError as error:
        return DeadLetter(
            "read", COMPLEX_HTML, str(error), document.document_id or None
        )
    if not article.body:
        return empty_article(document)
    if document_id:
        return article
    return article.with_id_and_split(article.content_sha256, document.split)


class ReadRecord(NamedTuple):
    """A record as the module of a scheme reads it.

    Attributes:
      content: the document, or the dead letter.
      share: the share of its task that is read with it, from 0 to 1: of the bytes on
          disk (compressed, if the file is), or of the records if files are cut by
          record.
      raw: the bytes of the record for its dead letter, if the reader has them anyway.
    """

    content: Document | DeadLetter
    share: float
    raw: bytes = b""


class Position(NamedTuple):
    """The progress of reading a task.

    Attributes:
      records: the number of records read, including unreadable ones.
      share: the share of the task that is read, from 0 to 1, as in `ReadRecord`.
    """

    records: int = 0
    share: float = 0.0
