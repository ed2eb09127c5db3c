"""Search configurations: the bounds, and every refusal with its message."""

import pytest
from support import read_table

from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig


@pytest.mark.parametrize(("settings", "words"), read_table("refusals")["search"])
def test_contradictory_values_are_refused(settings, words):
    with pytest.raises(UsageError, match=words) as caught:
        SearchConfig(**settings)
    assert all(name in str(caught.value) for name in settings)
