"""The configuration of the selection: how scores become an extractive summary."""

import dataclasses

from precis.model.config import check_choices, flag
from precis.model.errors import UsageError

# The methods that other methods are measured against. The selection takes their best
# sentences and does not look for repetitions.
BASELINES = ("lead", "random", "oracle")
REDUNDANCY = ("none", "trigrams", "mmr")
# Without --sentences: those of most methods, and the most of a network that decides how
# many there are.
_USUAL_SENTENCES = 3
_MOST_SENTENCES = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """Selection"""

    sentences: int = flag(
        0,
        "sentences of an extractive summary, at most; 0 is 3, and for the method "
        "neural as many, up to 5, as it expects the highest ROUGE of",
        metavar="SENTENCES",
        is_common=True,
        default_text="3; neural decides",
    )
    max_words: int = flag(
        0,
        "words of an extractive summary, at most: sentences that do not fit any more "
        "are passed over; 0 sets no limit",
        metavar="WORDS",
        default_text="no limit",
    )
    redundancy: str = flag(
        "trigrams",
        "what keeps an extractive summary from saying things twice: trigrams takes no "
        "sentence that shares three words in a row with one "
        "taken before, mmr weighs score against similarity (maximal marginal "
        "relevance), none takes the best scores",
        choices=REDUNDANCY,
    )
    mmr_lambda: float = flag(
        0.7,
        "weight of the score in maximal marginal relevance, from 0 to 1; the rest "
        "weighs similarity",
        metavar="WEIGHT",
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if self.sentences < 0:
            raise UsageError(
                f"--sentences must not be negative, but is {self.sentences}; 0 leaves "
                "the number to the method"
            )
        if self.max_words < 0:
            raise UsageError(
                f"--max_words must not be negative, but is {self.max_words}; "
                "0 sets no limit"
            )
        if not 0 <= self.mmr_lambda <= 1:
            raise UsageError(
                f"--mmr_lambda must lie between 0 and 1, not be {self.mmr_lambda}"
            )

    @property
    def count(self) -> int:
        """The sentences that a method takes which does not decide itself."""
        return self.sentences or _USUAL_SENTENCES

    @property
    def most(self) -> int:
        """The sentences that a method takes at most which decides how many."""
        return self.sentences or _MOST_SENTENCES

    def for_method(self, method: str) -> "SelectionConfig":
        """The selection for one extractive method.

        A baseline selects by score alone, so its redundancy is `none`.
        """
        if method in BASELINES:
            return dataclasses.replace(self, redundancy="none")
        return self
