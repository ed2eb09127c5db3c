"""Quality flags: names of warnings about a summary.

A SQL `WHERE` leaves out the rows with a flag:

    SELECT document_id, summary FROM summaries
    WHERE NOT list_contains(quality_flags, 'unsupported_number')

The fallback uses them to choose the text that a row shows as its `summary`.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

from precis.model.config import Options, WriterKind, comma_list, flag, setting
from precis.model.errors import UsageError

# In the order in which a row lists them; docs/SCHEMA.md explains them.
FLAGS = tuple(
    (
        "empty too_short longer_than_source barely_shorter repeated unsupported_number "
        "unsupported_date unsupported_name lost_attribution low_confidence "
        "doubtful_line over_limit unfinished truncated_source markup_source refused "
        "short_source"
    ).split()
)
MIN_MEAN_LOG_PROB = -2.0
# Least line confidence: below it a summarizer drops a line, unless the line is an
# unchanged sentence of the article; chosen on 600 articles.
MIN_TAKEN_CONFIDENCE = 0.78
ABSTRACTIVE = "abstractive"
SOURCE = "source"
# The only flag that an abstractive summary cannot have.
SHORT_SOURCE = "short_source"
# A summary with this flag is never shown, not even with fallback none.
LONGER = "longer_than_source"
EMPTY = "empty"
# A summary with this flag is not shown if there is another text within the limit.
OVER_LIMIT = "over_limit"
# A summary with this flag is not shown; the text that replaces it has the flag too.
REFUSED = "refused"
_CANNOT = (
    r"\bI(?:['’]m| am)? (?:can(?:not|['’]t| not)|unable|not able|won['’]t|must decline)"
)
# The beginning of a line in which a model refuses to write a summary.
REFUSAL = re.compile(
    r"(?:(?:I['’]m|I am|we['’]re)? ?(?:\w+ )?sorry|I apologi[sz]e)\b.{0,60}?"
    rf"(?:{_CANNOT}|I don['’]t see)|(?:unfortunately,? |as an? .{{0,50}}? )?{_CANNOT} "
    r"(?:to )?(?:\w+ )?(?:(?:assist|comply|help with|do that|engage)\b|(?:provide|"
    r"create|summari[sz]e|fulfil+|process|access) (?:an?|any|the|this|that|your?)\b)|"
    r"(?:es tut mir leid|je suis désolée?|lo siento|mi dispiace|desculpe|het spijt me|"
    r"извините)\b.{0,40}\b(?:kann|peux|puedo|posso|kan|не могу)\b|"
    r".{0,9}(?:抱歉|对不起).{0,9}(?:无法|不能)|申し訳(?:ありません|ございません)が",
    re.IGNORECASE,
)

_ABSTRACTIVE_FLAGS = [name for name in FLAGS if name != SHORT_SOURCE]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FallbackConfig(Options):
    """Summary to show"""

    # Whether a flag justifies a fallback depends on the network and the corpus. So the
    # default keeps the abstractive summary with its flags.
    fallback: str = flag(
        "none",
        "which text the column `summary` holds: none, the abstractive summary; "
        "extractive, the extract instead of an abstractive summary with any of "
        "fallback_flags; always, the extract in every row, so that abstractive "
        "summaries are only drafts",
        choices=("none", "extractive", "always"),
        is_common=True,
        writers=tuple(WriterKind),
    )
    fallback_flags: str = setting(
        "empty,repeated,unsupported_number,unsupported_date,unsupported_name,"
        "lost_attribution,doubtful_line",
        "quality flags for which `fallback=extractive` replaces an abstractive "
        f"summary: any of {', '.join(_ABSTRACTIVE_FLAGS)}",
        takes_list=True,
        writers=tuple(WriterKind),
    )
    min_mean_log_prob: float = setting(
        MIN_MEAN_LOG_PROB,
        "mean log-probability, in nats per token, below which a summary has the flag "
        "low_confidence",
        writers=tuple(WriterKind),
    )
    min_confidence: float = flag(
        0.75,
        "line confidence below which a summary has the flag doubtful_line; for "
        "bundles of `precis train-summarizer`, whose lines below "
        f"{MIN_TAKEN_CONFIDENCE} are only unchanged sentences of the article",
        metavar="P",
        writers=(WriterKind.SUMMARIZER,),
    )
    min_source_words: int = flag(
        30,
        "a document with fewer words becomes its own summary, without a network; 0 "
        "summarizes all documents",
        metavar="WORDS",
        least=0,
        zero="summarizes all documents",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.fallback_flag_names:
            if name not in _ABSTRACTIVE_FLAGS:
                raise UsageError(
                    f"fallback_flags: {name!r} is not a flag of abstractive "
                    f"summaries; their flags are {', '.join(_ABSTRACTIVE_FLAGS)}"
                )
        if self.fallback == "extractive" and not self.fallback_flag_names:
            raise UsageError(
                "`fallback=extractive` needs at least one flag in fallback_flags; "
                "name one, or use `fallback=none`"
            )
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(
                "`min_confidence=` must be a probability from 0 to 1, not "
                f"{self.min_confidence:g}"
            )

    @property
    def fallback_flag_names(self) -> tuple[str, ...]:
        """The names in `fallback_flags`, in order."""
        return comma_list(self.fallback_flags)


class SummaryText(NamedTuple):
    """A summary that may be shown.

    Attributes:
      method: the name of an extractive method, `abstractive` or `source`.
      text: one sentence per line.
      flags: names from `quality.flags.FLAGS`.
    """

    method: str
    text: str
    flags: list[str]


def choose_summary(
    *,
    source: Callable[[], SummaryText],
    extractive: SummaryText,
    abstractive: SummaryText | None,
    is_short: bool,
    config: FallbackConfig,
) -> SummaryText:
    """Decides which summary of a document is shown.

    The shown summary never has more words than the source. It is the first of these
    that applies, where a source over the limit does not count:

    1. the source, if the document is short;
    2. the abstractive summary, if there is one, none of its flags rejects it, and
       `fallback` is not `always`;
    3. the abstractive summary, if the extractive summary is empty and the abstractive
       summary is neither empty, nor longer than the source, nor refused;
    4. the source, if the extractive summary is longer than the source;
    5. the extractive summary.

    A text that replaces a refusal has the flag `refused`.

    Args:
      source: returns the source as a summary.
      extractive: the extractive summary.
      abstractive: the abstractive summary; None if no network read the document.
      is_short: whether the document is short enough to be its own summary.
      config: says which flags reject an abstractive summary.
    """
    whole = source() if is_short or LONGER in extractive.flags else None
    if whole and OVER_LIMIT in whole.flags:
        whole = None
    if whole and is_short:
        return whole
    if abstractive:
        is_rejected = config.fallback == "always" or any(
            rejects(name, config) for name in abstractive.flags
        )
        is_usable = not {EMPTY, LONGER, REFUSED} & set(abstractive.flags)
        if not is_rejected or (EMPTY in extractive.flags and is_usable):
            return abstractive
    shown = whole or extractive
    if abstractive and REFUSED in abstractive.flags:
        shown = shown._replace(flags=[*shown.flags, REFUSED])
    return shown


def rejects(name: str, config: FallbackConfig) -> bool:
    """Whether an abstractive summary with this flag is not shown."""
    if name in (LONGER, OVER_LIMIT, REFUSED):
        return True
    return config.fallback == "extractive" and name in config.fallback_flag_names
