"""Reads the articles of a run again from its corpus, because a run does not store them.

Each row has the file and position of its article, and the manifest has the options of
the corpus.
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

_CHANGED = "the article was changed after it was summarized"
_GONE = "the article is no longer in the corpus"

Row = Mapping[str, Any]


def articles_of_rows(rows: Sequence[Row], manifest: Row) -> list[Article | str]:
    """Reads the article of each row of a run; a text says why it is missing.

    Args:
      rows: rows with `source_file`, `source_position` and `content_sha256`.
      manifest: the content of manifest.json.
    """
    places = [Place(row["source_file"], row["source_position"]) for row in rows]
    try:
        found = find_articles(places, corpus_of_run(manifest))
    # For example, the corpus was moved, or this version lacks a flag.
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
    """Reads the articles at places of a corpus; a text says why one is missing.

    Only tasks with such a place are read, and only up to the last place.

    Raises:
      UsageError: the corpus cannot be listed.
    """
    articles: dict[Place, Article | str] = dict.fromkeys(places, _GONE)
    positions: dict[str, list[str]] = {}
    for place in articles:
        positions.setdefault(place.source_file, []).append(place.source_position)
    # The places are given, so nothing must be limited or sampled again.
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
    """The positions that a task may contain, by file."""
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
