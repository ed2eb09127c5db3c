"""The flags of a summary: short constant names for what its measures warn of.

A SQL `WHERE` leaves out the rows with a flag:

    SELECT document_id, summary FROM summaries
    WHERE NOT list_contains(quality_flags, 'unsupported_number')
"""

import dataclasses
from collections.abc import Mapping

from precis.model.config import flag
from precis.model.errors import UsageError

# In the order in which a row lists them.
FLAGS: Mapping[str, str] = {
    "empty": "the text holds no word",
    "too_short": "fewer words than --min_summary_words",
    "longer_than_source": "more words than the source",
    "repeated": (
        "a larger share of trigrams than --max_repetition_rate was written before, "
        "and more often than in the source"
    ),
    "unsupported_number": "a number that the source does not hold",
    "unsupported_date": (
        "a weekday, month or day of a month that the source does not hold"
    ),
    "unsupported_name": "a capitalised name that the source does not hold",
    "low_confidence": (
        "a mean log-probability of its tokens below --min_mean_log_prob"
    ),
    "truncated_source": "the network did not read all of the source",
    "short_source": (
        "the source has fewer words than --min_source_words and is its own summary"
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class QualityConfig:
    """Quality flags"""

    min_summary_words: int = flag(
        3, "summaries of fewer words are flagged too_short", metavar="WORDS"
    )
    max_repetition_rate: float = flag(
        0.1,
        "summaries that write a larger share of trigrams more than once, "
        "and more often than the source, are flagged repeated",
        metavar="SHARE",
    )
    min_mean_log_prob: float = flag(
        -2.0,
        "abstractive summaries with a lower mean log-probability of their tokens are "
        "flagged low_confidence; networks differ in scale",
        metavar="LOG_PROB",
    )

    def __post_init__(self) -> None:
        if self.min_summary_words < 0:
            raise UsageError(
                "--min_summary_words must not be negative, "
                f"but is {self.min_summary_words}; 0 flags none"
            )
        if not 0 <= self.max_repetition_rate <= 1:
            raise UsageError(
                "--max_repetition_rate is a share from 0 to 1, "
                f"not {self.max_repetition_rate}; 1 flags none"
            )
        if self.min_mean_log_prob > 0:
            raise UsageError(
                "--min_mean_log_prob is a log-probability, at most 0, "
                f"not {self.min_mean_log_prob}"
            )
