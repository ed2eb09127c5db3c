"""The `--corpus` syntax: `scheme:where` becomes tasks, and a task becomes documents."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.task import Fields, Task, Unreadable

SCHEMES = ("tfds", "stories", "jsonl", "csv", "parquet", "text", "sample")
_WITH_FIELDS = ("tfds", "jsonl", "csv", "parquet")
_HASH_SPLITS = ("train", "validation", "test")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")
# A built-in document counts as this much, so that by default a task has a thousand: the
# small corpus is there for small machines.
_SAMPLE_DOCUMENT_BYTES = 16 << 10


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """Corpus."""

    # Where the documents come from.
    corpus: str = required(
        "the corpus: jsonl:GLOB, csv:GLOB, parquet:GLOB, text:GLOB (one document a file), stories:DIR (raw CNN/DailyMail), "
        "tfds:NAME[:SPLIT] or sample:[COUNT]; a GLOB may be local or gs://"
    )
    # The field names of jsonl, csv, parquet and tfds records; None where the user named
    # none.
    article_field: str = flag("article", "field that holds the text")
    highlights_field: str | None = flag(
        None,
        "field that holds the reference summary; highlights where the records have it",
    )
    id_field: str | None = flag(
        None,
        "field that holds the document's id; id where the records have it, else the text's hash",
    )
    split_field: str = flag(
        "", "field that holds the split's name; without it the hash of the id decides"
    )
    # Which documents to take.
    split: str = flag("", "read only documents of this split, such as test")
    # TensorFlow Datasets.
    data_dir: str = flag(
        "", "folder of prepared TensorFlow Datasets; theirs by default"
    )
    stories_dir: str = flag(
        "",
        "for tfds:cnn_dailymail: folder with cnn/stories and dailymail/stories, to prepare the data set from",
    )
    urls_dir: str = flag(
        "",
        "for tfds:cnn_dailymail: folder with all_train.txt, all_val.txt and all_test.txt, to go with --stories_dir",
    )
    # A piece of work: smaller ones balance better, larger ones make fewer files.
    task_bytes: int = flag(
        16 << 20,
        "about how many bytes of the corpus one task reads and turns into one output file",
    )
    # What counts as the article's text.
    strip_boilerplate: bool = flag(
        True, "leave out agency lines such as (CNN) and By ... PUBLISHED: ..."
    )
    # Splits by hash.
    seed: int = flag(
        17,
        "decides with the document's id which split a document without one falls into",
    )
    validation_share: float = flag(
        0.05, "share of validation documents in a corpus without splits"
    )
    test_share: float = flag(0.05, "share of test documents in a corpus without splits")

    def __post_init__(self) -> None:
        scheme, where = _scheme_and_where(self.corpus)
        if self.task_bytes < 1:
            raise UsageError(
                f"--task_bytes must be at least 1, not {self.task_bytes}; leave it out for 16 MiB"
            )
        _check_shares(self.validation_share, self.test_share)
        named_fields = (
            self.article_field != "article"
            or self.highlights_field
            or self.id_field
            or self.split_field
        )
        if named_fields and scheme not in _WITH_FIELDS:
            raise UsageError(
                f"{scheme}: has no fields to name; --article_field and the like go with {', '.join(_WITH_FIELDS)}"
            )
        if not self.article_field:
            raise UsageError(
                "--article_field is empty; name the field that holds the text, or leave the flag out for 'article'"
            )
        if self.data_dir and scheme != "tfds":
            raise UsageError(
                f"--data_dir goes with tfds: alone, not with {self.corpus}; leave it out"
            )
        if bool(self.stories_dir) != bool(self.urls_dir):
            raise UsageError(
                "--stories_dir and --urls_dir go together; give both or neither"
            )
        if self.stories_dir and (
            scheme != "tfds" or not where.startswith("cnn_dailymail")
        ):
            raise UsageError(
                f"--stories_dir prepares tfds:cnn_dailymail alone, not {self.corpus}; stories:DIR reads raw stories as they are"
            )
        if (
            self.split
            and scheme != "tfds"
            and not self.split_field
            and self.split not in _HASH_SPLITS
        ):
            raise UsageError(
                f"{scheme}: has the splits {', '.join(_HASH_SPLITS)}, not {self.split!r}; --split_field names a field that holds others"
            )


def _scheme_and_where(corpus: str) -> tuple[str, str]:
    scheme, colon, where = corpus.partition(":")
    if not colon or scheme not in SCHEMES:
        raise UsageError(
            f"unknown corpus {corpus!r}; write scheme:where, as in 'jsonl:news/*.jsonl'; the schemes are {', '.join(SCHEMES)}"
        )
    if not where and scheme != "sample":
        raise UsageError(
            f"{corpus!r} says no place; write {scheme}:where, as in 'jsonl:news/*.jsonl'"
        )
    return scheme, where


def _check_shares(validation_share: float, test_share: float) -> None:
    for name, share in (
        ("validation_share", validation_share),
        ("test_share", test_share),
    ):
        if not 0 <= share <= 1:
            raise UsageError(
                f"--{name} must lie between 0 and 1, not {share}; 0.05 is one document in twenty"
            )
    if validation_share + test_share > 1:
        raise UsageError(
            f"--validation_share and --test_share must add up to at most 1, not {validation_share + test_share:g}; lower one"
        )


def list_tasks(options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks, after a look at its files.

    Raises:
      UsageError: nothing is there to read, or not what the options say.
    """
    scheme, where = _scheme_and_where(options.corpus)
    fields = Fields(
        options.article_field,
        options.highlights_field or "highlights",
        options.id_field or "id",
        options.split_field,
    )
    # The fields that the user relies on; the others may be absent.
    named = (
        options.article_field,
        options.highlights_field,
        options.id_field,
        options.split_field,
    )
    needed = tuple(name for name in named if name)
    tasks = _list_tasks(scheme, where, options=options, fields=fields, needed=needed)
    if not tasks:
        raise UsageError(f"{options.corpus} holds no documents; its files are empty")
    return [task._replace(number=number) for number, task in enumerate(tasks)]


