"""The length limit of a summary: words, as counted by `count_words`, and characters.

limit of 6 words    Rain fell.  Nobody came on Monday.      within it
                    Rain fell.  Nobody came here on Monday. cut to `Rain fell.`
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from precis.model.text.language import ENGLISH
from precis.model.text.normalization import one_line
from precis.model.text.sentences import split_sentences
from precis.model.text.words import number_of_words

_BULLET = re.compile(r"^[ \t]*[-*•–]\s+", re.MULTILINE)
_NUMBER = re.compile(r"^[ \t]*\(?(\d{1,2})[.)]\s+", re.MULTILINE)
_END = re.compile(r"[.!?…。！？][\s\"'”’»)\]]*\Z")


class Size(NamedTuple):
    """The length of a line; the size of a text is the sum over its lines.

    Attributes:
      words: the number of words.
      chars: the number of characters, with a line break.
    """

    words: int
    chars: int


class LengthLimit(NamedTuple):
    """The maximum length of a text; 0 sets no limit.

    Attributes:
      words, chars: the maximum number of words and of characters.
      lines: the maximum number of lines, each a sentence.
    """

    words: int = 0
    chars: int = 0
    lines: int = 0

    def __bool__(self) -> bool:
        """Whether there is a limit."""
        return any(self)

    @property
    def most(self) -> tuple[float, float]:
        """The maximum of words, and of characters with a break after each line."""
        return self.words or math.inf, self.chars + 1 if self.chars else math.inf

    def holds(self, lines: Iterable[Size]) -> bool:
        """Whether lines of these sizes are within the limit; `lines` is not checked."""
        most_words, most_chars = self.most
        for each in lines:
            most_words -= each.words
            most_chars -= each.chars
        return most_words >= 0 and most_chars >= 0

    def fits(self, text: str) -> bool:
        """Whether a text is within the limit."""
        has_lines = not self.lines or text.count("\n") < self.lines
        return has_lines and self.holds([Size(count_words(text), len(text) + 1)])

    def share(self, text: str) -> float:
        """The share of a text that the limit allows; 1 or more if the text fits."""
        most_words, most_chars = self.most
        return min(most_words / max(count_words(text), 1), most_chars / (len(text) + 1))

    def beginnings(self, text: str, language: str = ENGLISH) -> list[str]:
        """The text, then the text without its last sentence, without its last two, ...

        With a limit of lines each sentence is a line, without the mark of a list.
        """
        if self.lines:
            text = _BULLET.sub("", text)
            if _NUMBER.findall(text)[:2] == ["1", "2"]:
                text = _NUMBER.sub("", text)
        sentences = split_sentences(text, language=language)
        if self.lines:
            lines = [one_line(each.text) for each in sentences]
            return ["\n".join(lines[:n]) for n in range(len(lines), 0, -1)]
        return [text, *(text[: each.end] for each in reversed(sentences[:-1]))]


NO_LENGTH_LIMIT = LengthLimit()


def count_words(text: str) -> int:
    """The number of words by `words` or between white space, whichever is more."""
    return max(number_of_words(text), len(text.split()))


def line_size(sentence: str) -> Size:
    """The size of a sentence of an article as a line of a summary."""
    return Size(count_words(sentence), len(" ".join(sentence.split())) + 1)


def ends_sentence(text: str) -> bool:
    """Whether a text ends like a sentence, and not within a clause."""
    return _END.search(text) is not None


def is_closed(text: str) -> bool:
    """Whether all quotations and brackets of a text are closed."""
    is_quoted = sum(map(text.count, '"„“”')) % 2
    return not is_quoted and text.count("(") <= text.count(")")
