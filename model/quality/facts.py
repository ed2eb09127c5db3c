"""Numbers, dates and names that a summary states and its source does not hold.

Words are compared one by one. So a summary that joins `John` and `Kerry` of two people
has no unsupported name; a word, a number or a day of a month that the source does not
have is unsupported. English only: other languages capitalise other words.

A line that is quoted word for word holds no unsupported fact. A quotation may begin or
end within a number, which is no invention: `a million people came` of a source's `half
a million people came`. Elsewhere `half a million` does not support `a million`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from precis.model.quality.dates import days_of_months, unsupported_dates
from precis.model.quality.names import unsupported_names, vocabulary_of
from precis.model.quality.numerals import Value, all_values, stated_numbers
from precis.model.quality.tokens import is_quoted, plain, readable, token_words
from precis.model.text.normalization import normalise


class SourceFacts(NamedTuple):
    """What a source supports, computed once for all summaries of a document.

    Attributes:
      text: its plain text, to recognise quotations.
      vocabulary: `names.vocabulary_of` its words.
      values: its numbers.
      days: its dates, as pairs of a month and a day.
    """

    text: str
    vocabulary: set[str]
    values: set[Value]
    days: set[tuple[str, int]]


class UnsupportedFacts(NamedTuple):
    """What a summary states and its source does not hold, in the order of the summary.

    Attributes:
      numbers: in lower case, without currency and unit: `4.5 million`, `35`, `twenty
          five`; also those of dates.
      dates: weekdays, months and days of a month in lower case: `monday`, `march 3`.
      names: sequences of capitalised words: `Angela Merkel`. None if the summary has no
          capital letter, so that names cannot be recognised.
    """

    numbers: list[str]
    dates: list[str]
    names: list[str] | None


def source_facts(text: str) -> SourceFacts:
    """What a source with this normalised text supports."""
    text = plain(readable(text))
    words = token_words(text)
    vocabulary = vocabulary_of(words)
    days = days_of_months(words, vocabulary)
    return SourceFacts(text, vocabulary, all_values(words), days)


def unsupported_facts(sentences: Sequence[str], facts: SourceFacts) -> UnsupportedFacts:
    """What a summary states beyond the facts of its source.

    Args:
      sentences: of the summary.
      facts: of the source.
    """
    lines = [readable(normalise(sentence)) for sentence in sentences]
    plain_lines = [plain(line) for line in lines]
    words_by_line = [token_words(line) for line in plain_lines]
    numbers: list[str] = []
    dates: list[str] = []
    for line, words in zip(plain_lines, words_by_line, strict=True):
        unsupported_numbers = [
            " ".join(words[start:end])
            for start, end, values in stated_numbers(words)
            if facts.values.isdisjoint(values)
        ]
        if unsupported_numbers and not is_quoted(line, facts.text):
            numbers += unsupported_numbers
        dates += unsupported_dates(words, facts.vocabulary, facts.days)
    has_capitals = any(line != line.lower() for line in lines)
    if lines and not has_capitals:
        return UnsupportedFacts(numbers, dates, None)
    names = unsupported_names(lines, words_by_line, facts.vocabulary)
    return UnsupportedFacts(numbers, dates, names)
