"""The articles of a run, which does not hold them: they are read again from its corpus.

Each row names the file of its article and the place in it, and the manifest says how
the corpus was read.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precis.model.errors import PrecisError
from precis.model.text.article import Article
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    UNREADABLE_SCHEME,
    Place,
    Task,
    may_hold,
)
from precis.pipelines.tables.finished_run import corpus_of_run

_CHANGED = "the article is no longer the one that was summarized"
_GONE = "the corpus does not have it any more"

Row = Mapping[str, Any]


def articles_of_rows(rows: Sequence[Row], manifest: Row) -> list[Article | str]:
    """The article of each row of a run, or why it is not there.

    Args:
      rows: with `source_file`, `source_position` and `content_sha256`.
      manifest: the content of manifest.json.
    """
    places = [Place(row["source_file"], row["source_position"]) for row in rows]
    try:
        found = find_articles(places, corpus_of_run(manifest))
    # Such as flags that this version does not have, or a corpus that was moved.
    except (PrecisError, OSError) as error:
        return [_one_line(error)] * len(rows)
    articles = [found[place] for place in places]
    return [
        _CHANGED
        if isinstance(article, Article)
        and article.content_sha256 != row["content_sha256"]
        else article
        for article, row in zip(articles, rows, strict=True)
    ]


def find_articles(
    places: Iterable[Place], corpus: CorpusOptions
) -> dict[Place, Article | str]:
    """The articles at places of a corpus, or why there is none.

    Only the tasks that hold such a place are read, and each only up to the last one.

    Raises:
      UsageError: the corpus cannot be listed.
    """
    articles: dict[Place, Article | str] = dict.fromkeys(places, _GONE)
    positions: dict[str, list[str]] = {}
    for place in articles:
        positions.setdefault(place.source_file, []).append(place.source_position)
    # The places are known, so nothing is to be selected once more.
    corpus = dataclasses.replace(corpus, limit=0, sample=0)
    for listed in list_tasks(corpus):
        for task in listed.pieces or (listed,):
            only = _held_places(task, positions)
            try:
                records = read_task(task._replace(only=only), corpus) if only else ()
                for each in records:
                    if isinstance(each, Article):
                        document = each.document
                        place = Place(document.source_file, document.source_position)
                        articles[place] = each
            except (PrecisError, OSError) as error:
                for file in only:
                    for place in [Place(file, position) for position in only[file]]:
                        if articles[place] == _GONE:
                            articles[place] = _one_line(error)
    return articles


def _held_places(
    task: Task, positions: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The positions that a task may hold, by file."""
    if task.scheme == UNREADABLE_SCHEME:
        return {}
    files = [path for path in task.paths if path in positions]
    held = {
        file: [each for each in positions[file] if may_hold(task, each)]
        for file in (files if task.files else positions)
    }
    return {file: places for file, places in held.items() if places}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
