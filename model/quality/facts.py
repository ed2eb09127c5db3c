"""Numbers, dates and names that a summary states and its source does not hold.

What is compared are words, so a summary that joins `John` and `Kerry` of two people
passes; what does not pass is a word, a number or a day of a month that the source does
not have at all. English only: other languages capitalise other words.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from precis.model.quality.numerals import (
    SCALES,
    SMALL,
    TENS,
    Value,
    all_values,
    stated_numbers,
)
from precis.model.quality.openings import OPENINGS
from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words

_stem = functools.lru_cache(maxsize=200_000)(stem)
_MONTH_FORMS = "january jan/february feb/march mar/april apr/may/june jun/july jul/august aug/september sep sept/october oct/november nov/december dec"
_WEEKDAY_FORMS = "monday mon/tuesday tue tues/wednesday/thursday thu thur thurs/friday fri/saturday/sunday"
MONTHS = {
    form: forms.split()[0]
    for forms in _MONTH_FORMS.split("/")
    for form in forms.split()
}
WEEKDAYS = {
    form: forms.split()[0]
    for forms in _WEEKDAY_FORMS.split("/")
    for form in forms.split()
}
# Month names that are words too: months behind one of these, or beside a day.
_AMBIGUOUS_MONTHS = frozenset(["may", "march", "mar", "dec", "jan", "jun"])
_BEFORE_A_MONTH = frozenset(
    "in of since until by last next early late mid during before after on through between".split()
)
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
MAX_DAY = 31
# Words from a month within which a source may name its day: `between March 3 and 5`,
# `the 3rd and 4th of March`.
_DAY_REACH = 4

# A word that begins with a letter that is none of a to z, with the points of `U.S` and
# the apostrophe of `O'Brien`, cut at hyphens.
_CAPITALISED = re.compile(
    r"(?<![^\W_])[^\W\d_a-z][^\W_]*(?:['’][^\W_]+)*(?:(?<=\b[^\W\d_])\.[^\W\d_]\b)*"
)
_SENTENCE_START = re.compile(
    r"(?:^|[.!?:;]|--|[-–—] |[\"“”‘`(\[])\W*$|(?:^|\s)['’]\W*$"
)
_TITLES = "mr mrs ms miss dr prof sir dame lord lady rev".split()
# What has a capital and is no name, or is looked at as a number or a date.
_NO_NAMES = frozenset(
    [*STOP_WORDS, *_TITLES, *SMALL, *TENS, *SCALES, *MONTHS, *WEEKDAYS]
)


class Facts(NamedTuple):
    """What a source can support; made once for all summaries of a document.

    Attributes:
      vocabulary: its words in lower case, also without points, possessives and cut at
          hyphens.
      values: its numbers.
      days: (month, day of the month).
    """

    vocabulary: frozenset[str]
    values: set[Value]
    days: set[tuple[str, int]]


class Unsupported(NamedTuple):
    """What a summary states and its source does not hold, as it stands there, in order.

    Attributes:
      numbers: in lower case, without currency and unit: `4.5 million`, `35`, `twenty
          five`; those of dates too.
      dates: weekdays, months and days of a month in lower case: `monday`, `march 3`.
      names: runs of capitalised words: `Angela Merkel`. None where the summary has no
          capital letter at all, so names cannot be told.
    """

    numbers: list[str]
    dates: list[str]
    names: list[str] | None


def read_facts(source: Sequence[str]) -> Facts:
    """What a source of these words (`model.text.words`) can support."""
    parts = _cut_at_hyphens(source)
    known = {*source, *parts}
    known.update(
        form
        for word in [word for word in known if not word.isalpha()]
        for form in _forms(word)
    )
    days = {
        (MONTHS[month], day)
        for month in known & MONTHS.keys()
        for place in _places(parts, month)
        for word in parts[max(0, place - _DAY_REACH) : place + _DAY_REACH + 1]
        if (day := _day(word)) is not None
    }
    return Facts(frozenset(known), all_values(parts), days)


def unsupported_facts(
    sentences: Sequence[str], by_sentence: Sequence[Sequence[str]], facts: Facts
) -> Unsupported:
    """What a summary states beyond the facts of its source.

    Args:
      sentences: of the summary.
      by_sentence: the words of each.
      facts: of the source.
    """
    numbers: list[str] = []
    dates: list[str] = []
    for sentence in by_sentence:
        parts = _cut_at_hyphens(sentence)
        numbers += [
            " ".join(parts[start:end])
            for start, end, values in stated_numbers(parts)
            if facts.values.isdisjoint(values)
        ]
        dates += _unsupported_dates(parts, facts)
    is_cased = not sentences or any(
        sentence != sentence.lower() for sentence in sentences
    )
    return Unsupported(
        numbers, dates, _unsupported_names(sentences, facts) if is_cased else None
    )


def _cut_at_hyphens(source: Sequence[str]) -> list[str]:
    text = " ".join(source)
    return text.replace("-", " ").split() if "-" in text else list(source)


def _forms(word: str) -> list[str]:
    """`u.s` -> us, u, s; `obama's` -> obama, s; `o'brien` -> o, brien."""
    return (
        [word.replace(".", ""), *re.split("[.']", word)]
        if "." in word or "'" in word
        else []
    )


def _places(parts: Sequence[str], word: str) -> Iterator[int]:
    place = -1
    for _ in range(parts.count(word)):
        place = parts.index(word, place + 1)
        yield place


def _day(word: str) -> int | None:
    """The day of a month that a word may be."""
    match = _DAY.fullmatch(word)
    day = int(match[1]) if match else SMALL.get(word) or TENS.get(word)
    return day if day and day <= MAX_DAY else None


def _unsupported_dates(parts: Sequence[str], facts: Facts) -> Iterator[str]:
    for place, word in enumerate(parts):
        word = word.split("'")[0]
        before, after = (
            parts[place - 1] if place else "",
            parts[place + 1] if place + 1 < len(parts) else "",
        )
        if word in WEEKDAYS and word == WEEKDAYS[word]:
            if not _is_named(word, WEEKDAYS, facts):
                yield word
        elif word in MONTHS and (
            word not in _AMBIGUOUS_MONTHS
            or before in _BEFORE_A_MONTH
            or _DAY.fullmatch(before)
        ):
            is_before = not _DAY.fullmatch(after)
            number = before if is_before else after
            day = _day(number) if _DAY.fullmatch(number) else None
            if not _is_named(word, MONTHS, facts) or (
                day and (MONTHS[word], day) not in facts.days
            ):
                yield " ".join(
                    ([before, word] if is_before else [word, after]) if day else [word]
                )


def _is_named(word: str, forms: Mapping[str, str], facts: Facts) -> bool:
    """Whether the source has a weekday or month, in whatever form."""
    known = facts.vocabulary
    return any(
        form in known or f"{form}s" in known
        for form, name in forms.items()
        if name == forms[word]
    )


def _unsupported_names(sentences: Sequence[str], facts: Facts) -> list[str]:
    found: list[str] = []
    for sentence in sentences:
        run_end = -1  # where the last word of an unsupported run ends
        for match in _CAPITALISED.finditer(sentence):
            key = _key(match[0])
            if not key or _is_known(key, facts.vocabulary):
                continue
            if _SENTENCE_START.search(sentence, 0, match.start()) and _is_ordinary(
                match[0], key, sentences, facts
            ):
                continue
            if run_end >= 0 and not sentence[run_end : match.start()].strip(" -"):
                found[-1] += sentence[run_end : match.end()]
            else:
                found.append(match[0])
            run_end = match.end()
    return found


def _key(word: str) -> str:
    """The form a name is looked up by: lower case, without points and possessive; empty
    for what is no name.
    """
    if word[0].islower():  # a letter beyond a to z
        return ""
    key = "".join(words(word)).replace(".", "").removesuffix("'s")
    return "" if key in _NO_NAMES or key.split("'")[0] in STOP_WORDS else key


# Endings by which a name and those of its people or things differ: America, American;
# Russian, Russians.
_ENDINGS = ("s", "i", "is", "n", "ns", "an", "ans", "ian", "ians")
_SHORTEST_STEM = 4
# Names that a summary shortens to letters, and a word of each that a source may have
# instead.
_SHORTENED = {
    "us": ("states", "america", "american", "americans"),
    "uk": ("kingdom", "britain", "british"),
    "un": ("nations",),
    "eu": ("european", "europe"),
}


def _is_known(key: str, vocabulary: frozenset[str]) -> bool:
    if key in vocabulary or not vocabulary.isdisjoint(_SHORTENED.get(key, ())):
        return True
    if len(key) >= _SHORTEST_STEM and any(
        key + ending in vocabulary for ending in _ENDINGS
    ):
        return True
    return any(
        key.endswith(ending)
        and len(rest := key.removesuffix(ending)) >= _SHORTEST_STEM
        and rest in vocabulary
        for ending in _ENDINGS
    )


def _is_ordinary(word: str, key: str, sentences: Iterable[str], facts: Facts) -> bool:
    """Whether the first word of a sentence has a capital for its place only.

    It opens many a sentence, the summary has it in lower case too, or the source a word
    of the same stem.
    """
    if word[1:] != word[1:].lower():
        return False
    if key in OPENINGS or any(
        re.search(rf"\b{re.escape(key)}\b", sentence) for sentence in sentences
    ):
        return True
    own = _stem(key)
    return any(
        other[:2] == key[:2] and _stem(other) == own for other in facts.vocabulary
    )
