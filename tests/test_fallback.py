"""The choice of the summary that is shown, and the flags that hold one back."""

import pytest

from precis.model.errors import UsageError
from precis.model.quality.fallback import FallbackConfig, SummaryText, choose_summary
from precis.model.quality.flags import FLAGS

SOURCE = SummaryText("source", "All of it.", ["short_source"])
LEAD = SummaryText("lead", "The first.", ["too_short"])
FALLBACK = FallbackConfig(
    fallback="extractive", fallback_flags="repeated, unsupported_name"
)


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


def test_without_a_network_the_extractive_summary_is_shown():
    assert choose(abstractive=None) == LEAD


def test_a_short_document_is_shown_whole():
    assert choose(abstractive=None, is_short=True) == SOURCE
    assert choose(abstractive=abstract(), is_short=True) == SOURCE


def test_only_the_named_flags_hold_a_summary_back():
    for flags in ([], ["empty"], ["unsupported_number", "truncated_source"]):
        assert choose(abstractive=abstract(*flags)) == abstract(*flags)
    flagged = abstract("repeated", "unsupported_number", "unsupported_name")
    assert choose(abstractive=flagged) == LEAD


def test_without_a_fallback_the_summary_of_the_network_keeps_its_flags():
    flags = [
        name for name in FLAGS if name not in ("longer_than_source", "short_source")
    ]
    summary = abstract(*flags)
    assert choose(abstractive=summary, config=FallbackConfig()) == summary


@pytest.mark.parametrize("config", [FallbackConfig(), FALLBACK])
def test_no_summary_longer_than_its_source_is_shown(config):
    too_long = abstract("longer_than_source")
    assert choose(abstractive=too_long, config=config) == LEAD
    longer = LEAD._replace(flags=["longer_than_source"])
    assert choose(extractive=longer, abstractive=too_long, config=config) == SOURCE
    assert choose(extractive=longer, abstractive=None, config=config) == SOURCE


def test_the_default_flags_are_those_of_an_invention_or_a_broken_text():
    assert FallbackConfig().fallback == "none"
    assert FallbackConfig().min_source_words == 30
    assert FallbackConfig().fallback_flag_names == (
        "empty",
        "repeated",
        "unsupported_number",
        "unsupported_date",
        "unsupported_name",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fallback": "lead"}, "--fallback is one of none, extractive, not 'lead'"),
        (
            {"fallback_flags": "empty,unsuported_name"},
            "have no flag 'unsuported_name'; "
            "theirs are empty, too_short, .*, truncated_source$",
        ),
        (
            {"fallback_flags": "short_source"},
            "abstractive summaries have no flag 'short_source'",
        ),
        (
            {"fallback": "extractive", "fallback_flags": " ,"},
            "--fallback extractive needs at least one of --fallback_flags",
        ),
        (
            {"min_source_words": -1},
            "--min_source_words must not be negative, but is -1; "
            "0 summarizes all documents",
        ),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        FallbackConfig(**change)


def test_an_empty_text_replaces_no_other_text():
    empty = SummaryText("lead", "", ["empty"])
    repeated = abstract("repeated")
    assert choose(extractive=empty, abstractive=repeated) == repeated
    too_long = abstract("longer_than_source")
    assert choose(extractive=empty, abstractive=too_long) == empty
    assert choose(extractive=empty, abstractive=None) == empty
