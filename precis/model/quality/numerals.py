"""The values of numbers in a text: `1,200` is `1200`, `$4.5m` is `4.5 million`, `3rd`
is `third` and `three` is `3`.

Texts are the words of `tokens`. Units are not compared: any 5 in the source supports
`5 %` in a summary.
"""

import re
import unicodedata
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
# Words before a scale that divide it: `half a million`.
_SHARES: dict[tuple[str, ...], Decimal] = {
    ("half",): Decimal("0.5"),
    ("half", "a"): Decimal("0.5"),
    ("half", "of", "a"): Decimal("0.5"),
    ("quarter", "of", "a"): Decimal("0.25"),
    ("three", "quarters", "of", "a"): Decimal("0.75"),
}
FIRST_OF_SHARES = frozenset(words[0] for words in _SHARES)
# Words after a number that add to it: `two and a half`.
_ADDED_SHARES: dict[tuple[str, ...], Decimal] = {
    ("and", "a", "half"): Decimal("0.5"),
    ("and", "a", "quarter"): Decimal("0.25"),
}
_VULGAR_FRACTIONS = {
    character: Decimal(str(unicodedata.numeric(character))) for character in "½¼¾⅛⅜⅝⅞"
}
_WORDS = {**SMALL, **TENS, **SCALES}
_FIRST_WORDS = frozenset([*_WORDS, *FIRST_OF_SHARES])
_NEXT_WORDS = frozenset([*_WORDS, "and"])
# Letters after digits, in the same word, that multiply them.
_SCALE_LETTERS = SCALES | {
    **dict.fromkeys(["mn", "mln"], 10**6),
    "bn": 10**9,
    **dict.fromkeys(["tn", "trn"], 10**12),
}
# Letters that may multiply the digits or be a unit: `5m` may be metres.
_AMBIGUOUS_LETTERS = {"k": 10**3, "m": 10**6, "b": 10**9}
# The digits and the letters after them: `1,200.50`, `1,50,000` as in India, `6:40am`.
# The number of commas is limited so that the time for a list of numbers is linear.
_DIGITS = re.compile(
    r"(\d{1,3}(?:,\d{2,3}){0,9},\d{3}(?!\d)(?:\.\d+)?|\d{1,2}:\d\d|\d+(?:\.\d+)?)"
    r"([^\W\d_]*)"
)
# Longer numbers are compared by their first digits, because decimals of any length
# cannot be multiplied.
MAX_DIGITS = 100
# Words in a range whose scale follows the second number: `4 to 5 million`.
_RANGE_WORDS = frozenset(["to", "and", "or"])
# Usually these words are not numbers: `one of them`, `for the first time`.
RARELY_NUMBERS = frozenset(["one", "first"])
# The longest number in words has 14: `nine hundred ninety nine million nine hundred
# ninety nine thousand nine hundred ninety nine`. A longer sequence is not a number.
_MAX_NUMBER_WORDS = 18


class Number(NamedTuple):
    """A number that a text states.

    Attributes:
      start, end: the words of the number are words[start:end].
      values: the values that it may have.
    """

    start: int
    end: int
    values: tuple[Value, ...]


def is_number_word(word: str) -> bool:
    """Whether a word holds a digit or is the name of a number."""
    if word.isalpha():
        return word in _WORDS
    return word in _VULGAR_FRACTIONS or _DIGITS.search(word) is not None


def stated_numbers(words: Sequence[str]) -> Iterator[Number]:
    """The numbers that a summary states, from left to right.

    A single `one` or `first` is not a number, and neither is `second` as a unit (`10
    second`).
    """
    end = 0
    for position in _possible_starts(words):
        if position < end:
            continue
        word = words[position]
        readings = list(_readings(words, position))
        if not readings:
            continue
        end = readings[-1].end
        before = words[position - 1] if position else ""
        is_unit = word == "second" and is_number_word(before)
        is_single = end == position + 1
        if not is_unit and not (is_single and word in RARELY_NUMBERS):
            yield from (reading for reading in readings if reading.end == end)


def all_values(words: Sequence[str]) -> set[Value]:
    """Every value that a source may state: all readings, of all lengths, at each word.

    Only a scale that a share divides is not read as a number:

        two hundred             2, 100, 200
        $4.5m                   4.5, 4500000
        6:40                    6, 40, 6.40
        4 to 5 million          4, 5, 4000000, 5000000, 1000000
        half a million          500000
        two and a half million  2, 2.5, 2500000
    """
    values: set[Value] = set()
    divided = -1  # the scale of the last share
    for position in _possible_starts(words):
        if words[position] in FIRST_OF_SHARES:
            if share := _share(words, position):
                divided = share.end - 1
            if _is_added_share(words, position):
                continue
        if position == divided:
            continue
        if ":" in words[position]:
            for _, parts in _values_of_digits(words[position].replace(":", " ")):
                values.update(parts)
        for number in _readings(words, position):
            values.update(number.values)
            scale = SCALES.get(words[number.end - 1])
            if scale and number.end > position + 1:
                values.update(_range_start_values(words, position, scale))
    return values


