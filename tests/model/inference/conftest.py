"""What several tests of searches share."""

import pytest
from support.small_search import small_search

from precis.model.inference.bulk_summarizer import ModelSearch


@pytest.fixture(scope="session")
def search(tmp_path_factory: pytest.TempPathFactory) -> ModelSearch:
    """A bundle with a tiny network, and how it is searched."""
    return small_search(tmp_path_factory.mktemp("search"))
