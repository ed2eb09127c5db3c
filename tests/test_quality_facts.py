"""Tests of the numbers, dates and names that a source does not hold."""

import pytest

from precis.model.quality.facts import SourceFacts, unsupported_facts

SOURCE = (
    "LONDON (CNN) -- The U.S. ambassador, Jane O'Neill, met Amélie Duroc's team on "
    "Monday, March 3. They may meet again on Tues. "
    "The Anglo-American group, founded in the 1980s, paid $4.5m to 35-year-old "
    "Russians. "
    "The F.B.I. said that officials killed the plan in April."
)
FACTS = SourceFacts(SOURCE)


def unsupported(summary, facts=FACTS):
    return unsupported_facts(summary.splitlines(), facts)


@pytest.mark.parametrize(
    ("summary", "numbers"),
    [
        ("It paid 4.5 million.", []),
        ("It paid 4,500,000 in the '80s.", []),
        ("It paid 4.5 billion.", ["4.5 billion"]),
        ("A thirty-five-year-old was paid $5m.", ["5m"]),
        ("A 36-year-old and twenty-two others.", ["36", "twenty two"]),
    ],
)
def test_numbers(summary, numbers):
    assert unsupported(summary).numbers == numbers


def test_a_number_is_looked_up_as_a_word_unless_it_may_be_divided():
    facts = SourceFacts("Half a million saw Two of 35 ships.")
    assert unsupported("Some two or 35 came.", facts).numbers == []
    assert unsupported("He saw two million.", facts).numbers == ["two million"]
    assert unsupported("A million came.", facts).numbers == ["million"]


@pytest.mark.parametrize(
    ("summary", "dates"),
    [
        ("They met on Monday, and on Tuesday.", []),
        ("They met on Friday's eve.", ["friday"]),
        ("They met on March 3rd.", []),
        ("They met on 3 March 2014.", []),
        ("They met on March 4.", ["march 4"]),
        ("they met on 4 march.", ["4 march"]),
        ("They met in March and in April.", []),
        ("They met in June and in Sept.", ["june", "sept"]),
        ("June was hot.", ["june"]),
        ("They may march in.", []),
        ("They met in May.", []),  # `may` stands in the source, as a verb
        ("They met on May 5.", ["may 5"]),
    ],
)
def test_dates(summary, dates):
    assert unsupported(summary).dates == dates


def test_an_ambiguous_month_needs_a_day_or_a_word_before_it():
    facts = SourceFacts("Nothing happened.")
    assert unsupported("they may march on", facts).dates == []
    assert unsupported("they met in march", facts).dates == ["march"]


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        ("Jane O'Neill met Duroc.", []),
        ("The US met Amélie in London, CNN says.", []),
        ("Jane’s ambassador met O’Neill.", []),
        ("An American met Anglo-Americans and a Russian in Russia.", []),
        ("Mr. Smith met Duroc.", ["Smith"]),
        (
            "John Smith met Jane Smith and Smith-Jones.",
            ["John Smith", "Smith", "Smith-Jones"],
        ),
        ("Duroc met Zoë Ångström.", ["Zoë Ångström"]),
        ("I met Duroc on Friday.", []),  # a date
        # First words of sentences.
        ("Smith met Duroc.", ["Smith"]),
        ("An official said so. Official Duroc. Killing it, he said.", []),
        ("Meanwhile, authorities met.\nAuthorities met.", []),
        ("Pandas met pandas. “Bears met Pandas,” she said.", ["Bears", "Pandas"]),
        ("BREAKING news", ["BREAKING"]),
        ("KILL met Duroc.", ["KILL"]),  # not only the first letter is a capital
        ("The FBI met with élan.", []),
    ],
)
def test_names(summary, names):
    assert unsupported(summary).names == names


def test_abbreviated_names():
    facts = SourceFacts("The British met the European Commission in the United States.")
    assert unsupported("The UK met the E.U. in the US.", facts).names == []
    assert unsupported("The UN met the FBI.", facts).names == ["UN", "FBI"]


def test_names_in_lower_case_are_not_recognised_but_numbers_are():
    facts = unsupported("john smith paid 7 on friday")
    assert facts.names is None
    assert facts.numbers == ["7"]
    assert facts.dates == ["friday"]
    assert unsupported("").names == []
    assert unsupported("John").names == ["John"]


def test_every_sentence_of_a_source_is_supported():
    for sentence in SOURCE.split(". "):
        assert unsupported(sentence) == ([], [], [])


def test_a_quotation_has_the_case_of_its_source_or_no_capital():
    facts = SourceFacts("HALF A MILLION came.")
    assert facts.has_line("half a million")
    assert not facts.has_line("Half a million")
    assert not facts.has_line("")


def test_a_name_of_four_letters_may_have_another_ending():
    facts = SourceFacts("He said that Iraqis and Bens voted.")
    assert unsupported("Then Iraq voted.", facts).names == []
    assert unsupported("Then Ben voted.", facts).names == ["Ben"]
