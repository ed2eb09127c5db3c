"""The bulk summarizer: the same summaries from processes as from this process, and a
bundle that is checked before its weights are read.
"""

import multiprocessing

import pytest
from support.shared_networks import eagerly
from support.small_search import CONFIG, random_sources

from precis.model.errors import DataError
from precis.model.inference import batches
from precis.model.inference.bulk_summarizer import BulkSummarizer, load_searcher


def texts_of(summaries):
    return [[summary.text for summary in ranked] for ranked in summaries]


def tokens_of(window):
    ranked = (each for batch in window.searched for each in batch.results)
    return [[hypothesis.tokens for hypothesis in each] for each in ranked]


@pytest.mark.slow
def test_processes_write_the_summaries_of_this_process(search, bulk, monkeypatch):
    batches_of_two = 32 * CONFIG.beam_width * 2
    monkeypatch.setattr(batches, "BATCH_BEAM_TOKENS", batches_of_two)
    sources = random_sources(15)
    alone = BulkSummarizer(search, processes=1)
    first = bulk.begin(sources)
    second = bulk.begin(sources[:3])  # The processes run by now.
    here = alone.begin(sources)
    searched: list[float] = []
    summaries = first.summaries(searched.append)
    assert len(multiprocessing.active_children()) == 2
    assert len(searched) == len(first.searched)
    assert searched == sorted(searched) and searched[-1] == 1
    with eagerly():
        expected = here.summaries()
    assert texts_of(summaries) == texts_of(expected)
    found, scores = ([n.score for n in sum(of, [])] for of in (summaries, expected))
    assert found == pytest.approx(scores, abs=1e-5)
    assert tokens_of(first) == tokens_of(here)
    assert len({str(ranked) for ranked in tokens_of(first)}) > 5
    assert texts_of(second.summaries()) == texts_of(summaries[:3])
    tokens = sum(batch.source_tokens for batch in first.searched)
    assert tokens == sum(map(len, sources))


def test_few_documents_are_not_worth_a_process(search):
    bulk = BulkSummarizer(search, processes=2)
    bulk.begin(random_sources(3 * 85))  # three batches of 256 hypotheses
    alone = BulkSummarizer(search, processes=1)
    alone.begin(random_sources(1000))
    assert bulk._pool is None and alone._pool is None


def test_another_model_in_the_folder_is_refused(search):
    other = search._replace(model_id="ffff")
    message = (
        "now holds model [0-9a-f]{16}, but this job began with ffff; restore that "
        "model, or start again with another `output=`"
    )
    with pytest.raises(DataError, match=message):
        BulkSummarizer(other, processes=1)
    with pytest.raises(DataError, match=message):
        load_searcher(other)
