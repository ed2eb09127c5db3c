"""Dead letters: records that could not be processed, each with the reason.

A record that ends before its result is never dropped in silence: it is published with
the job's result and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from precis.model.errors import DataError
from precis.pipelines.corpus.task import EmptyArticle, Unreadable

# A gzip stream that broke off does not say how many records it held.
UNCOUNTED = "read/broken_gzip"


class DeadLetter(NamedTuple):
    """A record or document that ended before its result.

    Attributes:
      stage: where it ended, as in `read`.
      reason: a short constant name; dead letters are counted by it.
      detail: one line that says what was wrong, without the document's text.
      document_id: None where there was no document yet, or one without an id.
      source_file, source_position: where the record stands in the corpus, as in
          `Document`; empty if it came from none.
      raw: the record's bytes, cut at 64 KiB, or None.
      records: how many records are lost with it.
      error_class: the class of the error that ended it; None if there was none.
      retryable: whether another run may have another result: so it is after an error
          of the machine, and not of the data.
      content_sha256: the hash of the normalised article; None where there was none yet.
    """

    stage: str
    reason: str
    detail: str
    document_id: str | None = None
    source_file: str = ""
    source_position: str = ""
    raw: bytes | None = None
    records: int = 1
    error_class: str | None = None
    retryable: bool = False
    content_sha256: str | None = None


def unreadable_letter(record: Unreadable) -> DeadLetter:
    """The dead letter of a record that is no document."""
    return DeadLetter(
        "read",
        record.reason,
        record.detail,
        source_file=record.source_file,
        source_position=record.source_position,
        raw=record.raw,
        records=record.records,
    )


def empty_article_letter(record: EmptyArticle) -> DeadLetter:
    """The dead letter of a document that has no text to summarize."""
    return DeadLetter(
        "read",
        "empty_article",
        "the article has no text",
        record.document.document_id or None,
        record.document.source_file,
        record.document.source_position,
        record.raw or None,
    )


def count_reasons(letters: Sequence[DeadLetter]) -> dict[str, int]:
    """How many records were lost for each `stage/reason`."""
    counts: Counter[str] = Counter()
    for letter in letters:
        counts[f"{letter.stage}/{letter.reason}"] += letter.records
    return dict(counts)


def check_failures(
    counts: Mapping[str, int],
    reasons: Mapping[str, int],
    *,
    max_failed_share: float,
    dead_letters: str,
) -> None:
    """Fails a job that lost too many records.

    Args:
      counts: documents by what became of them; `read` and `failed` are used.
      reasons: lost records by `stage/reason`.
      max_failed_share: the share of read records that may fail.
      dead_letters: where the dead letters are, for the message.

    Raises:
      DataError: more than that failed, or it is unknown how many did.
    """
    broken_streams = reasons.get(UNCOUNTED)
    if broken_streams and max_failed_share < 1:
        raise DataError(
            f"{broken_streams} gzip stream(s) broke off and an unknown number of "
            f"records is lost; see {dead_letters}, replace the files, or run the "
            "command again with --max_failed_share 1 to go without those records"
        )
    read = counts["read"]
    failed = counts["failed"]
    if failed > max_failed_share * read:
        most_frequent_first = sorted(reasons.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{reason} {count}" for reason, count in most_frequent_first)
        raise DataError(
            f"{failed} of {read} records failed ({listed}), more than "
            f"--max_failed_share {max_failed_share:g} allows; see {dead_letters}, mend "
            "the corpus, or allow more and run the command again to finish"
        )