# The modules of the schemes are imported where they are needed: pyarrow and TFDS are
# not there for every corpus.
def _list_tasks(
    scheme: str,
    where: str,
    *,
    options: CorpusOptions,
    fields: Fields,
    needed: tuple[str, ...],
) -> list[Task]:
    if scheme == "jsonl":
        from precis.pipelines.corpus import jsonl

        return jsonl.list_tasks(
            where, fields=fields, needed=needed, task_bytes=options.task_bytes
        )
    if scheme == "csv":
        from precis.pipelines.corpus import csv_files

        return csv_files.list_tasks(
            where, fields=fields, needed=needed, task_bytes=options.task_bytes
        )
    if scheme == "parquet":
        from precis.pipelines.corpus import parquet

        return parquet.list_tasks(
            where, fields=fields, needed=needed, task_bytes=options.task_bytes
        )
    if scheme == "text":
        from precis.pipelines.corpus import text_files

        return text_files.list_tasks(where, task_bytes=options.task_bytes)
    if scheme == "stories":
        from precis.pipelines.corpus import stories

        return stories.list_tasks(where, task_bytes=options.task_bytes)
    if scheme == "tfds":
        from precis.pipelines.corpus import tfds_sets

        if options.stories_dir:
            tfds_sets.prepare_from_stories(
                options.stories_dir, options.urls_dir, options.data_dir
            )
        return tfds_sets.list_tasks(
            where,
            fields=fields,
            needed=needed,
            split=options.split,
            data_dir=options.data_dir,
            task_bytes=options.task_bytes,
        )
    from precis.pipelines.corpus.sample import source as sample

    return sample.list_tasks(
        where,
        split=options.split,
        task_documents=max(1, options.task_bytes // _SAMPLE_DOCUMENT_BYTES),
    )


def read_task(task: Task, options: CorpusOptions) -> Iterator[Article | Unreadable]:
    """The articles of a task, each with an id and a split, and the records between them
    that are no documents.

    With `options.split` only the articles of that split come out; an unreadable record
    belongs to no split and always does.
    """
    for record in _read(task, options):
        if isinstance(record, Unreadable):
            yield record
            continue
        article = Article(record, strip_boilerplate=options.strip_boilerplate)
        document_id = record.document_id or article.content_sha256
        split = task.split or record.split or split_of(document_id, options)
        if not _SPLIT_NAME.fullmatch(split):
            detail = (
                f"the split is {split[:80]!r}; it names files, so it must be of at "
                "most 40 letters, digits and underscores"
            )
            yield Unreadable(f"document {document_id}", "bad_split", detail, b"")
            continue
        if options.split in ("", split):
            article.document = record._replace(document_id=document_id, split=split)
            yield article


def _read(task: Task, options: CorpusOptions) -> Iterator[Document | Unreadable]:
    if task.scheme == "jsonl":
        from precis.pipelines.corpus import jsonl

        return jsonl.read(task)
    if task.scheme == "csv":
        from precis.pipelines.corpus import csv_files

        return csv_files.read(task)
    if task.scheme == "parquet":
        from precis.pipelines.corpus import parquet

        return parquet.read(task)
    if task.scheme == "text":
        from precis.pipelines.corpus import text_files

        return text_files.read(task, _scheme_and_where(options.corpus)[1])
    if task.scheme == "stories":
        from precis.pipelines.corpus import stories

        return stories.read(task)
    if task.scheme == "tfds":
        from precis.pipelines.corpus import tfds_sets

        return tfds_sets.read(task)
    from precis.pipelines.corpus.sample import source as sample

    return sample.read(task)


def split_of(document_id: str, options: CorpusOptions) -> str:
    """The split that the hash of a document's id falls into: the same on every machine
    and in every run.
    """
    digest = hashlib.sha256(f"{options.seed}:{document_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < options.validation_share:
        return "validation"
    return "test" if place < options.validation_share + options.test_share else "train"
