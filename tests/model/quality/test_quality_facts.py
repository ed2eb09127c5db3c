"""Tests of the numbers, dates and names that a source does not hold."""

import pytest
from support import read_table

from precis.model.quality.facts import SourceFacts, unsupported_facts

FACTS = read_table("facts")
SOURCE = FACTS[0]["source"]
SUMMARIES = [(SOURCE, sentence, "") for sentence in SOURCE.split(". ")]
SUMMARIES += [
    (each["source"], *summary)
    for each in FACTS
    for summary in each["summaries"].items()
]


@pytest.mark.parametrize(("source", "summary", "expected"), SUMMARIES)
def test_unsupported_facts(source, summary, expected):
    numbers, dates, names = unsupported_facts(summary.splitlines(), SourceFacts(source))
    assert "|".join([*numbers, *dates, *names]) == expected


def test_names_in_lower_case_are_not_recognised_but_numbers_are():
    facts = unsupported_facts(["john smith paid 7 on friday"], SourceFacts(SOURCE))
    assert facts == (["7"], ["friday"], None)


def test_in_another_language_only_numbers_in_digits_are_judged():
    source = SourceFacts("Ten klub zapłacił 6 euro.", is_english=False)
    facts = unsupported_facts(["Ten May nine zapłacił 7 Zloty."], source)
    assert facts == (["7"], None, None)
