"""Reads the articles of a task."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.compression import codec_of
from precis.pipelines.corpus.lines import UTF_16
from precis.pipelines.corpus.opening import check_unchanged, file_error
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.records import folder_values
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.corpus.task import (
    COMPLEX_HTML,
    MAX_RAW_BYTES,
    UNREADABLE_SCHEME,
    DeadLetter,
    Place,
    Position,
    ReadRecord,
    Task,
    empty_article,
    may_hold,
    position_numbers,
    unread,
)

_SPLIT_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")  # It becomes part of file names.


class TaskReader:
    """Iterates over the articles of a task, each with id and split, and its dead
    letters: records that are not documents, and documents without text.

    An article without an id gets its content hash as id. With `options.split` only the
    articles of that split are returned; an unreadable record has no split and is always
    returned. Consecutive dead letters that differ only in their position are combined
    into one.

    Iterating raises `FileError` if a file of the task cannot be read or has changed
    after it was listed, at the latest after the last record. Then the records before it
    must not be used.

    Attributes:
      position: the position in the task after the last record that was read.
      share: the share of the task that is read, from 0 to 1, regardless of `--limit`.
      read: the number of records read, by source file, including those left out.
      other_split: the number of documents, by source file, that were left out because
          they are not in `options.split`.
      not_selected: the number of records that `--sample` did not draw, by source file.
    """

    def __init__(self, task: Task, options: CorpusOptions) -> None:
        self.position = Position()
        self.share = 0.0
        self.read: Counter[str] = Counter(task.left_out)
        self.other_split: Counter[str] = Counter()
        self.not_selected: Counter[str] = Counter(task.left_out)
        self._task = task
        self._options = options

    def __iter__(self) -> Iterator[Article | DeadLetter]:
        for kind, alike in groupby(self._records(), _kind_of):
            if isinstance(kind, DeadLetter):
                first, self.position = next(alike)
                records = first.records
                for letter, self.position in alike:
                    records += letter.records
                yield first._replace(records=records)
            else:
                for record, self.position in alike:
                    if record is not None:
                        yield record

    def _records(self) -> Iterator[tuple[Any, Position]]:
        """The records, with the position after each; None for those left out."""
        records = documents = 0
        limit = self._options.limit
        for content, share, raw in read_records(self._task, self._options):
            record = self.to_article(content, raw)
            is_asked_for = self._is_asked_for(record)
            if isinstance(record, Article) and is_asked_for:
                if record.body:
                    documents += 1
                else:
                    document = record.document
                    if document.document_id == record.content_sha256:
                        # Without text, the hash cannot be an id.
                        document = document._replace(document_id="")
                    record = empty_article(document)
                    record = _with_raw(record, raw) if raw else record
            lost = content.records if isinstance(content, DeadLetter) else 1
            self.read[content.source_file] += lost
            records += lost if is_asked_for else 0
            self.other_split[content.source_file] += not is_asked_for
            self.share = share
            if limit:
                share = max(share, documents / limit)
            yield record if is_asked_for else None, Position(records, share)
            if limit and documents == limit:
                _check_read(self._task, self.read)
                return

    def to_article(
        self, content: Document | DeadLetter, raw: bytes
    ) -> Article | DeadLetter:
        """The article of a record, with id and split, or a dead letter with the
        record's bytes.
        """
        if isinstance(content, DeadLetter):
            return _with_raw(content, content.raw or raw)
        options = self._options
        try:
            article = Article(content, options.text_settings)
        except ValueError as error:
            return _with_raw(unread(_place(content), COMPLEX_HTML, str(error)), raw)
        document_id = content.document_id or article.content_sha256
        split = self._task.split or content.split
        split = split or folder_values(content.source_file).get("split") or ""
        split = split or split_of(document_id, options)
        if _SPLIT_NAME.fullmatch(split):
            return article.with_id_and_split(document_id, split)
        # A field of text may have been given as the split field.
        detail = (
            f"the split is {split[:80]!r}, but must be at most 40 letters, digits and "
            "underscores, because files are named after it"
        )
        return _with_raw(unread(_place(content), "bad_split", detail), raw)

    def is_document(self, content: Document) -> bool:
        """Whether a record has a text and is in the requested split."""
        record = self.to_article(content, b"")
        is_article = isinstance(record, Article) and bool(record.body)
        return is_article and self._is_asked_for(record)

    def _is_asked_for(self, record: Article | DeadLetter) -> bool:
        if isinstance(record, DeadLetter):
            return True
        return self._options.split in ("", record.document.split)


def split_of(document_id: str, options: CorpusOptions) -> str:
    """The split by the hash of a document's id, the same in every run.

    The hash is a number from 0 to 1. With a validation share of 0.2 and a test share of
    0.3:

        0          0.2         0.5                  1
        | validation |   test   |       train       |
    """
    digest = hashlib.sha256(f"{options.seed}:{document_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < options.validation_share:
        return "validation"
    return "test" if place < options.validation_share + options.test_share else "train"


def read_records(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task.

    If the task names its records, reading stops after the last of them.

    Raises:
      FileError: a file of the task cannot be read or has changed since it was listed.
    """
    if task.only is None:
        yield from _read(task, options)
        return
    missing = {Place(path, each) for path in task.only for each in task.only[path]}
    for record in _read(task, options):
        place = _place(record.content)
        if place in missing:
            missing.remove(place)
            yield record
        if not missing:
            _check_read(task, task.only)
            return


