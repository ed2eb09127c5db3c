"""What several tests of searches share."""

import multiprocessing
from collections.abc import Iterator

import pytest
from support.small_search import small_search
from support.small_selector import make_encoder_bundle

from precis.model.bundle.network_bundle import EncoderBundle
from precis.model.inference.bulk_summarizer import BulkSummarizer, ModelSearch


@pytest.fixture(scope="session")
def search(tmp_path_factory: pytest.TempPathFactory) -> ModelSearch:
    """A bundle with a tiny network, and how it is searched."""
    return small_search(tmp_path_factory.mktemp("search"))


@pytest.fixture
def bulk(search: ModelSearch) -> Iterator[BulkSummarizer]:
    """A bulk summarizer of two processes, which are ended when the test ends."""
    bulk = BulkSummarizer(search, processes=2)
    bulk.retain()
    yield bulk
    bulk.release()
    assert multiprocessing.active_children() == []


@pytest.fixture(scope="session")
def encoder_bundle(tmp_path_factory: pytest.TempPathFactory) -> EncoderBundle:
    """A random encoder and its tokenizer."""
    return make_encoder_bundle(tmp_path_factory.mktemp("pieces"))
