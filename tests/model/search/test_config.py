"""Search configurations: the bounds, and every refusal with its message."""

import dataclasses

import pytest

from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig, SpecialTokens


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam_width": 0}, "--beam_width must be at least 1, not 0"),
        (
            {"n_best": 5},
            (
                r"--n_best must lie between 1 and --beam_width \(4\), "
                r"not be 5; widen the beam or ask for fewer"
            ),
        ),
        (
            {"n_best": 0},
            r"--n_best must lie between 1 and --beam_width \(4\), not be 0",
        ),
        (
            {"min_summary_tokens": -1},
            (
                r"min_summary_tokens \(-1\) must be at least 0 "
                r"and below --max_summary_tokens \(128\)"
            ),
        ),
        (
            {"min_summary_tokens": 9, "max_summary_tokens": 9},
            r"\(9\) must be at least 0 and below --max_summary_tokens \(9\)",
        ),
        ({"max_summary_tokens": 0}, r"below --max_summary_tokens \(0\)"),
        (
            {"no_repeat_ngram": -3},
            "no_repeat_ngram must not be negative, but is -3; 0 turns it off",
        ),
        (
            {"repetition_penalty": 0.0},
            "repetition_penalty must be above 0, not 0.0; 1 turns it off",
        ),
        (
            {"length_penalty_form": "gnmt"},
            "length_penalty_form is one of none, average, wu, not 'gnmt'",
        ),
        (
            {"early_stopping": "yes"},
            "early_stopping is one of never, first_k, bound, not 'yes'",
        ),
        ({"unfinished": "first"}, "unfinished is one of last, compete, not 'first'"),
    ],
)
def test_contradictory_values_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        SearchConfig(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"beam_width": 1},
        {"beam_width": 3, "n_best": 3},
        {"min_summary_tokens": 8, "max_summary_tokens": 9},
        {"no_repeat_ngram": 0},
        {"no_repeat_ngram": 1},
        {"length_penalty": 0.0},
        {"length_penalty": -1.0},
        {"repetition_penalty": 0.5},
        {
            "length_penalty_form": "none",
            "early_stopping": "bound",
            "unfinished": "compete",
        },
    ],
)
def test_values_on_a_bound_are_accepted(settings):
    config = SearchConfig(**settings)
    assert {name: getattr(config, name) for name in settings} == settings


def test_configurations_are_frozen():
    for config, name in (
        (SearchConfig(), "beam_width"),
        (SpecialTokens(start_id=1, end_id=2, pad_id=0), "end_id"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, name, 4)
