"""Unsupported facts: numbers, dates and names of a summary that its source lacks.

A word, a number or a day of a month that is not in the source is unsupported. So is a
name that joins `John` and `Kerry` from the names of two people. In languages other than
English only numbers in digits are checked, because names of months and the use of
capitals differ.

A line quoted word for word has no unsupported fact, even if it begins or ends within a
number: `a million people came` from `half a million people came`. In other lines, `half
a million` does not support `a million`.
"""

import functools
import itertools
import operator
from collections.abc import Container, Iterator, Sequence
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

_SMALL_NAMES: dict[Value, list[str]] = {}
for _name, _value in SMALL.items():
    _SMALL_NAMES.setdefault(_value, []).append(_name)
_WITHIN_NUMBERS = frozenset([*SCALES, "half", "quarter"])


class SourceFacts:
    """The facts of a source, for all summaries of it; computed when first needed.

    Attributes:
      names: the words and names of the plain text.
      is_english: whether the rules for English apply to the source and its summaries.
      sentences: the sentences of the source, which it supports as lines.
    """

    def __init__(
        self, text: str, *, is_english: bool = True, sentences: Container[str] = ()
    ) -> None:
        """Reads a normalised text."""
        self.names = SourceNames(plain(readable(text)))
        self.is_english, self.sentences = is_english, sentences

    def has_line(self, line: str) -> bool:
        """Whether a plain line is quoted from the source. The case must match unless
        the line has no capital letter.
        """
        names = self.names
        text = names.lower_text if line == line.lower() else names.text
        return bool(line) and is_quoted(line, text)

    def has_number(self, words: Sequence[str], values: Sequence[Value]) -> bool:
        """Whether the source has a number.

        Args:
          words: the words of the number.
          values: the values that these words can mean.
        """
        # A fast check first: most numbers are quoted. It does not apply to words that
        # may be the end of another number, as `million` in `half a million`.
        if words[0] not in _WITHIN_NUMBERS:
            names = (name for value in values for name in _SMALL_NAMES.get(value, ()))
            for form in itertools.chain([" ".join(words)], map(str, values), names):
                if is_quoted(form, self.names.lower_text):
                    return True
        return not self.values.isdisjoint(values)

    @functools.cached_property
    def values(self) -> set[Value]:
        """The numbers of the source."""
        return all_values(self._words)

    @functools.cached_property
    def days(self) -> set[tuple[str, int]]:
        """The dates of the source, as pairs of a month and a day."""
        return days_of_months(self._words)

    @functools.cached_property
    def _words(self) -> list[str]:
        return token_words(self.names.text)


class UnsupportedFacts(NamedTuple):
    """The facts of a summary that its source does not hold, in the summary's order.

    Attributes:
      numbers: numbers in lower case, without currency and unit, including the numbers
          of dates: `4.5 million`, `35`, `twenty five`.
      dates: weekdays, months and days of a month in lower case: `monday`, `march 3`.
          None if the source is not English.
      names: sequences of capitalised words: `Angela Merkel`. None if the source is not
          English, or if the summary has no capital letter.
    """

    numbers: list[str]
    dates: list[str] | None
    names: list[str] | None


def unsupported_facts(sentences: Sequence[str], facts: SourceFacts) -> UnsupportedFacts:
    """Finds the facts of a summary that its source does not hold.

    Args:
      sentences: the lines of the summary.
      facts: the facts of the source.
    """
    return UnsupportedFacts._make(find_facts(sentences, facts))


def find_facts(
    sentences: Sequence[str], facts: SourceFacts
) -> Iterator[list[str] | None]:
    """The fields of `unsupported_facts`, each computed when it is asked for."""
    is_extract = all(sentence in facts.sentences for sentence in sentences)
    lines = [] if is_extract else [readable(normalise(each)) for each in sentences]
    plain_lines = list(map(plain, lines))
    # A quoted line has no unsupported fact, so its tokens are left out.
    tokens_by_line = [
        [] if facts.has_line(line) else list(tokens(line)) for line in plain_lines
    ]
    words_by_line = [
        [token[0].casefold() for token in of_line] for of_line in tokens_by_line
    ]

    def numbers() -> list[str]:
        return [
            " ".join(words[start:end])
            for words in words_by_line
            for start, end, values in stated_numbers(words)
            if not facts.has_number(words[start:end], values)
            and (facts.is_english or words[start][0].isdigit())
        ]

    def dates() -> list[str] | None:
        if not facts.is_english:
            return None
        has = facts.names.has
        return [
            date.text
            for words in words_by_line
            for date in stated_dates(words)
            if not is_supported(date, has, facts.days if date.day else set())
        ]

    def names() -> list[str] | None:
        is_lower = sentences and all(each == each.lower() for each in sentences)
        if is_lower or not facts.is_english:
            return None
        found = unsupported_names(lines, tokens_by_line, facts.names)
        for line, of_line in zip(plain_lines, tokens_by_line, strict=True):
            found += joined_names(line, of_line, facts.names)
        return found

    return map(operator.call, (numbers, dates, names))
