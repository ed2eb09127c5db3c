"""Tests of numbers by their value, in digits and in words."""

from decimal import Decimal

import pytest
from support import read_table

from precis.model.quality.numerals import MAX_DIGITS, all_values, stated_numbers

TEXTS = read_table("numerals")


def stated(text):
    return [number.values for number in stated_numbers(text.split())]


@pytest.mark.parametrize(("text", "values"), TEXTS["stated"])
def test_stated_numbers(text, values):
    assert stated(text) == [tuple(Decimal(str(n)) for n in each) for each in values]


@pytest.mark.parametrize(("text", "values"), TEXTS["readings"])
def test_a_source_holds_every_reading(text, values):
    assert all_values(text.split()) == {Decimal(str(each)) for each in values}


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
    # Without a limit on the words of a number and on commas, these take hours.
    assert 10**6 in all_values(["million"] * 800)
    assert 11 in all_values(["11," * 10_000])
