"""Tests of numbers by their value, in digits and in words."""

from decimal import Decimal

import pytest

from precis.model.quality.numerals import MAX_DIGITS, all_values, stated_numbers


def stated(text):
    return [number.values for number in stated_numbers(text.split())]


STATED = [
    ("1,200", [(1200,)]),
    ("4.5m", [(Decimal("4.5"), 4_500_000)]),
    ("4.5 million", [(4_500_000,)]),
    ("9million", [(9_000_000,)]),
    ("2bn", [(2 * 10**9,)]),
    ("10k", [(10, 10_000)]),
    ("3rd", [(3,)]),
    ("third", [(3,)]),
    ("1990s", [(1990, 90)]),
    ("2012,300", [(2012,), (300,)]),
    ("mh370", [(370,)]),
    ("1,50,000", [(150_000,)]),
    ("6:40am", [(Decimal("6.4"),)]),
    ("½", [(Decimal("0.5"),)]),
    ("2½", [(Decimal("2.5"),)]),
    ("a million two hundred", [(1_000_200,)]),
    ("two thousand million", [(2 * 10**9,)]),
    ("half a million", [(500_000,)]),
    ("half the million", [(1_000_000,)]),
    ("half million two hundred", [(500_200,)]),
    ("three quarters of a million", [(750_000,)]),
    ("two and a half million", [(2_500_000,)]),
    ("a million and a quarter", [(1_250_000,)]),
    ("twenty five", [(25,)]),
    ("twenty fifth", [(25,)]),
    ("forty thousand", [(40_000,)]),
    ("two hundred and fifty thousand", [(250_000,)]),
    ("two thousand five hundred", [(2500,)]),
    ("two dozen", [(24,)]),
    ("three two", [(3,), (2,)]),
    ("two and three", [(2,), (3,)]),
    ("for the second time", [(2,)]),
    # Mostly no numbers, and units.
    ("one of the first", []),
    ("a 10 second delay", [(10,)]),
    ("thousands of don't", []),
]


@pytest.mark.parametrize(("text", "values"), STATED)
def test_stated_numbers(text, values):
    assert stated(text) == values


READINGS = [
    ("two hundred", {2, 100, 200}),
    ("$ 4.5m", {Decimal("4.5"), 4_500_000}),
    ("1.5 million", {Decimal("1.5"), 1_500_000, 1_000_000}),
    ("the 21st of the 1980s", {21, 1980, 80}),
    ("6:40 am", {6, 40, Decimal("6.40")}),
    ("4 to 5 million", {4, 5, 4_000_000, 5_000_000, 1_000_000}),
    ("half a million", {500_000}),
    ("two and a half million", {2, Decimal("2.5"), 2_500_000}),
    # Without a limit on the words of a number and on commas, these take hours.
    ("million " * 800, {10**6}),
    ("11," * 10_000, {11}),
]


@pytest.mark.parametrize(("text", "values"), READINGS)
def test_a_source_holds_every_reading(text, values):
    assert all_values(text.split()) >= values
    if len(text) < 30:
        assert all_values(text.split()) == values


def test_a_source_supports_every_part_of_it():
    words = (
        "in 1990 two hundred and twenty five thousand 4.5 million "
        "the third of 3rd and 2 dozen"
    ).split()
    known = all_values(words)
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            for number in stated_numbers(words[start:end]):
                assert known & set(number.values), words[start:end]


def test_a_number_of_any_length_is_read_up_to_its_limit():
    digits = "1" * 20_000
    ((value,),) = stated(f"{digits} million")
    assert value == Decimal("1" * MAX_DIGITS) * 10**6
    assert all_values([digits]) and all_values([f"{digits}s"])
