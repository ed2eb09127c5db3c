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
"""

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.pipelines.evaluate.source_articles import articles_of_rows
from precis.pipelines.run.result_files import DESCRIPTION_FILES
from precis.pipelines.tables.row_ranges import RowRange, is_pattern, read_rows

_COLUMNS = (
    "document_id",
    "source_file",
    "source_position",
    "content_sha256",
    "reference_summary",
    "reference_quality",
    "summary_method",
    "quality_flags",
    "extractive_method",
    "extractive_summary",
    "extractive",
    "extractive_quality",
    "abstractive_summary",
    "abstractive_quality",
)
# The lines of a text that is read closely are not as long as a wide terminal.
_LEAST_WIDTH = 60
_MOST_WIDTH = 100
_FACTS = {
    "unsupported_numbers": "numbers",
    "unsupported_dates": "dates",
    "unsupported_names": "names",
}


def shown_documents(shown: Sequence[Mapping[str, Any]], source: str) -> Iterator[str]:
    """The documents that were drawn, as text to print.

    Args:
      shown: the entry of rouge.json.
      source: the run, or a pattern of files.
    """
    if not shown:
        return
    rows = [
        read_rows(RowRange(0, place["file"], place["row"], 1), _COLUMNS)[0]
        for place in shown
    ]
    manifest = None
    if not is_pattern(source):
        path = files.join(source, DESCRIPTION_FILES["summaries"])
        manifest = files.read_json(path)
    articles = articles_of_rows(rows, manifest)
    columns = shutil.get_terminal_size().columns
    width = min(max(columns, _LEAST_WIDTH), _MOST_WIDTH)
    for number, (row, article) in enumerate(zip(rows, articles, strict=True), start=1):
        title = f"{number} of {len(rows)}: document {row['document_id']}"
        yield "\n".join(["=" * width, title, *_document(row, article, width)])
    yield "=" * width


def _document(
    row: Mapping[str, Any], article: Article | str, width: int
) -> Iterator[str]:
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
        measured = measure(
            row["reference_summary"], read_source(article), QualityConfig()
        )
        # The flags are those of the run, the unsupported facts stand in no column.
        reference = {**measured._asdict(), **(reference or {})}
    yield from _text(
        f"EXTRACT by {row['extractive_method']}",
        row["extractive_summary"],
        row.get("extractive_quality"),
        width,
    )
    yield from _text(
        "WRITTEN", row["abstractive_summary"], row.get("abstractive_quality"), width
    )
    yield from _text("REFERENCE", row["reference_summary"], reference, width)


def _source(
    row: Mapping[str, Any], article: Article | str, width: int
) -> Iterator[str]:
    """The sentences of the article, or those that a method chose."""
    method = row["extractive_method"]
    chosen = {
        item["start"]: item["text"]
        for item in row["extractive"] or ()
        if item["method"] == method
    }
    if isinstance(article, Article):
        sentences = {each.start: each.text for each in article.sentences}
        yield f"SOURCE: {len(sentences)} sentences; * chosen by {method}"
    else:
        sentences = {item["start"]: item["text"] for item in row["extractive"] or ()}
        sentences = dict(sorted(sentences.items()))
        yield from textwrap.wrap(f"SOURCE: not at hand: {article}", width)
        yield f"  the sentences that any method chose; * by {method}"
    # Without the article, the number of a sentence is not known.
    places = [
        str(number) if isinstance(article, Article) else f"@{start}"
        for number, start in enumerate(sentences, start=1)
    ]
    indent = max(map(len, places), default=0) + 2
    for place, (start, text) in zip(places, sentences.items(), strict=True):
        mark = "*" if start in chosen else " "
        yield from _wrapped(text, width, first=f"{place:>{indent}} {mark} ")
    yield ""


def _text(
    title: str, text: str | None, quality: Mapping[str, Any] | None, width: int
) -> Iterator[str]:
    """A summary with what is to be said against it."""
    if text is None:
        yield f"{title}: none; no network read the document"
    else:
        facts = _describe(quality) if quality else "not measured"
        yield from textwrap.wrap(f"{title}: {facts}", width, subsequent_indent="  ")
        for line in text.splitlines():
            yield from _wrapped(line, width, first="  ")
        unsupported = _unsupported(quality or {})
        if unsupported:
            yield from _wrapped(
                f"not in the source: {unsupported}", width, first="  ! "
            )
    yield ""


def _describe(quality: Mapping[str, Any]) -> str:
    novel = quality["novel_2grams_percent"]
    facts = [f"{quality['words']} words"]
    if novel is not None:
        facts.append(f"novel bigrams {novel:.1f} %")
    if quality["repetition_rate"]:
        facts.append(f"repeated trigrams {100 * quality['repetition_rate']:.1f} %")
    if quality["flags"]:
        facts.append(f"flags {', '.join(quality['flags'])}")
    return "; ".join(facts)


def _unsupported(quality: Mapping[str, Any]) -> str:
    """The numbers, dates and names that the article does not hold."""
    return "; ".join(
        f"{title} {', '.join(quality[name])}"
        for name, title in _FACTS.items()
        if quality.get(name)
    )


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
