"""Numbers in a text by their value: `1,200` is `1200`, `$4.5m` is `4.5 million`, `3rd`
is `third` and `three` is `3`.

Texts are lower-case words (`model.text.words`), cut at hyphens: `35-year-old` is 35,
year, old. Units are not compared: any 5 in the source supports `5 %` in a summary.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

Value = int | Decimal

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_SMALL_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh "
    "twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth "
    "nineteenth"
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
# Letters after digits, in the same word, that multiply them.
_SCALE_LETTERS = {
    "mn": 10**6,
    "mln": 10**6,
    "bn": 10**9,
    "tn": 10**12,
    "trn": 10**12,
    **SCALES,
}
# Letters that may multiply the digits or be a unit: `5m` may be metres.
_AMBIGUOUS_LETTERS = {"k": 10**3, "m": 10**6, "b": 10**9}
_DIGITS = re.compile(r"(\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)([^\W\d_]*)")
# Longer numbers are compared by their first digits, because decimals of any length
# cannot be multiplied.
MAX_DIGITS = 100
# Words in a range whose scale follows the second number: `4 to 5 million`.
_RANGE_WORDS = frozenset(["to", "and", "or"])
# These two are mostly no numbers: `one of them`, `for the first time`.
_RARELY_NUMBERS = frozenset(["one", "first"])
# The longest number in words has 14: `nine hundred ninety nine million nine hundred
# ninety nine thousand nine hundred ninety nine`. A longer sequence is no number.
_MAX_NUMBER_WORDS = 18


class Number(NamedTuple):
    """A number that a text states.

    Attributes:
      start, end: its words are those from `start` to before `end`.
      values: the values that it may have.
    """

    start: int
    end: int
    values: tuple[Value, ...]


def is_number_word(word: str) -> bool:
    """Whether a word holds a digit or is the name of a number."""
    return word in _WORDS if word.isalpha() else _DIGITS.search(word) is not None


def stated_numbers(words: Sequence[str]) -> Iterator[Number]:
    """The numbers that a summary states, from left to right.

    A single `one` or `first` is no number, nor is `second` as a unit (`10 second`).
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
        )
        is_single = end == position + 1
        if not is_unit and not (is_single and word in _RARELY_NUMBERS):
            yield from (reading for reading in readings if reading.end == end)
        position = end


def all_values(words: Sequence[str]) -> set[Value]:
    """Every value that a source may state, read from every word and to every length.

    The result contains the values of every part of the source, wherever it is cut:

        two hundred        2, 100, 200
        $4.5m              4.5, 4500000
        4 to 5 million     4, 5, 4000000, 5000000, 1000000
    """
    values: set[Value] = set()
    distinct = set(words)
    in_digits = {
        word for word in distinct if not word.isalpha() and _DIGITS.search(word)
    }
    number_words = in_digits | (distinct & _WORDS.keys())
    positions = [index for index, word in enumerate(words) if word in number_words]
    for position in positions:
        for number in _readings(words, position):
            values.update(number.values)
            if number.end == position + 1:
                continue
            scale = SCALES.get(words[number.end - 1])
            if scale:
                values.update(_range_start_values(words, position, scale))
    return values


def _range_start_values(
    words: Sequence[str], position: int, scale: int
) -> Iterator[Value]:
    """The scaled values of the number before `position`: of `4` in `4 to 5 million`."""
    before = position - 1
    if position > 1 and words[before] in _RANGE_WORDS:
        before = position - 2
    if before >= 0:
        for number in _readings(words, before):
            for value in number.values:
                yield value * scale


def _readings(words: Sequence[str], start: int) -> Iterator[Number]:
    """The numbers that begin with the word `start`, each longer than the one before:
    `two`, `two hundred`, `two hundred five`.
    """
    value: Value | None
    if words[start].isalpha():
        value = _WORDS.get(words[start])
        if value is None:
            return
        yield Number(start, start + 1, (value,))
    else:
        numbers = list(_values_of_digits(words[start]))
        if not numbers:
            return
        yield from (Number(start, start + 1, values) for _, values in numbers)
        value = numbers[-1][0]
    yield from _longer_readings(words, start, value)


def _longer_readings(
    words: Sequence[str], start: int, value: Value
) -> Iterator[Number]:
    """The numbers of two and more words that begin with the word `start`.

    Args:
      words: of the text.
      start: the index of the first word.
      value: of the first word.
    """
    total = 0 * value  # of the groups before: `two thousand` in `two thousand five`
    group = value
    last = words[start]
    position = start + 1
    while position < min(len(words), start + _MAX_NUMBER_WORDS):
        is_joined = (
            words[position] == "and" and last in SCALES and position + 1 < len(words)
        )
        word = words[position + is_joined]
        if word in SCALES and not is_joined:
            group *= SCALES[word]
            if SCALES[word] > 100:
                total += group
                group = 0 * value
        elif last in TENS and 0 < SMALL.get(word, 0) < 10 and not is_joined:
            group += SMALL[word]
        elif last in SCALES and (word in SMALL or word in TENS):
            group += _WORDS[word]
        else:
            return
        last = word
        position += 1 + is_joined
        yield Number(start, position, (total + group,))


def _values_of_digits(word: str) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """The numbers in a word with digits: the value of the digits, and the values that
    they may have with the letters after them. `4.5m` is 4.5 or 4500000.
    """
    for digits, letters in _DIGITS.findall(word):
        value = _value(digits)
        if letters in _SCALE_LETTERS:
            yield value, (value * _SCALE_LETTERS[letters],)
        elif letters in _AMBIGUOUS_LETTERS:
            yield value, (value, value * _AMBIGUOUS_LETTERS[letters])
        elif letters == "s" and 1000 < value < 10_000:
            yield value, (value, value % 100)  # the 1980s are the '80s
        else:
            yield value, (value,)


def _value(digits: str) -> Value:
    """1,200.50 -> 1200.5; equal values are equal and hash alike, whether they are int
    or Decimal.
    """
    digits = digits.replace(",", "")[:MAX_DIGITS]
    return int(digits) if len(digits) < 19 and "." not in digits else Decimal(digits)
