"""Ids that several documents of a corpus have."""

import itertools
from collections.abc import Iterable, Sequence

from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.options.results import FAIL
from precis.pipelines.summarize.join_keys import JoinFigures

_NAMED = 3


def check_ids(
    reports: Iterable[TaskReport[JoinFigures]],
    tasks: Sequence[Task],
    corpus: CorpusOptions,
    on_duplicate_id: str,
) -> Sequence[Task]:
    """The tasks of the corpus, if its ids are as they must be.

    Args:
      reports: of the join.
      tasks: of the corpus.
      corpus: how they are read.
      on_duplicate_id: the flag.

    Raises:
      DataError: ids are repeated, and the flag says that the job then fails.
    """
    figures = [report.figures for report in reports]
    repeated = sum(part.repeated_ids for part in figures)
    if not repeated or on_duplicate_id != FAIL:
        return tasks
    places = [place for part in figures for place in part.repeated_id_places]
    named = ", ".join(
        _describe(tasks[task], record, corpus) for task, record in places[:_NAMED]
    )
    raise DataError(
        f"{repeated} documents have the id of a document before them, such as {named}; "
        "mend the ids, or name another --output and --on_duplicate_id suffix or keep"
    )


def _describe(task: Task, record: int, corpus: CorpusOptions) -> str:
    content = next(itertools.islice(read_task(task, corpus), record, None))
    assert isinstance(content, Article)
    document = content.document
    place = f"{document.source_file}:{document.source_position}"
    return f"{document.document_id!r} at {place}"