def _possible_starts(words: Sequence[str]) -> list[int]:
    """The indices of words that may begin a number: number words, and words that do not
    consist of letters.
    """
    return [
        position
        for position, word in enumerate(words)
        if word in _FIRST_WORDS or not word.isalpha()
    ]


def _range_start_values(
    words: Sequence[str], position: int, scale: int
) -> Iterator[Value]:
    """The scaled values of the number before `position`: `4` in `4 to 5 million`."""
    before = position - 1
    if position > 1 and words[before] in _RANGE_WORDS:
        before = position - 2
    readings = _readings(words, before) if before >= 0 else ()
    return (value * scale for number in readings for value in number.values)


def _readings(words: Sequence[str], start: int) -> Iterator[Number]:
    """The numbers that begin at `start`, from short to long: `two`, `two hundred`, `two
    hundred five`.
    """
    word = words[start]
    value = _WORDS.get(word)
    stated = list(_values_of_digits(word)) if value is None else [(value, (value,))]
    for _, values in stated:
        yield Number(start, start + 1, values)
    if stated and _NEXT_WORDS.issuperset(words[start + 1 : start + 2]):
        yield from _longer_readings(words, start, start + 1, stated[-1][0])
    if word in FIRST_OF_SHARES and (share := _share(words, start)):
        yield share
        yield from _longer_readings(words, start, share.end, share.values[0])


def _longer_readings(
    words: Sequence[str], start: int, position: int, value: Value
) -> Iterator[Number]:
    """The numbers that continue a number.

    Args:
      words: the words of the text.
      start, position: the words of the number are words[start:position].
      value: the value of the number.
    """
    # `total` is the value of the groups before: `two thousand` in `two thousand five`.
    total = 0 * value
    group = value
    last = words[position - 1]
    if SCALES.get(last, 0) > 100:
        total, group = value, total
    while position < min(len(words), start + _MAX_NUMBER_WORDS):
        is_joined = (
            words[position] == "and" and last in SCALES and position + 1 < len(words)
        )
        word = words[position + is_joined]
        share = _ADDED_SHARES.get(tuple(words[position : position + 3]))
        if share:
            group += share * SCALES.get(last, 1)
            word = words[position + 2]
            position += 2
            is_joined = False
        elif word in SCALES and not is_joined:
            group *= SCALES[word]
            if not group:  # `two thousand million`
                total *= SCALES[word]
            elif SCALES[word] > 100:
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


def _share(words: Sequence[str], start: int) -> Number | None:
    """The share of a scale that begins at `start`: `half a million`."""
    for share, value in _SHARES.items():
        *before, scale = words[start : start + len(share) + 1]
        if tuple(before) == share and scale in SCALES:
            return Number(start, start + len(share) + 1, (value * SCALES[scale],))
    return None


def _is_added_share(words: Sequence[str], position: int) -> bool:
    """Whether the word is added to a number before it: `half` in `two and a half`."""
    return (
        position >= 3
        and tuple(words[position - 2 : position + 1]) in _ADDED_SHARES
        and is_number_word(words[position - 3])
    )


def _values_of_digits(word: str) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """The numbers in a word with digits: the value of the digits, and the values that
    they may have with the letters after them. `4.5m` is 4.5 or 4500000.
    """
    if word in _VULGAR_FRACTIONS:
        yield _VULGAR_FRACTIONS[word], (_VULGAR_FRACTIONS[word],)
    for digits, letters in _DIGITS.findall(word):
        value = _value(digits)
        if letters in _VULGAR_FRACTIONS:
            value += _VULGAR_FRACTIONS[letters]
            yield value, (value,)
        elif letters in _SCALE_LETTERS:
            yield value, (value * _SCALE_LETTERS[letters],)
        elif letters in _AMBIGUOUS_LETTERS:
            yield value, (value, value * _AMBIGUOUS_LETTERS[letters])
        elif letters == "s" and 1000 < value < 10_000:
            yield value, (value, value % 100)  # the 1980s are the '80s
        else:
            yield value, (value,)


def _value(digits: str) -> Value:
    """1,200.50 -> 1200.5 and 6:40 -> 6.40; equal values are equal and hash alike,
    whether they are int or Decimal.
    """
    digits = digits.replace(",", "").replace(":", ".")[:MAX_DIGITS]
    return int(digits) if len(digits) < 19 and "." not in digits else Decimal(digits)
