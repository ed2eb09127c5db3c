"""Reads the articles of some rows again, from the corpus of their run.

A run does not hold its articles. Each row names the file of its article and the place
in it, and the manifest of the run says how the corpus was read.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from precis.model.errors import PrecisError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.listing import UNREADABLE_SCHEME
from precis.pipelines.corpus.options import CorpusOptions, parse_address
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import (
    FileFailure,
    Place,
    RetriedFile,
    Task,
    position_numbers,
)

# Of these a single file can be named, so that no other file of the corpus is listed.
_SCHEMES_OF_FILES = ("jsonl", "csv", "parquet", "text")

_CHANGED = "the article is no longer the one that was summarized"
_NO_CORPUS = "the input does not say which corpus it is made of"
_GONE = "the corpus does not have it any more"


def articles_of_rows(
    rows: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any] | None
) -> list[Article | str]:
    """The article of each row of a run, or why it is not there.

    Args:
      rows: with `source_file`, `source_position` and `content_sha256`.
      manifest: the content of manifest.json; None where no run is known.
    """
    try:
        corpus = corpus_of_run(manifest) if manifest else None
    except UsageError as error:  # of flags that this version does not have
        return [str(error)] * len(rows)
    if corpus is None or any("source_position" not in row for row in rows):
        return [_NO_CORPUS] * len(rows)
    places = [Place(row["source_file"], row["source_position"]) for row in rows]
    found = find_articles(places, corpus)
    return [
        _unchanged(found[place], row) for place, row in zip(places, rows, strict=True)
    ]


def _unchanged(article: Article | str, row: Mapping[str, Any]) -> Article | str:
    if isinstance(article, Article) and article.content_sha256 != row["content_sha256"]:
        return _CHANGED
    return article


def corpus_of_run(manifest: Mapping[str, Any]) -> CorpusOptions | None:
    """How a run has read its corpus; None where its manifest does not say.

    Args:
      manifest: the content of manifest.json.
    """
    flags = manifest.get("provenance", {}).get("flags", {})
    if not flags.get("corpus"):
        return None
    names = (field.name for field in dataclasses.fields(CorpusOptions))
    return CorpusOptions(**{name: flags[name] for name in names if name in flags})


def find_articles(
    places: Iterable[Place], corpus: CorpusOptions
) -> dict[Place, Article | str]:
    """The articles at places of a corpus, or why there is none.

    Only the tasks that hold such a place are read, and each only up to the last one.

    Args:
      places: of the documents.
      corpus: how it was read.
    """
    places = list(dict.fromkeys(places))
    scheme, _ = parse_address(corpus.corpus)
    groups: dict[str, list[Place]] = {}
    for place in places:
        is_named = scheme in _SCHEMES_OF_FILES
        address = f"{scheme}:{place.source_file}" if is_named else corpus.corpus
        groups.setdefault(address, []).append(place)
    articles: dict[Place, Article | str] = dict.fromkeys(places, _GONE)
    for address, group in groups.items():
        try:
            # The places are known, so nothing is to be selected once more.
            options = dataclasses.replace(corpus, corpus=address, limit=0, sample=0)
            for article in _read(group, options):
                document = article.document
                place = Place(document.source_file, document.source_position)
                articles[place] = article
        except (PrecisError, FileFailure, OSError) as error:
            reason = " ".join(str(error).split())
            missing = [place for place in group if articles[place] == _GONE]
            articles.update(dict.fromkeys(missing, reason))
    return articles


def _read(places: Sequence[Place], corpus: CorpusOptions) -> Iterator[Article]:
    for listed in list_tasks(corpus):
        for task in listed.pieces or (listed,):
            positions: dict[str, set[str]] = {}
            for place in places:
                if _holds(task, place):
                    of_file = positions.setdefault(place.source_file, set())
                    of_file.add(place.source_position)
            if not positions:
                continue
            only = {
                path: RetriedFile(frozenset(of_file), None)
                for path, of_file in positions.items()
            }
            for record in read_task(task._replace(only=only), corpus):
                if isinstance(record, Article):
                    yield record


def _holds(task: Task, place: Place) -> bool:
    """Whether a task may read the record at a place.

    The range of a task and the first number of a position have the same unit.
    """
    if task.scheme == UNREADABLE_SCHEME:
        return False
    if task.files and place.source_file not in task.paths:
        return False
    numbers = position_numbers(place.source_position)
    if not numbers:
        return True
    return task.start <= numbers[0] and (task.stop == -1 or numbers[0] < task.stop)
