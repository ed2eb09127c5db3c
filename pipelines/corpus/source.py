"""Lists a corpus as tasks, and reads a task as articles."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus import csv_files, jsonl, stories, text_files
from precis.pipelines.corpus.listing import (
    UNREADABLE_SCHEME,
    group_tasks,
    list_files,
    list_folder,
    read_unreadable,
    unreadable_tasks,
)
from precis.pipelines.corpus.opening import check_unchanged, file_failure
from precis.pipelines.corpus.options import CorpusOptions, parse_address
from precis.pipelines.corpus.packing import pack_tasks
from precis.pipelines.corpus.redaction import RedactionTimeout, Redactor
from precis.pipelines.corpus.sample import source as sample
from precis.pipelines.corpus.splits import is_split_name, split_of
from precis.pipelines.corpus.task import (
    EmptyArticle,
    Position,
    ReadRecord,
    RetriedFile,
    SourceFile,
    Task,
    Unreadable,
    position_numbers,
)

# A built-in document counts as this much, so that a task of the default size has a
# thousand documents: the built-in corpus is made for small machines.
_SAMPLE_DOCUMENT_BYTES = 16 << 10
_SCHEMES_OF_DOCUMENTS = ("text", "stories")  # one document a file


def list_tasks(options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks, after a look at its files.

    Raises:
      UsageError: nothing is there to read, or not what the options say.
    """
    tasks = _list_scheme(options)
    if not tasks:
        raise UsageError(f"{options.corpus} holds no documents; its files are empty")
    return [
        task._replace(number=number) for number, task in enumerate(pack_tasks(tasks))
    ]


def _list_scheme(options: CorpusOptions) -> list[Task]:
    """The tasks of the corpus, listed by its scheme.

    Here and below, the modules of Parquet and TFDS are imported where they are needed:
    their packages are slow to import, and not every installation has them.
    """
    scheme, where = parse_address(options.corpus)
    if scheme == "tfds":
        return _list_tfds(where, options)
    if scheme == "sample":
        task_documents = max(1, options.task_bytes // _SAMPLE_DOCUMENT_BYTES)
        return sample.list_tasks(where, task_documents=task_documents)
    if scheme == "stories":
        source_files = list_folder(where, stories.SUFFIX)
    else:
        source_files = list_files(where)
    readable = [file for file in source_files if not file.problem]
    unreadable = [file for file in source_files if file.problem]
    return [
        *_list_files(scheme, readable, options),
        *unreadable_tasks(
            unreadable, holds_one_document=scheme in _SCHEMES_OF_DOCUMENTS
        ),
    ]


def _list_files(
    scheme: str, source_files: list[SourceFile], options: CorpusOptions
) -> list[Task]:
    """The tasks that read files."""
    if scheme == "text":
        return group_tasks("text", source_files, options.task_bytes)
    if scheme == "stories":
        return stories.list_tasks(source_files, task_bytes=options.task_bytes)
    if scheme == "parquet":
        from precis.pipelines.corpus import parquet

        return parquet.list_tasks(
            source_files,
            fields=options.fields,
            needed=options.required_fields,
            task_bytes=options.task_bytes,
        )
    module = jsonl if scheme == "jsonl" else csv_files
    return module.list_tasks(
        source_files,
        fields=options.fields,
        needed=options.required_fields,
        task_bytes=options.task_bytes,
        max_record_bytes=options.max_record_bytes,
    )


def _list_tfds(where: str, options: CorpusOptions) -> list[Task]:
    from precis.pipelines.corpus import tfds_prepare, tfds_sets

    if options.stories_dir:
        tfds_prepare.prepare_from_stories(
            options.stories_dir, options.urls_dir, options.data_dir
        )
    return tfds_sets.list_tasks(
        where,
        fields=options.fields,
        needed=options.required_fields,
        split=options.split,
        data_dir=options.data_dir,
        task_bytes=options.task_bytes,
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
      position: how far the task is read, after the record that was returned last.
      read: the records read so far, by source file, those left out included.
      other_split: the documents that were left out, as they are not in
          `options.split`, by source file.
      redactions: how often each rule of `options.redact` matched.
    """

    def __init__(self, task: Task, options: CorpusOptions) -> None:
        self.position = Position()
        self.read: Counter[str] = Counter()
        self.other_split: Counter[str] = Counter()
        self._redactor = Redactor(options.redact)
        self.redactions = dict.fromkeys(self._redactor.names, 0)
        self._task = task
        self._options = options

    def __iter__(self) -> Iterator[Article | EmptyArticle | Unreadable]:
        records = 0
        for content, share, raw in _read_unchanged(self._task, self._options):
            counts: Counter[str] = Counter()
            if self._redactor.names:
                content, counts = self._redact(content)
                raw = b""
            record = _to_article(content, raw, self._task, self._options)
            if isinstance(record, Unreadable):
                records += record.records
                self.read[content.source_file] += record.records
            elif self._options.split in ("", record.document.split):
                records += 1
                self.read[content.source_file] += 1
            else:
                self.read[content.source_file] += 1
                self.other_split[content.source_file] += 1
                continue
            for rule, count in counts.items():
                self.redactions[rule] += count
            self.position = Position(records, share)
            if isinstance(record, Unreadable) or record.body:
                yield record
            else:
                yield _empty_article(record, raw)

    def _redact(
        self, content: Document | Unreadable
    ) -> tuple[Document | Unreadable, Counter[str]]:
        """A record without personal data.

        Its bytes are not kept: what a rule matches may be escaped or cut in them.
        """
        if isinstance(content, Unreadable):
            return content._replace(raw=b""), Counter()
        try:
            return self._redactor.redact(content, self._task.fields.kept)
        except RedactionTimeout as error:
            place = (content.source_file, content.source_position)
            timeout = Unreadable(*place, "redaction_timeout", str(error), b"")
            return timeout, Counter()


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


def read_task(task: Task, options: CorpusOptions) -> TaskReader:
    """The articles, empty articles and unreadable records of a task."""
    return TaskReader(task, options)


def _empty_article(article: Article, raw: bytes) -> EmptyArticle:
    """An article without a body; the hash of its content is no id."""
    document = article.document
    if document.document_id == article.content_sha256:
        document = document._replace(document_id="")
    return EmptyArticle(document, raw)


def _to_article(
    content: Document | Unreadable, raw: bytes, task: Task, options: CorpusOptions
) -> Article | Unreadable:
    """The article of a document, with an id and a split."""
    if isinstance(content, Unreadable):
        return content
    article = Article(
        content, clean=options.clean, strip_boilerplate=options.strip_boilerplate
    )
    document_id = content.document_id or article.content_sha256
    split = task.split or content.split or split_of(document_id, options)
    if is_split_name(split):
        return article.with_id_and_split(document_id, split)
    # A field that holds text may have been named for the split.
    shown = Redactor(options.redact).text(split, Counter())[:80]
    detail = (
        f"the split is {shown!r}; it names files, so it must be of at most 40 letters, "
        "digits and underscores"
    )
    return Unreadable(
        content.source_file, content.source_position, "bad_split", detail, raw
    )


def _read_unchanged(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of a task whose files are those that were listed.

    Raises:
      FileFailure: one is not, before or after it was read, or cannot be read.
    """
    if task.scheme == UNREADABLE_SCHEME:
        yield from _asked_for(read_unreadable(task), task)
        return
    if task.pieces:
        yield from _read_pieces(task, options)
        return
    check_unchanged(task.files)
    try:
        yield from _asked_for(_read_scheme(task, options), task)
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
        records = _read_unchanged(piece, options)
        for record in itertools.islice(records, piece.max_records or None):
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
