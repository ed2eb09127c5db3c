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
BRITISH = "The British met the European Commission in the United States."
SHIPS = "Half a million saw Two of 35 ships."
NOTHING = "Nothing happened."
JUDGE = "Orlando M. Hudson of the Department of Justice heard of Jim Hicks’ case."
IRAQIS = "He said that Iraqis and Bens voted."


@pytest.mark.parametrize(
    ("source", "summary", "expected"),
    [
        *((SOURCE, sentence, "") for sentence in SOURCE.split(". ")),
        (SOURCE, "It paid 4.5 million.", ""),
        (SOURCE, "It paid 4,500,000 in the '80s.", ""),
        (SOURCE, "A thirty-five-year-old was paid $5m.", "5m"),
        (SOURCE, "A 36-year-old and twenty-two others.", "36|twenty two"),
        # A number is looked up as a word unless it may be divided.
        (SHIPS, "Some two or 35 came.", ""),
        (SHIPS, "He saw two million.", "two million"),
        (SOURCE, "They met on Monday, and on Tuesday.", ""),
        (SOURCE, "They met on March 3rd.", ""),
        (SOURCE, "They met on 3 March.", ""),
        (SOURCE, "They met on 4 March.", "4|4 march"),
        (SOURCE, "They met in June and in Sept.", "june|sept"),
        (SOURCE, "They may march in.", ""),
        (SOURCE, "They met in May.", ""),  # `may` stands in the source, as a verb
        (SOURCE, "They met on May 5.", "5|may 5"),
        # An ambiguous month needs a day or a word before it.
        (NOTHING, "They may march on", ""),
        (NOTHING, "They met in march", "march"),
        (SOURCE, "Jane O'Neill met Duroc.", ""),
        (SOURCE, "The US met Amélie in London, CNN says.", ""),
        (SOURCE, "Jane’s ambassador met O’Neill.", ""),
        (SOURCE, "An American met Anglo-Americans and a Russian in Russia.", ""),
        (SOURCE, "John Smith met Smith-Jones.", "John Smith|Smith-Jones"),
        (SOURCE, "Duroc met Zoë Ångström.", "Zoë Ångström"),
        # First words of sentences.
        (SOURCE, "Smith met Duroc.", "Smith"),
        (SOURCE, "An official said so. Official Duroc. Killing it, he said.", ""),
        (SOURCE, "Meanwhile, authorities met.\nAuthorities met.", ""),
        (SOURCE, "Pandas met pandas. “Bears met Pandas,” she said.", "Bears|Pandas"),
        (SOURCE, "BREAKING news", "BREAKING"),
        (SOURCE, "KILL met Duroc.", "KILL"),  # not only the first letter is a capital
        (SOURCE, "The FBI met with élan.", ""),
        (BRITISH, "The UK met the E.U. in the US.", ""),
        (BRITISH, "The UN met the FBI.", "UN|FBI"),
        (IRAQIS, "Then Iraq voted.", ""),
        (IRAQIS, "Then Ben voted.", "Ben"),
        # Names are not joined of two, only shortened.
        (JUDGE, "Orlando Hudson, of the Justice Department, heard Hicks’ case.", ""),
        (JUDGE, "They heard Orlando Hicks’ case.", "Orlando Hicks"),
        (
            JUDGE,
            "They met Hicks Hudson, Orlando’s Hicks and Jim. Hudson",
            "Hicks Hudson",
        ),
        (SOURCE, "", ""),
    ],
)
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
