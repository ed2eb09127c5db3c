"""The limit of a text: what it counts, and what is left of a text within it."""

import pytest

from precis.model.text.length_limit import LengthLimit, line_size

COUNTED = [
    (LengthLimit(), "word " * 99, True),
    (LengthLimit(words=4), "Well-known U.S. firms, don't.", True),
    (LengthLimit(words=3), "Well-known U.S. firms, don't.", False),
    (LengthLimit(words=4), "Rain – & snow", True),
    (LengthLimit(words=3), "Rain – & snow", False),
    (LengthLimit(chars=5), "Ça va", True),
    (LengthLimit(chars=4), "Ça va", False),
    (LengthLimit(chars=1), "", True),
    (LengthLimit(lines=1), "One.\nTwo.", False),
    (LengthLimit(2, 9, 2), "One.\nTwo.", True),
    (LengthLimit(1, 9, 2), "One.\nTwo.", False),
]


@pytest.mark.parametrize(("limit", "text", "fits"), COUNTED)
def test_words_characters_and_lines_are_counted(limit, text, fits):
    assert limit.fits(text) == fits
    # The sizes of lines add up to that of the text.
    assert fits == (
        limit.holds(map(line_size, text.split("\n")))
        and text.count("\n") < (limit.lines or 99)
    )


BEGINNINGS = [
    (
        LengthLimit(9),
        "Rain fell. It  rained ",
        ["Rain fell. It  rained ", "Rain fell."],
    ),
    (LengthLimit(9), "", [""]),
    (
        LengthLimit(0, 0, 1),
        "Rain  fell.\nIt did.",
        ["Rain fell.\nIt did.", "Rain fell."],
    ),
    (LengthLimit(0, 0, 5), "- Rain\n*  Snow\n", ["Rain\nSnow", "Rain"]),
    (LengthLimit(0, 0, 5), "1. Rain\n2. Snow", ["Rain\nSnow", "Rain"]),
    (LengthLimit(0, 0, 5), "1.\nRain\n2.\nSnow", ["Rain\nSnow", "Rain"]),
    (LengthLimit(0, 0, 5), "5. Juni: Regen", ["5.\nJuni: Regen", "5."]),
]


@pytest.mark.parametrize(("limit", "text", "expected"), BEGINNINGS)
def test_a_text_without_its_last_sentences(limit, text, expected):
    assert limit.beginnings(text) == expected


def test_sentences_end_as_in_the_language_of_the_text():
    text = "Am 5. Juni fiel Regen. Es war nass."
    assert LengthLimit(9).beginnings(text, "de") == [text, "Am 5. Juni fiel Regen."]


SHARES = [
    (LengthLimit(2), 0.5),
    (LengthLimit(9, 10), 0.5),
    (LengthLimit(9, 99), 2.25),
    (LengthLimit(1, 10), 0.25),
]


@pytest.mark.parametrize(("limit", "share"), SHARES)
def test_the_share_of_a_text_that_is_within_it(limit, share):
    """It has 4 words and 21 characters."""
    assert limit.share("Rain fell all summer.") == share
