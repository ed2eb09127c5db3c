"""Numbers, dates and names that a summary states and its source does not hold.

A word, a number or a day of a month that the source does not have is unsupported, and
so is a name that joins `John` and `Kerry` of two people. In other languages than
English only numbers in digits are judged: other words are months there, and have
capitals.

A line that is quoted word for word holds no unsupported fact. A quotation may begin or
end within a number, which is no invention: `a million people came` of a source's `half
a million people came`. Elsewhere `half a million` does not support `a million`.
"""

import functools
import itertools
from collections.abc import Container, Sequence
from typing import NamedTuple

from precis.model.quality.dates import days_of_months, is_supported, stated_dates
from precis.model.quality.names import SourceNames, joined_names, unsupported_names
from precis.model.quality.numerals import (
    SCALES,
    SMALL,
    Value,
    all_values,
    stated_numbers,
)
from precis.model.quality.tokens import is_quoted, plain, readable, token_words, tokens
from precis.model.text.normalization import normalise

_WITHIN_NUMBERS = frozenset([*SCALES, "half", "quarter"])


class SourceFacts:
    """What a source supports, for all summaries of a document.

    A value is computed when a summary needs it: quotations need the text alone.

    Attributes:
      names: the words of its plain text, and what it names.
      is_english: whether the rules for English apply to it and its summaries.
      sentences: lines that it supports, because they are its own sentences.
    """

    def __init__(
        self, text: str, *, is_english: bool = True, sentences: Container[str] = ()
    ) -> None:
        """Reads a normalised text."""
        self.names = SourceNames(plain(readable(text)))
        self.is_english, self.sentences = is_english, sentences

    def has_line(self, line: str) -> bool:
        """Whether a plain line is quoted from the source. The case must be equal unless
        the line has no capital letter.
        """
        names = self.names
        text = names.lower_text if line == line.lower() else names.text
        return bool(line) and is_quoted(line, text)

    def has_number(self, words: Sequence[str], values: Sequence[Value]) -> bool:
        """Whether the source has a number.

        Args:
          words: of the number.
          values: that it may have.
        """
        # Most numbers are in the text as they are. What may begin within another number
        # is no quotation: `million` and `half a million`.
        if words[0] not in _WITHIN_NUMBERS:
            names = (name for name, value in SMALL.items() if value in values)
            for form in itertools.chain([" ".join(words)], map(str, values), names):
                if is_quoted(form, self.names.lower_text):
                    return True
        return not self.values.isdisjoint(values)

    @functools.cached_property
    def values(self) -> set[Value]:
        """Its numbers."""
        return all_values(self._words)

    @functools.cached_property
    def days(self) -> set[tuple[str, int]]:
        """Its dates, as pairs of a month and a day."""
        return days_of_months(self._words)

    @functools.cached_property
    def _words(self) -> list[str]:
        return token_words(self.names.text)


class UnsupportedFacts(NamedTuple):
    """What a summary states and its source does not hold, in the order of the summary.

    Attributes:
      numbers: in lower case, without currency and unit: `4.5 million`, `35`, `twenty
          five`; also those of dates.
      dates: weekdays, months and days of a month in lower case: `monday`, `march 3`.
          None if the source is not English.
      names: sequences of capitalised words: `Angela Merkel`. None if the source is not
          English, or the summary has no capital letter.
    """

    numbers: list[str]
    dates: list[str] | None
    names: list[str] | None


def unsupported_facts(sentences: Sequence[str], facts: SourceFacts) -> UnsupportedFacts:
    """What a summary states beyond the facts of its source.

    Args:
      sentences: of the summary.
      facts: of the source.
    """
    is_extract = all(sentence in facts.sentences for sentence in sentences)
    lines = [] if is_extract else [readable(normalise(each)) for each in sentences]
    plain_lines = list(map(plain, lines))
    # A quoted line counts as one without words, as it holds no unsupported fact.
    tokens_by_line = [
        [] if facts.has_line(line) else list(tokens(line)) for line in plain_lines
    ]
    words_by_line = [
        [token[0].casefold() for token in of_line] for of_line in tokens_by_line
    ]
    numbers = [
        " ".join(words[start:end])
        for words in words_by_line
        for start, end, values in stated_numbers(words)
        if not facts.has_number(words[start:end], values)
        and (facts.is_english or words[start][0].isdigit())
    ]
    if not facts.is_english:
        return UnsupportedFacts(numbers, None, None)
    dates = [
        date.text
        for words in words_by_line
        for date in stated_dates(words)
        if not is_supported(date, facts.names.has, facts.days if date.day else set())
    ]
    if sentences and all(sentence == sentence.lower() for sentence in sentences):
        return UnsupportedFacts(numbers, dates, None)
    names = unsupported_names(lines, tokens_by_line, facts.names)
    for line, of_line in zip(plain_lines, tokens_by_line, strict=True):
        names += joined_names(line, of_line, facts.names)
    return UnsupportedFacts(numbers, dates, names)
