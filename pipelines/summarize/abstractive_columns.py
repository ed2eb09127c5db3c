"""The columns of a row that a network wrote, and their measures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from precis.model.inference.passages import EncodedDocument
from precis.model.quality.fallback import ABSTRACTIVE, SummaryText
from precis.model.quality.measures import SourceIndex, measure
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.score_rounding import round_margin, round_score

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.summarizer import Summary

ABSTRACTIVE_COLUMNS = (
    "source_tokens",
    "seen_tokens",
    "seen_ratio",
    "chunks",
    "abstractive_method",
    "truncated",
    "abstractive_summary",
    "abstractive",
    "abstractive_quality",
)


def _spans(
    support: Sequence[tuple[int, int]] | None,
) -> list[dict[str, int]] | None:
    if support is None:
        return None
    return [{"start": start, "end": end} for start, end in support]


def abstractive_columns(
    article: SourceIndex,
    source: EncodedDocument,
    summaries: "Sequence[Summary]",
    settings: SummarySettings,
) -> tuple[dict[str, Any], SummaryText]:
    """The columns of the network, and the summary that may be shown."""
    best = summaries[0]
    # The flag low_confidence must follow from the column.
    mean_log_prob = round_score(best.mean_log_prob)
    quality = measure(
        best.text,
        article,
        settings.quality,
        mean_log_prob=mean_log_prob,
        is_truncated=source.is_truncated,
    )
    columns = {
        "source_tokens": source.source_tokens,
        "seen_tokens": source.seen_tokens,
        "seen_ratio": source.seen_ratio,
        "chunks": len(source.passages),
        "abstractive_method": source.method,
        "truncated": source.is_truncated,
        "abstractive_summary": best.text,
        "abstractive": [
            {
                "rank": rank,
                "score": round_score(summary.score),
                "text": summary.text,
                "support": _spans(summary.support),
            }
            for rank, summary in enumerate(summaries, start=1)
        ],
        "abstractive_quality": {
            **quality._asdict(),
            "mean_log_prob": mean_log_prob,
            "beam_margin": round_margin(best.margin),
        },
    }
    return columns, SummaryText(ABSTRACTIVE, best.text, quality.flags)
