"""The corpus: listed as the job lists it, and ten of its documents read."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.placement import check_output_apart
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import DeadLetter, Task
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.doctor.findings import (
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
    readable_bytes,
)
from precis.pipelines.doctor.request import Request

DOCUMENTS = 10
# After so many records no further task is read, though there are not ten documents of
# the split that is asked for.
_MOST_RECORDS = 1000
# An article is longer than this; a title, an id or a URL is not.
_SHORT_WORDS = 20


class Sample(NamedTuple):
    """What is known of a corpus.

    Attributes:
      tasks: all tasks of the corpus.
      trial: tasks that read the sampled documents and nothing else.
      articles: the sampled documents.
      document_bytes: for each document of the split that is asked for, about how much
          of the corpus is read, as it lies on disk; 0 where that is not known.
    """

    tasks: Sequence[Task]
    trial: Sequence[Task]
    articles: Sequence[Article]
    document_bytes: float

    @property
    def size_bytes(self) -> int:
        """The size of the corpus."""
        return sum(task.size_bytes for task in self.tasks)

    @property
    def documents(self) -> float:
        """About how many documents the job reads."""
        return self.size_bytes / self.document_bytes if self.document_bytes else 0


class _Looked(NamedTuple):
    """The first records of a corpus.

    Attributes:
      articles: the first documents, each with the task that reads it.
      faults: records that are no documents, by reason.
      first_fault: where the first of them stands, and what is wrong with it.
      records: how many were looked at.
      size_bytes: how much of the corpus they are.
    """

    articles: list[tuple[Task, Article]]
    faults: Counter[str]
    first_fault: str
    records: int
    size_bytes: float


def check_corpus(request: Request) -> Check[Sample | None]:
    """Lists the corpus and reads ten documents with the fields that are named.

    Returns:
      The sample; None where there is no document in it.

    Raises:
      UsageError: nothing is there to read, or not what the flags say.
    """
    corpus = request.options(CorpusOptions)
    tasks = _list(request, corpus)
    looked = _look(tasks, corpus)
    size = sum(task.size_bytes for task in tasks)
    files_read = len({path for task in tasks for path in task.paths})
    per_document = looked.size_bytes / looked.records if looked.records else 0
    about = f", about {size / per_document:,.0f} records" if per_document else ""
    yield Diagnosis(
        OK,
        "corpus",
        f"{_number(files_read, 'file')}, {readable_bytes(size)}, "
        f"{_number(len(tasks), 'task')}{about}",
    )
    yield from _describe_faults(looked, request)
    if not looked.articles:
        split = f" of the split {corpus.split}" if corpus.split else ""
        yield Diagnosis(
            PROBLEM,
            "corpus",
            f"none of the first {looked.records:,} records is a document{split}",
            "check --article_field and --split",
        )
        return None
    articles = [article for _, article in looked.articles]
    yield from _describe_articles(articles, request)
    trial = _trial_tasks(looked.articles)
    return Sample(tasks, trial, articles, looked.size_bytes / len(articles))


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _list(request: Request, corpus: CorpusOptions) -> Sequence[Task]:
    """The tasks of the job, after its own checks."""
    if request.command == "summarize":
        from precis.pipelines.summarize.summarize import list_run_tasks

        retried = str(request.value("retry_failures"))
        return list_run_tasks(corpus, request.output, retried)
    tasks = list_tasks(corpus)
    check_output_apart(request.output, corpus, tasks)
    return tasks


def _look(tasks: Sequence[Task], corpus: CorpusOptions) -> _Looked:
    """Reads records until there are ten documents."""
    articles: list[tuple[Task, Article]] = []
    faults: Counter[str] = Counter()
    first_fault = ""
    records = 0
    size_bytes = 0.0
    for task in tasks:
        reader = read_task(task, corpus)
        for record in reader:
            if isinstance(record, Article):
                articles.append((task, record))
            elif isinstance(record, DeadLetter):
                faults[record.reason] += record.records
                first_fault = first_fault or (
                    f"{record.source_file}, {record.source_position}: {record.detail}"
                )
            if len(articles) == DOCUMENTS or _looked_at(reader) >= _MOST_RECORDS:
                size_bytes += task.size_bytes * reader.position.share
                break
        else:
            size_bytes += task.size_bytes
        records += _looked_at(reader)
        if len(articles) == DOCUMENTS or records >= _MOST_RECORDS:
            break
    return _Looked(articles, faults, first_fault, records, size_bytes)


def _looked_at(reader: TaskReader) -> int:
    """The records that were read, without those that --sample did not draw."""
    return reader.read.total() - reader.not_selected.total()


def _describe_faults(looked: _Looked, request: Request) -> Iterator[Diagnosis]:
    if not looked.faults:
        return
    listed = ", ".join(f"{reason} {n}" for reason, n in looked.faults.items())
    share = looked.faults.total() / looked.records
    allowed = request.value("max_failed_share", 0.0)
    yield Diagnosis(
        PROBLEM if not looked.articles or share > 0.5 else WARNING,
        "corpus",
        f"of the first {looked.records:,} records, {looked.faults.total()} are no "
        f"documents ({listed}); {looked.first_fault}".removesuffix("; "),
        "correct the records or --article_field; the job ends with an error where "
        f"more than --max_failed_share {allowed:g} of them fail",
    )


def _describe_articles(
    articles: Sequence[Article], request: Request
) -> Iterator[Diagnosis]:
    lengths = sorted(len(words(article.body)) for article in articles)
    median = lengths[len(lengths) // 2]
    with_highlights = sum(bool(article.document.highlights) for article in articles)
    count = len(articles)
    found = (
        f"{count} documents read: half of them have {median} words or more; "
        f"highlights in {with_highlights}"
    )
    if median < _SHORT_WORDS:
        yield Diagnosis(
            WARNING,
            "corpus",
            found,
            "check that --article_field names the text and not a title",
        )
    elif not with_highlights and _needs_highlights(request):
        yield Diagnosis(
            PROBLEM,
            "corpus",
            f"{found}, which {_needs_highlights(request)} needs",
            "name their field with --highlights_field",
        )
    else:
        yield Diagnosis(OK, "corpus", found)


def _needs_highlights(request: Request) -> str:
    """What of the command needs reference summaries; "" where nothing does."""
    if request.command == "prepare":
        return f"--target {request.value('target')}"
    methods = str(request.value("extractive")).split(",")
    return "--extractive oracle" if "oracle" in methods else ""


def _trial_tasks(articles: Sequence[tuple[Task, Article]]) -> list[Task]:
    """Tasks that read these documents alone, numbered from 0."""
    positions: dict[int, dict[str, set[str]]] = {}
    by_number = {}
    for task, article in articles:
        by_number[task.number] = task
        document = article.document
        of_task = positions.setdefault(task.number, {})
        of_task.setdefault(document.source_file, set()).add(document.source_position)
    return [
        by_number[original]._replace(
            number=number,
            size_bytes=1,
            only={
                path: dict.fromkeys(of_file, 1)
                for path, of_file in positions[original].items()
            },
        )
        for number, original in enumerate(sorted(by_number))
    ]
