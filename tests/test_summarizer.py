"""The summarizer: texts come back in order, whatever the batches; options reach the search."""

import numpy as np
import pytest

from model.config import DecodingConfig, NetworkConfig
from model.decoding import summarizer as module
from model.decoding.summarizer import Summarizer, batches_by_length
from model.network.build import build_network
from model.tokenizer import RESERVED_TOKENS, Tokenizer
from tests import plain_network

TOKENIZER = Tokenizer([*RESERVED_TOKENS, "▁", "▁␤", *(f"▁{letter}" for letter in "abcdefghij")])
SOURCES = [np.random.default_rng(seed).integers(6, 16, size=length).astype("int32") for seed, length in enumerate([3, 9, 1, 20, 7, 7])]


@pytest.fixture(scope="module")
def network():
    config = NetworkConfig(
        vocabulary_size=TOKENIZER.vocabulary_size,
        pad_id=TOKENIZER.pad_id,
        encoder_layers=1,
        decoder_layers=1,
        width=8,
        feed_forward=12,
        heads=2,
        max_source_tokens=8,
        max_target_tokens=6,
    )
    network = build_network(config)
    plain_network.scramble(network, seed=1, scale=0.7)
    return network


def test_a_document_alone_and_among_others_has_one_summary(network, monkeypatch):
    summarizer = Summarizer(network, TOKENIZER, DecodingConfig(beam_width=3, n_best=2))
    together = summarizer.summarize(SOURCES)
    assert [len(ranked) for ranked in together] == [2] * 6
    assert len({ranked[0].text for ranked in together}) > 2
    monkeypatch.setattr(module, "BATCH_TOKENS", 10)  # batches of one and of several
    for other in (summarizer.summarize(SOURCES), [summarizer.summarize([source])[0] for source in SOURCES]):
        assert [[summary.text for summary in ranked] for ranked in other] == [[summary.text for summary in ranked] for ranked in together]
        scores = [[summary.score for summary in ranked] for ranked in other]
        assert scores == [pytest.approx([summary.score for summary in ranked], abs=1e-4) for ranked in together]


def test_sources_are_cut_at_the_length_of_the_network(network):
    summarizer = Summarizer(network, TOKENIZER, DecodingConfig(beam_width=2))
    assert summarizer.summarize([SOURCES[3]]) == summarizer.summarize([SOURCES[3][:8]])


@pytest.mark.parametrize("width", [1, 3])
def test_lengths_are_cut_at_what_the_network_can_write(network, width):
    config = DecodingConfig(beam_width=width, min_summary_tokens=50, max_summary_tokens=99, no_repeat_ngram=2)
    summarizer = Summarizer(network, TOKENIZER, config)
    assert (summarizer.config.max_summary_tokens, summarizer.config.min_summary_tokens) == (6, 5)
    for ranked in summarizer.summarize(SOURCES):
        letters = ranked[0].text.replace("\n", " ␤ ").split()
        pairs = list(zip(letters, letters[1:], strict=False))
        assert len(letters) >= 4 and len(set(pairs)) == len(pairs)


def test_what_cannot_be_written_is_no_candidate(network):
    tiny = Tokenizer([*RESERVED_TOKENS, *TOKENIZER.vocabulary[4:]])
    summarizer = Summarizer(network, tiny, DecodingConfig(beam_width=4, n_best=4, max_summary_tokens=1))
    summarizer._suppressed[[4, 5, *range(7, 16)]] = True  # leaves "▁a" and the end: two summaries of one token
    assert [sorted(summary.text for summary in ranked) for ranked in summarizer.summarize(SOURCES[:2])] == [["", "a"]] * 2


def test_candidates_differ_in_more_than_white_space(network):
    summarizer = Summarizer(network, TOKENIZER, DecodingConfig(beam_width=4, n_best=4, max_summary_tokens=1))
    summarizer._suppressed[7:] = True  # leaves "▁a", and three tokens that are nothing to read
    for ranked in summarizer.summarize(SOURCES):
        assert sorted(summary.text for summary in ranked) == ["", "a"]


def test_batches_hold_every_document_once_and_keep_to_the_budget():
    lengths = [5, 900, 0, 5, 8192, 10_000, 1, 300] + [2] * 100
    batches = batches_by_length(lengths)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert batches[:2] == [[5], [4]]
    for rows in batches[1:]:
        assert len(rows) <= 64 and max(lengths[row] for row in rows) * len(rows) <= 8192
