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
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.quality.dates import days_of_months, is_supported, stated_dates
from precis.model.quality.names import (
    Mentions,
    mentions_of,
    names_in_a_row,
    unsupported_names,
    vocabulary_of,
)
from precis.model.quality.numerals import SCALES, Value, all_values, stated_numbers
from precis.model.quality.tokens import (
    distinct_words,
    is_quoted,
    plain,
    readable,
    token_words,
)
from precis.model.text.normalization import normalise


class SourceFacts:
    """What a source supports, for all summaries of a document.

    A value is computed when a summary needs it: quotations need the text alone.

    Attributes:
      text: its plain text, to recognise quotations.
      is_english: whether the rules for English apply to it and its summaries.
    """

    def __init__(self, text: str, *, is_english: bool = True) -> None:
        """Reads a normalised text."""
        self.text = plain(readable(text))
        self.is_english = is_english

    def has_line(self, line: str) -> bool:
        """Whether a plain line is quoted from the source. The case must be equal unless
        the line has no capital letter.
        """
        text = self._lower_text if line == line.lower() else self.text
        return bool(line) and is_quoted(line, text)

    def has_number(self, words: Sequence[str], values: Sequence[Value]) -> bool:
        """Whether the source has a number.

        Args:
          words: of the number.
          values: that it may have.
        """
        # Most numbers are one word that the text has as it is. A scale there may be
        # divided, as in `half a million`.
        if len(words) == 1 and words[0] not in SCALES:
            if f" {words[0]} " in self._lower_text or words[0] in self._distinct_words:
                return True
        return not self.values.isdisjoint(values)

    @functools.cached_property
    def vocabulary(self) -> set[str]:
        """`names.vocabulary_of` its words."""
        return vocabulary_of(self._distinct_words)

    @functools.cached_property
    def mentions(self) -> Mentions:
        """Its names."""
        return mentions_of(self.text)

    @functools.cached_property
    def values(self) -> set[Value]:
        """Its numbers."""
        return all_values(self._words)

    @functools.cached_property
    def days(self) -> set[tuple[str, int]]:
        """Its dates, as pairs of a month and a day."""
        return days_of_months(self._words)

    @functools.cached_property
    def _distinct_words(self) -> set[str]:
        return distinct_words(self.text)

    @functools.cached_property
    def _words(self) -> list[str]:
        return token_words(self.text)

    @functools.cached_property
    def _lower_text(self) -> str:
        return f" {self.text.lower()} "


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
    lines = [readable(normalise(sentence)) for sentence in sentences]
    # A quoted line counts as one without words, as it holds no unsupported fact.
    words_by_line = [
        [] if facts.has_line(line) else token_words(line) for line in map(plain, lines)
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
        if not is_supported(date, facts.vocabulary, facts.days if date.day else set())
    ]
    has_capitals = any(line != line.lower() for line in lines)
    if lines and not has_capitals:
        return UnsupportedFacts(numbers, dates, None)
    names: list[str] = []
    if any(words_by_line):
        names = unsupported_names(lines, words_by_line, facts.vocabulary)
        for line, words in zip(lines, words_by_line, strict=True):
            if words:
                names += _joined_names(plain(line), facts)
    return UnsupportedFacts(numbers, dates, names)


def _joined_names(line: str, facts: SourceFacts) -> list[str]:
    """The names that a plain line joins of words from several names of the source."""
    names: list[str] = []
    for first, second in names_in_a_row(line, facts.vocabulary):
        name = line[first.start() : second.end()]
        # Most names stand in the text as they are, which needs no list of all.
        is_whole = name.removesuffix("'s") in facts.text
        if not is_whole and not facts.mentions.hold(first[0], second[0]):
            names.append(name)
    return names
