"""Weekdays, months and days of a month in a source and in its summaries.

Texts are the words of `tokens`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from precis.model.quality.numerals import SMALL, TENS

_MONTH_FORMS = {
    "january": ("january", "jan"),
    "february": ("february", "feb"),
    "march": ("march", "mar"),
    "april": ("april", "apr"),
    "may": ("may",),
    "june": ("june", "jun"),
    "july": ("july", "jul"),
    "august": ("august", "aug"),
    "september": ("september", "sep", "sept"),
    "october": ("october", "oct"),
    "november": ("november", "nov"),
    "december": ("december", "dec"),
}
MONTH_NAMES = tuple(_MONTH_FORMS)
_WEEKDAY_FORMS = {
    "monday": ("monday", "mon"),
    "tuesday": ("tuesday", "tue", "tues"),
    "wednesday": ("wednesday",),
    "thursday": ("thursday", "thu", "thur", "thurs"),
    "friday": ("friday", "fri"),
    "saturday": ("saturday",),
    "sunday": ("sunday",),
}
# The name of the month or weekday by each of its forms.
MONTHS = {form: month for month, forms in _MONTH_FORMS.items() for form in forms}
WEEKDAYS = {form: day for day, forms in _WEEKDAY_FORMS.items() for form in forms}

# These are words of other meanings too. They are months after one of
# `_WORDS_BEFORE_MONTH` or beside a day.
AMBIGUOUS_MONTHS = frozenset(["may", "march", "mar", "dec", "jan", "jun"])
_WORDS_BEFORE_MONTH = frozenset(
    (
        "in of since until by last next early late mid during before after on through "
        "between"
    ).split()
)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_MAX_DAY = 31
# A day belongs to a month at most so many words away: `between March 3 and 5`, `the
# 3rd and 4th of March`.
_MAX_DAY_DISTANCE = 4


def days_of_months(words: Sequence[str], vocabulary: Set[str]) -> set[tuple[str, int]]:
    """The pairs of a month and a day that stand close together in a source.

    Args:
      words: of the source.
      vocabulary: its words in all forms.
    """
    return {
        (MONTHS[month], day)
        for month in vocabulary & MONTHS.keys()
        for position in _positions(words, month)
        for word in words[
            max(0, position - _MAX_DAY_DISTANCE) : position + _MAX_DAY_DISTANCE + 1
        ]
        if (day := _day(word)) is not None
    }


def unsupported_dates(
    words: Sequence[str], vocabulary: Set[str], days: Set[tuple[str, int]]
) -> Iterator[str]:
    """The weekdays, months and days of a month in a sentence that its source does not
    hold: `monday`, `march`, `march 3`, `3 march`.

    Args:
      words: of the sentence.
      vocabulary: the words of the source in all forms.
      days: `days_of_months` of the source.
    """
    for position, word in enumerate(words):
        word = word.split("'")[0]
        if word in WEEKDAYS and word == WEEKDAYS[word]:
            if not _is_named(word, WEEKDAYS, vocabulary):
                yield word
        elif word in MONTHS:
            before = words[position - 1] if position else ""
            after = words[position + 1] if position + 1 < len(words) else ""
            date = _unsupported_month(word, before, after, vocabulary, days)
            if date:
                yield date


def _unsupported_month(
    month: str,
    before: str,
    after: str,
    vocabulary: Set[str],
    days: Set[tuple[str, int]],
) -> str:
    """The date that a form of a month makes with its neighbours if the source does not
    hold it, else an empty string.
    """
    day_before = _day(before) if _DAY.fullmatch(before) else None
    is_day_after = _DAY.fullmatch(after) is not None
    if (
        month in AMBIGUOUS_MONTHS
        and before not in _WORDS_BEFORE_MONTH
        and not _DAY.fullmatch(before)
    ):
        return ""
    day = _day(after) if is_day_after else day_before
    is_supported = _is_named(month, MONTHS, vocabulary) and (
        day is None or (MONTHS[month], day) in days
    )
    if is_supported:
        return ""
    if day is None:
        return month
    return f"{month} {after}" if is_day_after else f"{before} {month}"


def _positions(words: Sequence[str], word: str) -> Iterator[int]:
    position = -1
    for _ in range(words.count(word)):
        position = words.index(word, position + 1)
        yield position


def _day(word: str) -> int | None:
    """The day of a month that a word may be."""
    match = _DAY.fullmatch(word)
    day = int(match[1]) if match else SMALL.get(word) or TENS.get(word)
    return day if day and day <= _MAX_DAY else None


def _is_named(word: str, forms: Mapping[str, str], vocabulary: Set[str]) -> bool:
    """Whether the source has a weekday or month in any form."""
    return any(
        form in vocabulary or f"{form}s" in vocabulary
        for form, name in forms.items()
        if name == forms[word]
    )
