"""Weekdays, months and days of a month in a source and in its summaries.

Texts are the words of `tokens`.
"""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

from precis.model.quality.numerals import SMALL, TENS

_MONTHS = (
    "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,"
    "september sep sept,october oct,november nov,december dec"
).split(",")
_WEEKDAYS = (
    "monday mon,tuesday tue tues,wednesday,thursday thu thur thurs,friday fri,"
    "saturday,sunday"
).split(",")
MONTH_NAMES = tuple(forms.split()[0] for forms in _MONTHS)
# The name of the month or weekday by each of its forms.
MONTHS = {form: forms.split()[0] for forms in _MONTHS for form in forms.split()}
WEEKDAYS = {form: forms.split()[0] for forms in _WEEKDAYS for form in forms.split()}

# Words with other meanings. They are months after one of `_WORDS_BEFORE_MONTH` or
# beside a day.
AMBIGUOUS_MONTHS = frozenset(["may", "march", "mar", "dec", "jan", "jun"])
_WORDS_BEFORE_MONTH = frozenset(
    (
        "in of since until by last next early late mid during before after on through "
        "between"
    ).split()
)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_MAX_DAY = 31
# The maximum distance, in words, of a day from its month: `between March 3 and 5`, `the
# 3rd and 4th of March`.
_MAX_DISTANCE = 4


class StatedDate(NamedTuple):
    """A weekday, a month or a day of a month that a text states.

    Attributes:
      text: the words of the date: `monday`, `march`, `march 3`, `3 march`.
      form: the word for the weekday or month.
      day: the day of the month, if there is one.
    """

    text: str
    form: str
    day: int | None = None


def days_of_months(words: Sequence[str]) -> set[tuple[str, int]]:
    """The pairs of a month and a day that are close together in a source."""
    return {
        (MONTHS[month], day)
        for place, month in enumerate(words)
        if month in MONTHS
        for word in words[max(0, place - _MAX_DISTANCE) : place + _MAX_DISTANCE + 1]
        if (day := _day(word)) is not None
    }


def stated_dates(words: Sequence[str]) -> Iterator[StatedDate]:
    """The weekdays, months and days of a month that a sentence states, in order."""
    for position, word in enumerate(words):
        name = word.split("'")[0] if "'" in word else word
        if name in WEEKDAYS:
            if name == WEEKDAYS[name]:
                yield StatedDate(name, name)
        elif name in MONTHS:
            before = words[position - 1] if position else ""
            after = words[position + 1] if position + 1 < len(words) else ""
            yield from _stated_month(name, before, after)


def _stated_month(month: str, before: str, after: str) -> Iterator[StatedDate]:
    """The date that a form of a month and its neighbours make, if any."""
    is_day_before = _DAY.fullmatch(before) is not None
    is_clear = month not in AMBIGUOUS_MONTHS or before in _WORDS_BEFORE_MONTH
    if not is_clear and not is_day_before:
        return
    if _DAY.fullmatch(after):
        text, day = f"{month} {after}", _day(after)
    else:
        text, day = f"{before} {month}", _day(before) if is_day_before else None
    yield StatedDate(month if day is None else text, month, day)


def is_supported(
    date: StatedDate, has: Callable[[str], bool], days: Set[tuple[str, int]]
) -> bool:
    """Whether a source holds a date that a summary states.

    Args:
      date: the stated date.
      has: whether the source has a word, in any form.
      days: `days_of_months` of the source.
    """
    names = MONTHS if date.form in MONTHS else WEEKDAYS
    forms = [form for form, name in names.items() if name == names[date.form]]
    is_named = any(map(has, [*forms, *(f"{form}s" for form in forms)]))
    return is_named and (date.day is None or (MONTHS[date.form], date.day) in days)


def _day(word: str) -> int | None:
    """The day of a month that a word may be."""
    match = _DAY.fullmatch(word)
    day = int(match[1]) if match else SMALL.get(word) or TENS.get(word)
    return day if day and day <= _MAX_DAY else None
