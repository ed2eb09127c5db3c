"""The gate: which text is shown, and for which flags another one is not."""

import pytest

from precis.model.errors import UsageError
from precis.model.quality.fallback import GateConfig, Text, choose_summary
from precis.model.quality.flags import FLAGS

SOURCE = Text("source", "All of it.", ["short_source"])
LEAD = Text("lead", "The first.", ["too_short"])
FALLBACK = GateConfig(
    fallback="extractive", fallback_flags="repeated, unsupported_name"
)


def written(*flags):
    return Text("abstractive", "What a network wrote.", list(flags))


def chosen(*, extractive=LEAD, abstractive, is_short=False, config=FALLBACK):
    return choose_summary(
        source=SOURCE,
        extractive=extractive,
        abstractive=abstractive,
        is_short=is_short,
        config=config,
    )


def test_without_a_network_the_extractive_summary_is_shown():
    assert chosen(abstractive=None) == (LEAD, [])


def test_a_short_document_is_its_own_summary():
    assert chosen(abstractive=None, is_short=True) == (SOURCE, [])
    assert chosen(abstractive=written(), is_short=True) == (SOURCE, [])


def test_only_the_named_flags_hold_a_summary_back():
    for flags in ([], ["empty"], ["unsupported_number", "truncated_source"]):
        assert chosen(abstractive=written(*flags)) == (written(*flags), [])
    found = chosen(
        abstractive=written("repeated", "unsupported_number", "unsupported_name")
    )
    assert found == (LEAD, ["repeated", "unsupported_name"])


def test_without_a_fallback_the_summary_of_the_network_keeps_its_flags():
    flags = [
        name for name in FLAGS if name not in ("longer_than_source", "short_source")
    ]
    assert chosen(abstractive=written(*flags), config=GateConfig()) == (
        written(*flags),
        [],
    )


@pytest.mark.parametrize("config", [GateConfig(), FALLBACK])
def test_nothing_longer_than_its_source_is_shown(config):
    assert chosen(abstractive=written("longer_than_source"), config=config) == (
        LEAD,
        ["longer_than_source"],
    )
    longer = LEAD._replace(flags=["longer_than_source"])
    assert (
        chosen(
            extractive=longer, abstractive=written("longer_than_source"), config=config
        ).text
        == SOURCE
    )
    assert chosen(extractive=longer, abstractive=None, config=config) == (SOURCE, [])


def test_the_default_flags_are_those_of_an_invention_or_a_broken_text():
    assert GateConfig().fallback == "none" and GateConfig().min_source_words == 30
    assert GateConfig().held_back == (
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
            "have no flag 'unsuported_name'; theirs are empty, too_short, .*, truncated_source$",
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
            "--min_source_words must not be negative, but is -1; 0 summarizes all documents",
        ),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        GateConfig(**change)


def test_an_empty_text_takes_no_others_place():
    nothing = Text("lead", "", ["empty"])
    assert chosen(extractive=nothing, abstractive=written("repeated")) == (
        written("repeated"),
        [],
    )
    assert chosen(extractive=nothing, abstractive=written("longer_than_source")) == (
        nothing,
        ["longer_than_source"],
    )
    assert chosen(extractive=nothing, abstractive=None) == (nothing, [])
