"""Search configurations: the bounds, and every refusal with its message."""

import pytest

from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig

CONTRADICTIONS = [
    ({"beam_width": 0}, "`beam_width=` must be at least 1, not 0"),
    ({"n_best": 5}, r"from 1 to `beam_width=` \(4\), not 5; lower it"),
    ({"n_best": 0}, r"from 1 to `beam_width=` \(4\), not 0"),
    ({"min_summary_tokens": -1}, r"\(-1\) must be from 0 to `max_"),
    (
        {"min_summary_tokens": 10, "max_summary_tokens": 9},
        r"\(10\) must be from 0 to `max_summary_tokens=` \(9\)",
    ),
    ({"no_repeat_ngram": -3}, "must not be negative, but is -3; 0 turns it off"),
    ({"repetition_penalty": 0.0}, "must be above 0, not 0.0; 1 turns it off"),
    (
        {"length_penalty_form": "gnmt"},
        "length_penalty_form must be one of none, average, wu, not 'gnmt'",
    ),
    ({"early_stopping": "yes"}, "must be one of never, first_k, bound, not 'yes'"),
    ({"unfinished": "first"}, "unfinished must be one of last, compete, not 'first'"),
]


@pytest.mark.parametrize(("settings", "words"), CONTRADICTIONS)
def test_contradictory_values_are_refused(settings, words):
    with pytest.raises(UsageError, match=words) as caught:
        SearchConfig(**settings)
    assert all(name in str(caught.value) for name in settings)
