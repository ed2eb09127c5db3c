"""The settings of a search; an imported bundle brings its own values."""

import dataclasses
from typing import Any

from precis.model.config import (
    SEARCH,
    Options,
    WriterKind,
    comma_list,
    flag,
    later,
    setting,
)
from precis.model.errors import UsageError

# The library that computes a network.
TENSORFLOW, CTRANSLATE2, AUTO = "tensorflow", "ctranslate2", "auto"
LENGTH_PENALTIES = ("none", "average", "wu")
EARLY_STOPPING = ("never", "first_k", "bound")
NUMBERS, NAMES = "numbers", "names"
# The number of pieces in a block when the best next pieces are chosen.
CANDIDATE_BLOCK = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(Options):
    """Abstractive decoding; an imported bundle may set other defaults"""

    beam_width: int = flag(
        4,
        "hypotheses kept at each step; 1 is greedy search",
        metavar="HYPOTHESES",
        is_common=True,
        affects=SEARCH,
    )
    n_best: int = flag(
        1,
        "candidates kept for each document, best first",
        metavar="SUMMARIES",
        affects=SEARCH,
    )
    length_penalty: float = flag(
        1.0,
        "alpha, the strength of the length penalty: 0 is none, larger values favour "
        "longer summaries",
        metavar="ALPHA",
        affects=SEARCH,
    )
    length_penalty_form: str = setting(
        "wu",
        "divisor of the log-probability of a summary of n pieces: wu, ((5 + n) / "
        "6)^alpha (Wu et al. 2016); average, n^alpha; none, 1",
        choices=LENGTH_PENALTIES,
        affects=SEARCH,
    )
    min_summary_tokens: int = setting(
        0,
        "minimum number of pieces of a summary; if it equals max_summary_tokens, "
        "every summary is cut off there",
        affects=SEARCH,
    )
    max_summary_tokens: int = flag(
        128,
        "maximum number of pieces of a summary, which is cut off there",
        metavar="TOKENS",
        affects=SEARCH,
        writers=tuple(WriterKind),
    )
    no_repeat_ngram: int = setting(
        3,
        "a sequence of this many pieces occurs only once in a summary; 0 allows "
        "repetition",
        affects=SEARCH,
        least=0,
        zero="turns it off",
    )
    repetition_penalty: float = setting(
        1.0,
        "factor for the log-probabilities of pieces already in the summary (Keskar et "
        "al. 2019)",
        affects=SEARCH,
    )
    repetition_penalty_form: str = setting(
        "log_probs",
        "what the repetition penalty applies to: log_probs, which it multiplies, or "
        "logits, which it divides if positive and else multiplies",
        choices=("log_probs", "logits"),
        affects=SEARCH,
    )
    early_stopping: str = setting(
        "never",
        "when to stop: never, when no live hypothesis can still win; first_k, when "
        "beam_width hypotheses have finished; bound, when the best live one would not "
        "win if it ended now",
        choices=EARLY_STOPPING,
        affects=SEARCH,
    )
    unfinished: str = setting(
        "last",
        "rank of summaries cut off at the maximum length: last, after all finished "
        "ones; compete, by score like finished ones",
        choices=("last", "compete"),
        affects=SEARCH,
    )
    supported: str = flag(
        "",
        "facts that may be written only as the article has them, separated by commas: "
        "numbers, which include dates, and names",
        metavar="FACTS,...",
        takes_list=True,
        affects=SEARCH,
    )
    common_pieces: int = setting(
        0,
        "number of pieces that any summary may use, from the start of the vocabulary, "
        "which `precis prepare` sorts by frequency; single characters and the pieces "
        "of the source are always allowed; fewer are faster; 0 allows all",
        affects=SEARCH,
        least=0,
        zero="turns it off",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beam_width < 1:
            raise UsageError(f"`beam_width=` must be at least 1, not {self.beam_width}")
        if not 1 <= self.n_best <= self.beam_width:
            raise UsageError(
                f"`n_best=` must be from 1 to `beam_width=` ({self.beam_width}), not "
                f"{self.n_best}; lower it or raise `beam_width=`"
            )
        if not 0 <= self.min_summary_tokens <= self.max_summary_tokens > 0:
            raise UsageError(
                f"min_summary_tokens ({self.min_summary_tokens}) must be from 0 to "
                f"`max_summary_tokens=` ({self.max_summary_tokens}), which must be at "
                "least 1"
            )
        if self.repetition_penalty <= 0:
            raise UsageError(
                f"repetition_penalty must be above 0, not {self.repetition_penalty}; "
                "1 turns it off"
            )
        for name in self.copied_kinds:
            if name not in (NUMBERS, NAMES):
                raise UsageError(
                    f"`supported=`: unknown facts {name!r}; use {NUMBERS}, {NAMES} or "
                    "both"
                )

    @property
    def copied_kinds(self) -> tuple[str, ...]:
        """The names in `supported`, in order."""
        return comma_list(self.supported)

    def length_divisor(self, length: Any) -> Any:
        """The length penalty, by which the log-probability of a summary is divided.

        wu: ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14); average: n^alpha, as in
        Hugging Face; none: 1.

        Args:
          length: n, the number of tokens including the end token; a number, or
            float32 of any shape.
        """
        if self.length_penalty_form == "none":
            return length**0.0
        if self.length_penalty_form == "wu":
            length = (5.0 + length) / 6.0
        return length**self.length_penalty

    def limited_to(self, max_target_tokens: int) -> "SearchConfig":
        """The settings with lengths limited to what a network can write.

        Args:
          max_target_tokens: the network's maximum target length.
        """
        limit = min(self.max_summary_tokens, max_target_tokens)
        # If the settings never allow the end token, the new ones never allow it either.
        may_end = self.min_summary_tokens < self.max_summary_tokens
        return dataclasses.replace(
            self,
            max_summary_tokens=limit,
            min_summary_tokens=min(self.min_summary_tokens, limit - may_end),
        )


def check_vocabularies(config: SearchConfig, *, has_one_vocabulary: bool) -> None:
    """Checks that settings which compare pieces have one vocabulary to compare in.

    Raises:
      UsageError: source and summary have different vocabularies.
    """
    name = "common_pieces" if config.common_pieces else "`supported=`"
    if (config.common_pieces or config.copied_kinds) and not has_one_vocabulary:
        raise UsageError(
            f"{name} needs one vocabulary for source and summary, but this network "
            "has two; leave it out"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The token ids that a search needs to know.

    They come from the tokenizer and, for imported networks, from the checkpoint.

    Attributes:
      start_id: the token before the first one; not part of the summary.
      end_id: the last token of a summary.
      more_end_ids: other tokens that end a summary.
      pad_id: the token that fills the places after the end token.
      suppressed: tokens that are never written.
      prefix: the first tokens of every summary; they have probability 1.
      last_id: the token at the last place of a summary that reaches the maximum
        length; it has probability 1.
    """

    start_id: int
    end_id: int
    pad_id: int
    suppressed: tuple[int, ...] = ()
    prefix: tuple[int, ...] = ()
    last_id: int | None = None
    more_end_ids: tuple[int, ...] = later(())

    @property
    def end_ids(self) -> tuple[int, ...]:
        """All tokens that end a summary."""
        return self.end_id, *self.more_end_ids
