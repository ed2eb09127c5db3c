"""Numbers, dates and names that a summary states and its source does not hold.

Words are compared one by one. So a summary that joins `John` and `Kerry` of two people
has no unsupported name; a word, a number or a day of a month that the source does not
have is unsupported. English only: other languages capitalise other words.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.quality.dates import days_of_months, unsupported_dates
from precis.model.quality.names import unsupported_names
from precis.model.quality.numerals import Value, all_values, stated_numbers


class SourceFacts(NamedTuple):
    """What a source supports, computed once for all summaries of a document.

    Attributes:
      vocabulary: its words in lower case, also without points and possessives, and cut
          at hyphens.
      values: its numbers.
      days: its dates, as pairs of a month and a day.
    """

    vocabulary: frozenset[str]
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


def source_facts(words: Sequence[str]) -> SourceFacts:
    """What a source with these words (`model.text.words`) supports."""
    parts = _cut_at_hyphens(words)
    vocabulary = {*words, *parts}
    vocabulary.update(
        form
        for word in [word for word in vocabulary if not word.isalpha()]
        for form in _forms(word)
    )
    days = days_of_months(parts, vocabulary)
    return SourceFacts(frozenset(vocabulary), all_values(parts), days)


def unsupported_facts(
    sentences: Sequence[str],
    words_by_sentence: Sequence[Sequence[str]],
    facts: SourceFacts,
) -> UnsupportedFacts:
    """What a summary states beyond the facts of its source.

    Args:
      sentences: of the summary.
      words_by_sentence: the words of each sentence.
      facts: of the source.
    """
    numbers: list[str] = []
    dates: list[str] = []
    for words in words_by_sentence:
        parts = _cut_at_hyphens(words)
        numbers += [
            " ".join(parts[start:end])
            for start, end, values in stated_numbers(parts)
            if facts.values.isdisjoint(values)
        ]
        dates += unsupported_dates(parts, facts.vocabulary, facts.days)
    has_capitals = any(sentence != sentence.lower() for sentence in sentences)
    if sentences and not has_capitals:
        return UnsupportedFacts(numbers, dates, None)
    names = unsupported_names(sentences, facts.vocabulary)
    return UnsupportedFacts(numbers, dates, names)


def _cut_at_hyphens(words: Sequence[str]) -> list[str]:
    text = " ".join(words)
    return text.replace("-", " ").split() if "-" in text else list(words)


def _forms(word: str) -> list[str]:
    """`u.s` -> us, u, s; `obama's` -> obama, s; `o'brien` -> o, brien."""
    if "." not in word and "'" not in word:
        return []
    return [word.replace(".", ""), *re.split("[.']", word)]
