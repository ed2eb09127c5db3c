"""The articles of a run, which does not hold them: they are read again from its corpus.

Each row names the file of its article and the place in it, and the manifest says how
the corpus was read.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from precis.model.errors import PrecisError, UsageError
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import (
    UNREADABLE_SCHEME,
    FileFailure,
    Place,
    Task,
    may_hold,
)

# Of these a single file can be named, so that no other file of the corpus is listed.
_SCHEMES_OF_FILES = ("jsonl", "csv", "parquet", "text")

_CHANGED = "the article is no longer the one that was summarized"
_NO_CORPUS = "the input does not say which corpus it is made of"
_GONE = "the corpus does not have it any more"

Row = Mapping[str, Any]


def articles_of_rows(rows: Sequence[Row], manifest: Row) -> list[Article | str]:
    """The article of each row of a run, or why it is not there.

    Args:
      rows: with `source_file`, `source_position` and `content_sha256`.
      manifest: the content of manifest.json.
    """
    try:
        corpus = corpus_of_run(manifest)
    except UsageError as error:  # of flags that this version does not have
        return [str(error)] * len(rows)
    if corpus is None:
        return [_NO_CORPUS] * len(rows)
    places = [Place(row["source_file"], row["source_position"]) for row in rows]
    found = find_articles(places, corpus)
    articles = [found[place] for place in places]
    return [
        _CHANGED
        if isinstance(article, Article)
        and article.content_sha256 != row["content_sha256"]
        else article
        for article, row in zip(articles, rows, strict=True)
    ]


def corpus_of_run(manifest: Row) -> CorpusOptions | None:
    """How a run has read its corpus; None where its manifest does not say."""
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
    """
    articles: dict[Place, Article | str] = dict.fromkeys(places, _GONE)
    schemes = [scheme for scheme, _ in parse_addresses(corpus.corpus)]
    groups: dict[str, list[Place]] = {}
    for place in articles:
        is_named = len(schemes) == 1 and schemes[0] in _SCHEMES_OF_FILES
        address = f"{schemes[0]}:{place.source_file}" if is_named else corpus.corpus
        groups.setdefault(address, []).append(place)
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
    for listed in list_tasks(dataclasses.replace(corpus, limit=0, sample=0)):
        for task in listed.pieces or (listed,):
            only: dict[str, list[str]] = {}
            for place in places:
                if _holds(task, place):
                    only.setdefault(place.source_file, []).append(place.source_position)
            if only:
                records = read_task(task._replace(only=only), corpus)
                yield from (each for each in records if isinstance(each, Article))


def _holds(task: Task, place: Place) -> bool:
    """Whether a task may read the record at a place."""
    is_other = task.files and place.source_file not in task.paths
    is_readable = task.scheme != UNREADABLE_SCHEME
    return not is_other and is_readable and may_hold(task, place.source_position)
