"""Search configurations: the bounds, and every refusal with its message."""

import pytest

from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam_width": 0}, "`beam_width=` must be at least 1, not 0"),
        ({"n_best": 5}, r"between 1 and `beam_width=` \(4\), not be 5; widen the beam"),
        ({"n_best": 0}, r"between 1 and `beam_width=` \(4\), not be 0"),
        ({"min_summary_tokens": -1}, r"\(-1\) must be at least 0 and at most `max_"),
        (
            {"min_summary_tokens": 10, "max_summary_tokens": 9},
            r"\(10\) must be at least 0 and at most `max_summary_tokens=` \(9\)",
        ),
        ({"no_repeat_ngram": -3}, "must not be negative, but is -3; 0 turns it off"),
        ({"repetition_penalty": 0.0}, "must be above 0, not 0.0; 1 turns it off"),
        (
            {"length_penalty_form": "gnmt"},
            "length_penalty_form is one of none, average, wu, not 'gnmt'",
        ),
        ({"early_stopping": "yes"}, "is one of never, first_k, bound, not 'yes'"),
        ({"unfinished": "first"}, "unfinished is one of last, compete, not 'first'"),
    ],
)
def test_contradictory_values_are_refused(settings, words):
    with pytest.raises(UsageError, match=words) as caught:
        SearchConfig(**settings)
    assert all(name in str(caught.value) for name in settings)
