"""Reads a task of a corpus as articles."""

from collections import Counter
from collections.abc import Iterator, Mapping

from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus import csv_files, jsonl, stories, text_files
from precis.pipelines.corpus.listing import UNREADABLE_SCHEME, read_unreadable
from precis.pipelines.corpus.opening import check_unchanged, file_failure
from precis.pipelines.corpus.options import CorpusOptions, parse_address
from precis.pipelines.corpus.sample import source as sample
from precis.pipelines.corpus.splits import is_split_name, split_of
from precis.pipelines.corpus.task import (
    EmptyArticle,
    Place,
    Position,
    ReadRecord,
    RetriedFile,
    Task,
    Unreadable,
    position_numbers,
)


class TaskReader:
    """Iterates over the articles of a task, each with an id and a split, its empty
    articles and its unreadable records.

    An article without an id has its content hash as the id. With `options.split` only
    the articles of that split are returned; an unreadable record belongs to no split
    and is always returned.

    Iterating raises `FileFailure` where a file of the task cannot be read or is not the
    one that was listed, at the latest behind the last record. The records before it are
    not to be used.

    Attributes:
      position: how far the task is read, behind the record that was read last; its
          `records` leave out those that are not taken.
      read: the records read so far, by source file, those left out included.
      other_split: the documents that were left out, as they are not in
          `options.split`, by source file.
      not_selected: the records that `--sample` did not draw, by source file.
    """

    def __init__(self, task: Task, options: CorpusOptions) -> None:
        self.position = Position()
        self.read: Counter[str] = Counter()
        self.other_split: Counter[str] = Counter()
        self.not_selected: Counter[str] = Counter()
        self._task = task
        self._options = options

    def __iter__(self) -> Iterator[Article | EmptyArticle | Unreadable]:
        records = 0
        for content, share, raw, is_taken in read_records(self._task, self._options):
            lost = content.records if isinstance(content, Unreadable) else 1
            self.read[content.source_file] += lost
            if not is_taken:
                self.not_selected[content.source_file] += lost
                self.position = Position(records, share)
                continue
            record = self.to_article(content, raw)
            if not self._is_asked_for(record):
                self.other_split[content.source_file] += 1
                self.position = Position(records, share)
                continue
            records += lost
            self.position = Position(records, share)
            if isinstance(record, Unreadable) or record.body:
                yield record
            else:
                yield _empty_article(record, raw)

    def to_article(
        self, content: Document | Unreadable, raw: bytes
    ) -> Article | Unreadable:
        """The article of a record, with an id and a split."""
        if isinstance(content, Unreadable):
            return content
        options = self._options
        article = Article(
            content, clean=options.clean, strip_boilerplate=options.strip_boilerplate
        )
        document_id = content.document_id or article.content_sha256
        split = self._task.split or content.split or split_of(document_id, options)
        if is_split_name(split):
            return article.with_id_and_split(document_id, split)
        # A field that holds text may have been named for the split.
        detail = (
            f"the split is {split[:80]!r}; it names files, so it must be of at most 40 "
            "letters, digits and underscores"
        )
        return Unreadable(
            content.source_file, content.source_position, "bad_split", detail, raw
        )

    def is_document(self, content: Document) -> bool:
        """Whether a record has a text, and is of the split that is asked for."""
        record = self.to_article(content, b"")
        is_article = isinstance(record, Article) and bool(record.body)
        return is_article and self._is_asked_for(record)

    def _is_asked_for(self, record: Article | Unreadable) -> bool:
        if isinstance(record, Unreadable):
            return True
        return self._options.split in ("", record.document.split)


def read_records(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of a task, and whether it takes them.

    Raises:
      FileFailure: a file of the task cannot be read or is not the one that was listed.
    """
    yield from _asked_for(_selected(_read_unchanged(task, options), task), task)


def _selected(records: Iterator[ReadRecord], task: Task) -> Iterator[ReadRecord]:
    """The records of a task, each with whether it is taken, up to the last to read."""
    if task.selected is None:
        yield from records
        return
    for record in records:
        place = Place(record.content.source_file, record.content.source_position)
        if place == task.selected.last:
            check_unchanged(task.files)
            yield record._replace(share=1.0)
            return
        yield record._replace(is_taken=task.selected.takes(place))


def _asked_for(records: Iterator[ReadRecord], task: Task) -> Iterator[ReadRecord]:
    """The records that a task reads; where it names each of them, nothing is read
    behind the last one.
    """
    if task.only is None:
        yield from records
        return
    missing = {
        (path, position)
        for path, retried in task.only.items()
        for position in retried.positions
    }
    is_open = any(retried.begin is not None for retried in task.only.values())
    for record in records:
        content = record.content
        if _is_asked_for(content, task.only):
            missing.discard((content.source_file, content.source_position))
            yield record
        elif not missing and not is_open:
            if task.scheme != UNREADABLE_SCHEME:
                check_unchanged(task.files)
            return


def _is_asked_for(
    content: Document | Unreadable, only: Mapping[str, RetriedFile]
) -> bool:
    """Whether a task that reads some records reads this one."""
    retried = only.get(content.source_file)
    if retried is None:
        return False
    if content.source_position in retried.positions:
        return True
    numbers = position_numbers(content.source_position)
    return retried.begin is not None and numbers >= retried.begin


def _empty_article(article: Article, raw: bytes) -> EmptyArticle:
    """An article without a body; the hash of its content is no id."""
    document = article.document
    if document.document_id == article.content_sha256:
        document = document._replace(document_id="")
    return EmptyArticle(document, raw)


def _read_unchanged(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of a task whose files are those that were listed.

    Raises:
      FileFailure: one is not, before or after it was read, or cannot be read.
    """
    if task.scheme == UNREADABLE_SCHEME:
        yield from read_unreadable(task)
        return
    if task.pieces:
        yield from _read_pieces(task, options)
        return
    check_unchanged(task.files)
    try:
        yield from _read_scheme(task, options)
    except OSError as error:
        check_unchanged(task.files)
        raise file_failure(error, task.files) from error
    except Exception:
        # A reader may stumble over a file that was cut under its hands.
        check_unchanged(task.files)
        raise
    check_unchanged(task.files)


def _read_pieces(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of the pieces of a task."""
    for number, piece in enumerate(task.pieces):
        for record in read_records(piece, options):
            yield record._replace(share=(number + record.share) / len(task.pieces))


def _read_scheme(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    max_bytes = options.max_record_bytes
    if task.scheme == "text":
        pattern = parse_address(options.corpus).where
        return text_files.read(task, pattern, max_bytes)
    if task.scheme == "stories":
        return stories.read(task, max_bytes)
    if task.scheme == "sample":
        return sample.read(task)
    if task.scheme == "jsonl":
        return jsonl.read(task, max_bytes)
    if task.scheme == "csv":
        return csv_files.read(task, max_bytes)
    if task.scheme == "parquet":
        from precis.pipelines.corpus import parquet

        return parquet.read(task, max_bytes)
    from precis.pipelines.corpus import tfds_sets

    return tfds_sets.read(task, max_bytes)