def _kind_of(read: tuple[Any, Position]) -> object:
    """A key that is equal for dead letters that can be combined."""
    record = read[0]
    if isinstance(record, DeadLetter):
        return record._replace(source_position="", records=0)
    return read


def _with_raw(letter: DeadLetter, raw: bytes) -> DeadLetter:
    return letter._replace(raw=raw[:MAX_RAW_BYTES])


def _place(content: Document | DeadLetter) -> Place:
    return Place(content.source_file, content.source_position)


def _read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the records of a task; records that it does not name may be left out.

    Raises:
      FileError: a file differs from the listed one, before or after reading, or cannot
          be read.
    """
    if task.pieces:
        sizes = [piece.size_bytes + 1 for piece in task.pieces]
        before, total = 0, sum(sizes)
        for piece, size in zip(task.pieces, sizes, strict=True):
            for record in _read(piece._replace(only=task.only), options):
                share = (before + size * record.share) / total
                yield record._replace(share=share)
            before += size
        return
    if task.scheme == UNREADABLE_SCHEME:
        for number, file in enumerate(task.files, start=1):
            letter = unread(Place(file.path, "file"), file.problem, file.detail)
            yield ReadRecord(letter, number / len(task.files))
        return
    if task.only is not None:
        files = tuple(file for file in task.files if file.path in task.only)
        if task.files and not files:
            return
        task = task._replace(files=files)
    scheme = SCHEMES[task.scheme].load()
    check_unchanged(task.files)
    try:
        for start, stop in _ranges(task, options):
            yield from scheme.read(task._replace(start=start, stop=stop), options)
    except OSError as error:
        check_unchanged(task.files)
        raise file_error(error, task.files) from error
    except Exception:
        # The cause may be that the file was cut while it was read.
        check_unchanged(task.files)
        raise
    check_unchanged(task.files)


def _ranges(task: Task, options: CorpusOptions) -> list[tuple[int, int]]:
    """The range of a task, or the ranges of the few records that it reads."""
    whole = [(task.start, task.stop)]
    seek_bytes = SCHEMES[task.scheme].seek_bytes
    is_transformed = options.encoding == UTF_16 or any(map(codec_of, task.paths))
    if task.only is None or not seek_bytes or is_transformed:
        return whole
    named = [task.only[path] for path in task.paths or task.only]
    held = [each for places in named for each in places if may_hold(task, each)]
    firsts = {position_numbers(each)[0] for each in held}
    if len(firsts) * seek_bytes > task.size_bytes:
        return whole
    return [(first, first + 1) for first in sorted(firsts)]


def _check_read(task: Task, read: Collection[str]) -> None:
    """Checks the files that a task has read so far, before it ends."""
    check_unchanged(
        [file for file in task.files if file.path in read and not file.problem]
    )
