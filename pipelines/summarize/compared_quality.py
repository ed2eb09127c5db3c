"""The measures of what `precis evaluate` compares the summaries of a row with.

Only here the article is at hand: a run does not hold it.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.isolation import Failure, attempt
from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import SourceIndex, compare, read_source
from precis.model.text.article import Article

_STAGE = "measure_reference"


def other_quality(
    texts: Mapping[str, str], source: SourceIndex, config: QualityConfig
) -> list[dict[str, Any]]:
    """The column `other_quality`: what is shown of the measures of each summary.

    Args:
      texts: the summaries by system, one sentence a line.
      source: the article.
      config: the thresholds of the flags.
    """
    return [
        {"system": system, **compare(text, source, config)._asdict()}
        for system, text in texts.items()
    ]


def reference_quality(
    reference: str | None, source: SourceIndex, config: QualityConfig
) -> dict[str, Any] | None:
    """The column `reference_quality`; None where there is no reference.

    Args:
      reference: the highlights of the document.
      source: the article.
      config: the thresholds of the flags.
    """
    return compare(reference, source, config)._asdict() if reference else None


def quality_of_own_reference(
    article: Article, row: Mapping[str, Any], config: QualityConfig
) -> dict[str, Any] | None:
    """The column `reference_quality` of a document that takes over a row.

    The row may be of a document with equal text and another reference. A document that
    cannot be measured keeps its row and has no measures.

    Args:
      article: the document.
      row: the row; empty where it is not known yet.
      config: the thresholds of the flags.
    """
    reference = article.document.highlights
    if not reference:
        return None
    if row.get("reference_summary") == reference:
        known: dict[str, Any] | None = row["reference_quality"]
        return known
    measured = attempt(
        article,
        lambda each: reference_quality(reference, read_source(each), config),
        stage=_STAGE,
    )
    return None if isinstance(measured, Failure) else measured
