"""The configuration of the selection: how scores become an extractive summary, and the
length limit of all summaries.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING

from precis.model.config import Options, flag

if TYPE_CHECKING:
    from precis.model.text.length_limit import LengthLimit

# Methods that other methods are compared with. The selection takes their best sentences
# and does not look for repetitions.
BASELINES = ("lead", "random", "oracle")
# Two methods that are not in METHODS: neural has a network, oracle needs the reference.
NEURAL = "neural"
ORACLE = "oracle"
# The number of sentences if none is given, and the maximum of a network that decides
# the number.
_USUAL_SENTENCES = 3
_MOST_SENTENCES = 5
SUMMARY, HEADLINE, KEY_POINTS = "summary", "headline", "key_points"  # forms
_HEADLINE_WORDS = 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig(Options):
    """Selection"""

    sentences: int = flag(
        0,
        "maximum number of sentences of an extractive summary; 0: 3, but the method "
        "neural chooses the number, up to 5, that it expects to score best",
        metavar="SENTENCES",
        is_common=True,
        default_text="3; neural chooses",
        least=0,
        zero="leaves the choice to the method",
    )
    max_words: int = flag(
        0,
        "maximum number of words of a summary: an extract leaves out sentences that "
        "do not fit, an abstractive summary is a shorter candidate or its first "
        "sentences, and a language model of `bundle=` is told the limit; 0 sets no "
        "limit",
        metavar="WORDS",
        default_text="no limit; 15 for a headline",
        least=0,
        zero="sets no limit",
    )
    max_chars: int = flag(
        0,
        "maximum number of characters of a summary, line breaks included, applied "
        "like `max_words=`; 0 sets no limit",
        metavar="CHARACTERS",
        default_text="no limit",
        least=0,
        zero="sets no limit",
    )
    form: str = flag(
        SUMMARY,
        "what to write: a summary; a headline, one line of at most 15 words, for "
        "which extractive methods shorten an English sentence; or key_points, up to "
        "five sentences, one per line; change this with `sentences=`, `max_words=`, "
        "`max_chars=` or `instruction=`",
        choices=(SUMMARY, HEADLINE, KEY_POINTS),
        is_common=True,
    )

    @property
    def is_headline(self) -> bool:
        """Whether a summary is one line, which sentences may be shortened to."""
        return self.form == HEADLINE and self.limit.lines == 1

    @property
    def count(self) -> int:
        """The number of sentences, for methods that do not decide it themselves."""
        return self.limit.lines or self.sentences or _USUAL_SENTENCES

    @property
    def most(self) -> int:
        """The maximum number of sentences, for methods that decide the number."""
        return self.limit.lines or self.sentences or _MOST_SENTENCES

    @functools.cached_property
    def limit(self) -> "LengthLimit":
        """The length limit of all summaries."""
        from precis.model.text.length_limit import LengthLimit

        limit = LengthLimit(self.max_words, self.max_chars)
        if self.form == HEADLINE and not limit:
            limit = LengthLimit(_HEADLINE_WORDS)
        lines = {SUMMARY: 0, HEADLINE: 1, KEY_POINTS: _MOST_SENTENCES}[self.form]
        return limit._replace(lines=lines and (self.sentences or lines))
