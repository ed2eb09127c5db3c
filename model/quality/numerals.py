"""Numbers in a text by their value, so that `1,200` is `1200`, `$4.5m` is `4.5
million`, `3rd` is `third` and `three` is `3`.

Texts come as lower-case words (`model.text.words`), cut at hyphens: `35-year-old` is
35, year, old. Units are not compared: `5 %` in a summary is supported by any 5 in its
source.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

Value = int | Decimal

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_SMALL_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SMALL = {
    word: value
    for names in (_SMALL, _SMALL_ORDINALS)
    for value, word in enumerate(names)
}
TENS = {
    name: 10 * ten
    for ten, tens in enumerate(_TENS, start=2)
    for name in (tens, tens.removesuffix("y") + "ieth")
}
SCALES = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_WORDS = {**SMALL, **TENS, **SCALES}
# Behind digits, in one word with them. `5m` may be metres and `10k` kilometres, so
# those letters may mean nothing.
_CERTAIN = {
    "mn": 10**6,
    "mln": 10**6,
    "bn": 10**9,
    "tn": 10**12,
    "trn": 10**12,
    **SCALES,
}
_POSSIBLE = {"k": 10**3, "m": 10**6, "b": 10**9}
_DIGITS = re.compile(r"(\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)([^\W\d_]*)")
# Longer ones are told apart by their beginning: decimals of any length cannot be
# multiplied.
MAX_DIGITS = 100
# Between the ends of a range of which only the second says how large it is: `4 to 5
# million`.
_BETWEEN = frozenset(["to", "and", "or"])
# More words than pronouns or articles than numbers: `one of them`, `for the first
# time`.
_HARDLY_A_NUMBER = frozenset(["one", "first"])


class Number(NamedTuple):
    """A number that a text states.

    Attributes:
      start, end: where its words stand.
      values: it is one of these.
    """

    start: int
    end: int
    values: tuple[Value, ...]


# `Nine hundred ninety nine million nine hundred ninety nine thousand nine hundred
# ninety nine` has 14. A longer run is no number.
_MOST_NUMBER_WORDS = 18


def is_number_word(word: str) -> bool:
    """Whether a word holds a digit or is the name of a number."""
    return word in _WORDS if word.isalpha() else _DIGITS.search(word) is not None


def stated_numbers(words: Sequence[str]) -> Iterator[Number]:
    """The numbers that a summary states, from left to right; `one` and `first` alone
    are none.
    """
    position = 0
    while position < len(words):
        word = words[position]
        if not is_number_word(word):
            position += 1
            continue
        readings = list(_readings(words, position))
        end = readings[-1].end
        is_unit = (
            word == "second" and position > 0 and is_number_word(words[position - 1])
        )  # a `10 second` delay
        if not (is_unit or (end == position + 1 and word in _HARDLY_A_NUMBER)):
            yield from (reading for reading in readings if reading.end == end)
        position = end


def all_values(words: Sequence[str]) -> set[Value]:
    """Every value that a source can be read to hold, from every word on and of every
    length.

    So whatever a sentence of the source states is among them, wherever the sentence was
    cut out: of `two hundred` 2, 100 and 200, of `$4.5m` 4.5 and 4500000, of `4 to 5
        million` 4, 5, 4000000, 5000000 and 1000000.
    """
    found: set[Value] = set()
    distinct = set(words)
    named = {
        word for word in distinct if not word.isalpha() and _DIGITS.search(word)
    } | (distinct & _WORDS.keys())
    for position in [place for place, word in enumerate(words) if word in named]:
        for number in _readings(words, position):
            found.update(number.values)
            scale = (
                SCALES.get(words[number.end - 1]) if number.end > position + 1 else None
            )
            if scale:
                before = (
                    position - 2
                    if position > 1 and words[position - 1] in _BETWEEN
                    else position - 1
                )
                found.update(
                    value * scale
                    for other in (_readings(words, before) if before >= 0 else ())
                    for value in other.values
                )
    return found


def _readings(words: Sequence[str], start: int) -> Iterator[Number]:
    """The number that begins with a word, read on for as long as it goes: `two`, `two
    hundred`, `two hundred five`.
    """
    value: Value | None
    if words[start].isalpha():
        value = _WORDS.get(words[start])
        if value is None:
            return
        yield Number(start, start + 1, (value,))
    else:
        held = list(_values_of_digits(words[start]))
        if not held:
            return
        yield from (Number(start, start + 1, values) for _, values in held)
        value = held[-1][0]
    yield from _longer_readings(words, start, value)


def _longer_readings(
    words: Sequence[str], start: int, value: Value
) -> Iterator[Number]:
    """Goes on with the names of numbers behind the first word, whose value is given."""
    total, group, last = 0 * value, value, words[start]
    position = start + 1
    while position < min(len(words), start + _MOST_NUMBER_WORDS):
        is_joined = (
            words[position] == "and" and last in SCALES and position + 1 < len(words)
        )
        word = words[position + is_joined]
        if word in SCALES and not is_joined:
            scale = SCALES[word]
            total, group = (
                (total, group * scale)
                if scale <= 100
                else (total + group * scale, 0 * value)
            )
        elif last in TENS and 0 < SMALL.get(word, 0) < 10 and not is_joined:
            group += SMALL[word]
        elif last in SCALES and (word in SMALL or word in TENS):
            group += _WORDS[word]
        else:
            return
        last, position = word, position + 1 + is_joined
        yield Number(start, position, (total + group,))


def _values_of_digits(word: str) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """For each number in a word its bare value, and what it may be with the letters
    behind it: `4.5m` is 4.5 or 4500000.
    """
    for digits, letters in _DIGITS.findall(word):
        value = _value(digits)
        if letters in _CERTAIN:
            yield value, (value * _CERTAIN[letters],)
        elif letters in _POSSIBLE:
            yield value, (value, value * _POSSIBLE[letters])
        elif letters == "s" and 1000 < value < 10_000:
            yield value, (value, value % 100)  # the 1980s are the '80s
        else:
            yield value, (value,)


def _value(digits: str) -> Value:
    """1,200.50 -> 1200.5; equal values are equal and hash alike, whole or not."""
    digits = digits.replace(",", "")[:MAX_DIGITS]
    return int(digits) if len(digits) < 19 and "." not in digits else Decimal(digits)
