"""The choice of the summary that is shown, and the flags that hold one back."""

import pytest
from support import read_table

from precis.model.errors import UsageError
from precis.model.quality.flags import (
    FLAGS,
    FallbackConfig,
    SummaryText,
    choose_summary,
)

SOURCE = SummaryText("source", "All of it.", ["short_source"])
LEAD = SummaryText("lead", "The first.", ["too_short"])
FALLBACK = FallbackConfig(
    fallback="extractive", fallback_flags="repeated, unsupported_name"
)

DRAFTS = FallbackConfig(fallback="always")


def abstract(*flags):
    """An abstractive summary with these quality flags."""
    return SummaryText("abstractive", "What a network wrote.", list(flags))


def choose(*, extractive=LEAD, abstractive, is_short=False, config=FALLBACK):
    return choose_summary(
        source=lambda: SOURCE,
        extractive=extractive,
        abstractive=abstractive,
        is_short=is_short,
        config=config,
    )


LONG_LEAD = LEAD._replace(flags=["longer_than_source"])
EMPTY_LEAD = LEAD._replace(text="", flags=["empty"])
TOO_LONG = abstract("longer_than_source")
UNUSED = abstract("repeated", "unsupported_number", "unsupported_name")
NOTHING_FITS = abstract("empty", "over_limit")
REFUSED = abstract("too_short", "refused")
HELD_BACK = {"longer_than_source", "over_limit", "refused", "short_source"}
KEPT = abstract(*(set(FLAGS) - HELD_BACK))


SHOWN = [
    ({"abstractive": None}, LEAD),
    ({"abstractive": None, "is_short": True}, SOURCE),
    ({"abstractive": abstract(), "is_short": True}, SOURCE),
    # Only the named flags hold a summary back.
    *(
        ({"abstractive": abstract(*flags)}, abstract(*flags))
        for flags in ([], ["empty"], ["unsupported_number", "truncated_source"])
    ),
    ({"abstractive": UNUSED}, LEAD),
    ({"abstractive": KEPT, "config": FallbackConfig()}, KEPT),
    ({"abstractive": abstract(), "config": DRAFTS}, LEAD),
    # No summary longer than its source is shown.
    ({"abstractive": TOO_LONG}, LEAD),
    ({"abstractive": TOO_LONG, "config": FallbackConfig()}, LEAD),
    ({"abstractive": NOTHING_FITS, "config": FallbackConfig()}, LEAD),
    ({"abstractive": TOO_LONG, "extractive": LONG_LEAD}, SOURCE),
    ({"abstractive": None, "extractive": LONG_LEAD}, SOURCE),
    # A refusal is not shown, and the text in its place has its flag.
    *(
        ({"abstractive": REFUSED, "config": config, **given}, shown)
        for config in (FALLBACK, FallbackConfig(), DRAFTS)
        for given, shown in (
            ({}, LEAD._replace(flags=["too_short", "refused"])),
            (
                {"extractive": EMPTY_LEAD},
                EMPTY_LEAD._replace(flags=["empty", "refused"]),
            ),
        )
    ),
    # An empty text replaces no other text.
    ({"abstractive": UNUSED, "extractive": EMPTY_LEAD}, UNUSED),
    ({"abstractive": TOO_LONG, "extractive": EMPTY_LEAD}, EMPTY_LEAD),
    ({"abstractive": None, "extractive": EMPTY_LEAD}, EMPTY_LEAD),
]


@pytest.mark.parametrize(("given", "expected"), SHOWN)
def test_the_summary_that_is_shown(given, expected):
    assert choose(**given) == expected


@pytest.mark.parametrize(("change", "message"), read_table("refusals")["fallback"])
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        FallbackConfig(**change)
