"""`precis summarize --text FILE`: prints the summary of one document."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.options.one_document import OneDocumentOptions

# The endings of files that hold a document in each record: the scheme of --corpus, and
# what to call them.
_RECORDS = {
    ".jsonl": ("jsonl", "JSON lines"),
    ".ndjson": ("jsonl", "JSON lines"),
    ".csv": ("csv", "CSV"),
}
# Fields of the measures of a summary that name what the article does not hold.
_UNSUPPORTED = ("numbers", "dates", "names")


def print_summary(
    options: OneDocumentOptions, values: dict[str, Any], beam_args: Sequence[str]
) -> int:
    """Prints the summary, and warnings of it to the standard error.

    Raises:
      UsageError: a flag that is none of precis, or one that goes with a corpus.
    """
    if beam_args:
        raise UsageError(
            f"there is no flag {beam_args[0].partition('=')[0]} where one document is "
            "summarized; `precis summarize --help all` lists the flags"
        )
    from precis.pipelines.summarize.one_document import (
        as_json,
        check_flags,
        summarize_document,
    )

    check_flags(options.text, values)
    warn_of_records(options.text)
    row = summarize_document(options.text, **values)
    print(as_json(row) if options.json else row["summary"])
    for line in warnings_of(row):
        say(f"precis summarize: {line}")
    return 0


def warn_of_records(file: str) -> None:
    """Warns where the name of a file says that it holds many documents."""
    ending = os.path.splitext(file)[1].lower()
    if ending in _RECORDS:
        scheme, words = _RECORDS[ending]
        say(
            f"precis summarize: warning: {file} is taken for one document and reads "
            f"like {words}; --corpus {shlex.quote(f'{scheme}:{file}')} --output "
            "summaries summarizes each of its records"
        )


def warnings_of(row: Mapping[str, Any]) -> list[str]:
    """What a reader of the summary should know, in lines.

    Args:
      row: of the document.
    """
    lines = []
    if row["quality_flags"]:
        lines.append(f"quality flags: {', '.join(row['quality_flags'])}")
    if row["summary_method"] == "source":
        lines.append("the document is short, and is its own summary")
    elif row["abstractive_summary"] and row["summary_method"] != "abstractive":
        flags = row["abstractive_quality"]["flags"]
        lines.append(
            f"the network's summary is held back ({', '.join(flags)}); these are "
            f"sentences of the document, by the method {row['summary_method']}"
        )
    quality = row["abstractive_quality"]
    for kind in _UNSUPPORTED:
        found = quality and quality[f"unsupported_{kind}"]
        if found and row["summary_method"] == "abstractive":
            lines.append(f"{kind} that the document does not hold: {', '.join(found)}")
    if row["truncated"]:
        lines.append(
            f"the network read {row['seen_tokens']:,} of the {row['source_tokens']:,} "
            "tokens of the document"
        )
    return lines
