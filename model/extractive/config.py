"""The configuration of the selection: how scores become an extractive summary."""

import dataclasses

from precis.model.config import check_at_least, flag

# The methods that other methods are measured against. The selection takes their best
# sentences and does not look for repetitions.
BASELINES = ("lead", "random", "oracle")
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
        "are passed over; a language model of --bundle is told the limit; 0 sets none",
        metavar="WORDS",
        default_text="no limit",
    )

    def __post_init__(self) -> None:
        check_at_least(
            self, 0, "sentences", way_out="0 leaves the number to the method"
        )
        check_at_least(self, 0, "max_words", way_out="0 sets no limit")

    @property
    def count(self) -> int:
        """The sentences that a method takes which does not decide itself."""
        return self.sentences or _USUAL_SENTENCES

    @property
    def most(self) -> int:
        """The sentences that a method takes at most which decides how many."""
        return self.sentences or _MOST_SENTENCES
