"""The bulk summarizer: the same summaries from processes as from this process, and a
bundle that is checked before its weights are read.
"""

import dataclasses
import multiprocessing

import numpy as np
import pytest
from support.shared_networks import eagerly
from support.small_network import make_network
from support.small_search import (
    CONFIG,
    MAX_SOURCE_TOKENS,
    TOKENIZER,
    random_sources,
    small_search,
)

from precis.model import files
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.batches import Hypothesis, SearchedBatch
from precis.model.inference.bulk_summarizer import BulkSummarizer
from precis.model.inference.summarizer import Summarizer
from precis.model.inference.worker_pool import SearchPool, load_searcher
from precis.model.tokenization.wordpiece import Tokenizer


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    return small_search(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def bulk(search):
    """A bulk summarizer of two processes, which are ended when the test ends."""
    bulk = BulkSummarizer(SearchPool(search, processes=2))
    bulk.pool.retain()
    yield bulk
    bulk.pool.release()
    assert multiprocessing.active_children() == []


def texts_of(summaries):
    return [[summary.text for summary in ranked] for ranked in summaries]


def tokens_of(window):
    return [
        [hypothesis.tokens for hypothesis in ranked]
        for batch in window.searched
        for ranked in batch.hypotheses
    ]


@pytest.mark.slow
def test_processes_write_the_summaries_of_this_process(search, bulk, monkeypatch):
    batches_of_two = 32 * CONFIG.beam_width * 2
    monkeypatch.setattr(
        "precis.model.inference.batches.BATCH_BEAM_TOKENS", batches_of_two
    )
    sources = random_sources(15)
    assert bulk.pays_for_processes(sources)
    first = bulk.begin(sources, in_processes=True)
    second = bulk.begin(sources[:3], in_processes=True)
    here = bulk.begin(sources, in_processes=False)
    searched: list[float] = []
    summaries = first.summaries(searched.append)
    assert len(multiprocessing.active_children()) == 2
    assert len(searched) == len(first.searched)
    assert searched == sorted(searched) and searched[-1] == 1
    with eagerly():
        expected = here.summaries()
    assert texts_of(summaries) == texts_of(expected)
    for ranked, others in zip(summaries, expected, strict=True):
        assert [summary.score for summary in ranked] == pytest.approx(
            [summary.score for summary in others], abs=1e-5
        )
    assert tokens_of(first) == tokens_of(here)
    assert len({str(ranked) for ranked in tokens_of(first)}) > 5
    assert texts_of(second.summaries()) == texts_of(summaries[:3])
    assert sum(batch.source_tokens for batch in first.searched) == sum(
        len(source) for source in sources
    )
    summarizer = Summarizer(load_searcher(search)._network, TOKENIZER, CONFIG)
    with eagerly():
        alone = summarizer.summarize(sources[:4])
    assert texts_of(summaries[:4]) == texts_of(alone)


def test_few_documents_are_not_worth_a_process(search):
    bulk = BulkSummarizer(SearchPool(search, processes=2))
    three_batches = 3 * 85  # 256 hypotheses a batch
    assert not bulk.pays_for_processes(random_sources(three_batches))
    assert bulk.pays_for_processes(random_sources(three_batches + 1))
    alone = BulkSummarizer(SearchPool(search, processes=1))
    assert not alone.pays_for_processes(random_sources(1000))


def test_every_document_is_searched_alone_if_the_rows_must_not_depend_on_batches(
    search, monkeypatch
):
    bulk = BulkSummarizer(
        SearchPool(search._replace(batch_invariant=True), processes=2)
    )
    sources = random_sources(9)
    searched = []

    def search_here(batch):
        searched.append([source.tolist() for source in batch])
        found = [
            Hypothesis([6 + len(source) % 8], -1.0, -1.0, None) for source in batch
        ]
        return SearchedBatch([[best] for best in found], 1, 1, 0.0, 1.0)

    monkeypatch.setattr(bulk, "search_here", search_here)
    summaries = bulk.begin(sources, in_processes=False).summaries()
    assert sorted(searched) == sorted([source.tolist()] for source in sources)
    assert texts_of(summaries) == [["abcdefghij"[len(ids) % 8]] for ids in sources]
    # The start of processes pays for as many documents as without the switch.
    assert not bulk.pays_for_processes(random_sources(3 * 85))
    assert bulk.pays_for_processes(random_sources(3 * 85 + 1))


def test_a_longer_source_than_the_network_reads_is_refused(search):
    bulk = BulkSummarizer(SearchPool(search, processes=1))
    with pytest.raises(
        ValueError, match="source 0 has 18 tokens, and the network reads 17"
    ):
        bulk.begin([np.zeros(MAX_SOURCE_TOKENS + 1, "int32")], in_processes=False)


def test_another_model_in_the_folder_is_refused(search):
    other = search._replace(model_id="ffff")
    with pytest.raises(
        DataError, match="holds model [0-9a-f]{16} now, and this job began with ffff"
    ):
        BulkSummarizer(SearchPool(other, processes=1))
    with pytest.raises(
        DataError, match="put that model back, or begin anew with another --output"
    ):
        load_searcher(other)


def test_a_coverage_penalty_needs_a_pointer_before_weights_are_read(search, tmp_path):
    network = make_network(
        "plain", vocabulary_size=TOKENIZER.vocabulary_size, pad_id=TOKENIZER.pad_id
    )
    source_tokenizer = Tokenizer(TOKENIZER.vocabulary, lower_case=True)
    model_id = save_bundle(
        str(tmp_path),
        network=network,
        tokenizer=TOKENIZER,
        source_tokenizer=source_tokenizer,
        provenance={},
    )
    (tmp_path / "weights.safetensors").unlink()
    without_pointer = search._replace(bundle=str(tmp_path), model_id=model_id)
    bulk = BulkSummarizer(SearchPool(without_pointer, processes=1))
    assert bulk.source_tokenizer.fingerprint == source_tokenizer.fingerprint
    assert bulk.source_tokenizer.fingerprint != bulk.tokenizer.fingerprint
    assert bulk.max_source_tokens == 7
    config = dataclasses.replace(CONFIG, coverage_penalty=0.2)
    with pytest.raises(
        UsageError,
        match="--coverage_penalty weighs what the pointer has read .* this network "
        "has no pointer",
    ):
        BulkSummarizer(SearchPool(without_pointer._replace(config=config), processes=1))
    BulkSummarizer(SearchPool(search._replace(config=config), processes=1))


def test_the_bundle_is_opened_without_its_weights(search, tmp_path):
    for name in (
        "config.json",
        "manifest.json",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    ):
        files.write_bytes(
            files.join(str(tmp_path), name),
            files.read_bytes(files.join(search.bundle, name)),
        )
    bulk = BulkSummarizer(
        SearchPool(search._replace(bundle=str(tmp_path)), processes=1)
    )
    with pytest.raises(DataError, match="weights.safetensors: missing"):
        bulk.begin(random_sources(2), in_processes=False).summaries()
