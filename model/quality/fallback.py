"""The gate: which text goes into `summary`, the one to show."""

import dataclasses
from typing import NamedTuple

from precis.model.config import flag
from precis.model.errors import UsageError
from precis.model.quality.flags import FLAGS

FALLBACKS = ("none", "extractive")
ABSTRACTIVE, SOURCE = "abstractive", "source"
# The one flag that no summary of a network can have.
SHORT_SOURCE = "short_source"
# Also without a fallback this one keeps a text from being shown: what is longer than
# its source is no summary.
LONGER = "longer_than_source"
EMPTY = "empty"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GateConfig:
    """Summary to show"""

    # What a flag is worth depends on network and corpus, so rows say what is wrong with
    # the text that was asked for, until someone who has looked at them decides to do
    # without it.
    fallback: str = flag(
        "none",
        "what `summary` holds where the abstractive summary has one of --fallback_flags: none keeps it with its flags, "
        "extractive takes the extractive one",
        choices=FALLBACKS,
    )
    fallback_flags: str = flag(
        "empty,repeated,unsupported_number,unsupported_date,unsupported_name",
        "flags of abstractive summaries that --fallback extractive does not let through, with commas between them: "
        + ", ".join(name for name in FLAGS if name != SHORT_SOURCE),
    )
    min_source_words: int = flag(
        30,
        "documents of fewer words are their own summary and are not given to a network; 0 summarizes all",
    )

    def __post_init__(self) -> None:
        if self.fallback not in FALLBACKS:
            raise UsageError(
                f"--fallback is one of {', '.join(FALLBACKS)}, not {self.fallback!r}"
            )
        for name in self.held_back:
            if name not in FLAGS or name == SHORT_SOURCE:
                known = ", ".join(other for other in FLAGS if other != SHORT_SOURCE)
                raise UsageError(
                    f"--fallback_flags: abstractive summaries have no flag {name!r}; theirs are {known}"
                )
        if self.fallback != "none" and not self.held_back:
            raise UsageError(
                "--fallback extractive needs at least one of --fallback_flags to act on; name one, or take --fallback none"
            )
        if self.min_source_words < 0:
            raise UsageError(
                f"--min_source_words must not be negative, but is {self.min_source_words}; 0 summarizes all documents"
            )

    @property
    def held_back(self) -> tuple[str, ...]:
        """The names in `fallback_flags`, in order."""
        return tuple(
            name.strip() for name in self.fallback_flags.split(",") if name.strip()
        )


class Text(NamedTuple):
    """A summary that may be shown.

    Attributes:
      method: what made it: the name of an extractive method, `abstractive` or `source`.
      text: one sentence a line.
      flags: names from `quality.flags.FLAGS`.
    """

    method: str
    text: str
    flags: list[str]


class Shown(NamedTuple):
    """What the gate let through.

    Attributes:
      text: the summary to show.
      reasons: the flags for which the abstractive summary is not shown; none where it
          is, or where there was none.
    """

    text: Text
    reasons: list[str]


def choose_summary(
    *,
    source: Text,
    extractive: Text,
    abstractive: Text | None,
    is_short: bool,
    config: GateConfig,
) -> Shown:
    """The summary of a document to show; it has never more words than its source.

    A short document is its own summary. Else the abstractive summary is shown, if there
    is one and none of its flags holds it back; then the extractive one; and the source
    itself where even that were longer. An empty extractive summary takes no other's
    place.
    """
    if is_short:
        return Shown(source, [])
    reasons = (
        [
            name
            for name in abstractive.flags
            if name == LONGER or _holds_back(name, config)
        ]
        if abstractive
        else []
    )
    if abstractive and not reasons:
        return Shown(abstractive, [])
    if (
        EMPTY in extractive.flags
        and abstractive
        and not {EMPTY, LONGER} & set(abstractive.flags)
    ):
        return Shown(abstractive, [])
    return Shown(source if LONGER in extractive.flags else extractive, reasons)


def _holds_back(name: str, config: GateConfig) -> bool:
    return config.fallback == "extractive" and name in config.held_back
