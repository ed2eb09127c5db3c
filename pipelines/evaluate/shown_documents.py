"""The documents of `--show`: source sentences, extract, written summary and reference,
for a person who judges grammar and truth.

    ==============================================================================
    1 of 20: document d7
    news.jsonl, byte 5120
    shown: abstractive; flags: unsupported_number

    SOURCE: 2 sentences; * chosen by lead
      1 * Rain fell on the coast.
      2   Three roads were closed.

    EXTRACT by lead: 5 words, novel bigrams 0.0 %
      Rain fell on the coast.

A run does not hold its articles. They are read again from its corpus: each row names
the file of its article and the place in it, and the manifest says how the corpus was
read.
"""

import dataclasses
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.errors import PrecisError, UsageError
from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import (
    UNREADABLE_SCHEME,
    FileFailure,
    Place,
    Task,
    position_numbers,
)
from precis.pipelines.run.result_files import DESCRIPTION_FILES
from precis.pipelines.tables.row_ranges import RowRange, is_pattern, read_rows
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

# The lines of a text that is read closely are not as long as a wide terminal.
_LEAST_WIDTH = 60
_MOST_WIDTH = 100
# Of these a single file can be named, so that no other file of the corpus is listed.
_SCHEMES_OF_FILES = ("jsonl", "csv", "parquet", "text")

_CHANGED = "the article is no longer the one that was summarized"
_NO_CORPUS = "the input does not say which corpus it is made of"
_GONE = "the corpus does not have it any more"

Row = Mapping[str, Any]


def shown_documents(shown: Sequence[Row], source: str) -> Iterator[str]:
    """The documents that were drawn, as text to print.

    Args:
      shown: the entry of rouge.json.
      source: the run, or a pattern of files.
    """
    if not shown:
        return
    rows = [
        row
        for place in shown
        for row in read_rows(
            RowRange(0, place["file"], place["row"], 1), SUMMARY_SCHEMA.names
        )
    ]
    manifest = {}
    if not is_pattern(source):
        path = files.join(source, DESCRIPTION_FILES["summaries"])
        manifest = files.read_json(path)
    columns = shutil.get_terminal_size().columns
    width = min(max(columns, _LEAST_WIDTH), _MOST_WIDTH)
    articles = articles_of_rows(rows, manifest)
    for number, (row, article) in enumerate(zip(rows, articles, strict=True), start=1):
        title = f"{number} of {len(rows)}: document {row['document_id']}"
        yield "\n".join(["=" * width, title, *_document(row, article, width)])
    yield "=" * width


def _document(row: Row, article: Article | str, width: int) -> Iterator[str]:
    """The lines about a document behind its title."""
    if row.get("source_file"):
        yield f"{row['source_file']}, {row['source_position']}"
    if row.get("summary_method"):
        flags = ", ".join(row["quality_flags"]) or "none"
        yield f"shown: {row['summary_method']}; flags: {flags}"
    yield ""
    yield from _source(row, article, width)
    reference = row.get("reference_quality")
    if isinstance(article, Article):
        source = read_source(article)
        measured = measure(row["reference_summary"], source, QualityConfig())
        # The flags are those of the run, the unsupported facts stand in no column.
        reference = {**measured._asdict(), **(reference or {})}
    for title, text, quality in (
        (
            f"EXTRACT by {row['extractive_method']}",
            row["extractive_summary"],
            row.get("extractive_quality"),
        ),
        ("WRITTEN", row["abstractive_summary"], row.get("abstractive_quality")),
        ("REFERENCE", row["reference_summary"], reference),
    ):
        yield from _text(title, text, quality, width)
        yield ""


def _source(row: Row, article: Article | str, width: int) -> Iterator[str]:
    """The sentences of the article, or those that a method chose."""
    method = row["extractive_method"]
    extractive = row["extractive"] or ()
    chosen = {item["start"] for item in extractive if item["method"] == method}
    if isinstance(article, Article):
        sentences = [(each.start, each.text) for each in article.sentences]
        places = [str(number) for number in range(1, len(sentences) + 1)]
        yield f"SOURCE: {len(sentences)} sentences; * chosen by {method}"
    else:
        sentences = sorted({(item["start"], item["text"]) for item in extractive})
        # Without the article, the number of a sentence is not known.
        places = [f"@{start}" for start, _ in sentences]
        yield from textwrap.wrap(f"SOURCE: not at hand: {article}", width)
        yield f"  the sentences that any method chose; * by {method}"
    indent = max(map(len, places), default=0) + 2
    for place, (start, text) in zip(places, sentences, strict=True):
        mark = "*" if start in chosen else " "
        yield from _wrapped(text, width, first=f"{place:>{indent}} {mark} ")
    yield ""


def _text(title: str, text: str | None, quality: Row | None, width: int) -> list[str]:
    """A summary with what is to be said against it."""
    if text is None:
        return [f"{title}: none; no network read the document"]
    facts = ["not measured"]
    if quality:
        novel, repeated = quality["novel_2grams_percent"], quality["repetition_rate"]
        flags = ", ".join(quality["flags"])
        facts = [
            f"{quality['words']} words",
            "" if novel is None else f"novel bigrams {novel:.1f} %",
            repeated and f"repeated trigrams {100 * repeated:.1f} %",
            flags and f"flags {flags}",
        ]
    head = f"{title}: {'; '.join(filter(None, facts))}"
    lines = textwrap.wrap(head, width, subsequent_indent="  ")
    for line in text.splitlines():
        lines += _wrapped(line, width, first="  ")
    # The numbers, dates and names that the article does not hold.
    unsupported = [
        f"{kind} {', '.join(names)}"
        for kind in ("numbers", "dates", "names")
        if (names := (quality or {}).get(f"unsupported_{kind}"))
    ]
    if unsupported:
        lines += _wrapped(
            f"not in the source: {'; '.join(unsupported)}", width, first="  ! "
        )
    return lines


def _wrapped(text: str, width: int, *, first: str) -> list[str]:
    """A text without line breaks and without characters that steer a terminal."""
    line = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in " ".join(text.split())
    )
    return textwrap.wrap(
        line,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def articles_of_rows(rows: Sequence[Row], manifest: Row) -> list[Article | str]:
    """The article of each row of a run, or why it is not there.

    Args:
      rows: with `source_file`, `source_position` and `content_sha256`.
      manifest: the content of manifest.json; empty where no run is known.
    """
    try:
        corpus = corpus_of_run(manifest)
    except UsageError as error:  # of flags that this version does not have
        return [str(error)] * len(rows)
    if corpus is None or any("source_position" not in row for row in rows):
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
    for listed in list_tasks(corpus):
        for task in listed.pieces or (listed,):
            held = [place for place in places if _holds(task, place)]
            only: dict[str, dict[str, int]] = {}
            for path, position in held:
                only.setdefault(path, {})[position] = 1
            if only:
                records = read_task(task._replace(only=only), corpus)
                yield from (each for each in records if isinstance(each, Article))


def _holds(task: Task, place: Place) -> bool:
    """Whether a task may read the record at a place.

    The range of a task and the first number of a position have the same unit.
    """
    is_other = task.files and place.source_file not in task.paths
    if is_other or task.scheme == UNREADABLE_SCHEME:
        return False
    first = (*position_numbers(place.source_position), task.start)[0]
    return task.start <= first and (task.stop == -1 or first < task.stop)
