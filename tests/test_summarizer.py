"""The summarizer: ids become texts that differ, with the scores that the searcher gave
them.
"""

import numpy as np
import pytest
from small_encoder_checkpoint import BERT, write_pieces

from precis.model.inference.batches import Hypothesis
from precis.model.inference.searcher import Searcher
from precis.model.inference.summarizer import Summarizer, special_tokens
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.imported import read_tokenizer
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from tests import plain_network

TOKENIZER = Tokenizer(
    [*RESERVED_TOKENS, "▁", "▁␤", *(f"▁{letter}" for letter in "abcdefghij")]
)
SOURCES = [
    np.random.default_rng(seed).integers(6, 16, size=length).astype("int32")
    for seed, length in enumerate([3, 9, 1, 20, 7, 7])
]


@pytest.fixture(scope="module")
def network():
    config = TransformerConfig(
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


def test_the_special_ids_are_the_tokenizer_s():
    ids = special_tokens(TOKENIZER)
    assert (ids.start_id, ids.end_id, ids.pad_id) == (
        TOKENIZER.start_id,
        TOKENIZER.end_id,
        TOKENIZER.pad_id,
    )
    assert (
        set(ids.suppressed)
        == {TOKENIZER.pad_id, TOKENIZER.unknown_id, TOKENIZER.start_id}
        and len(set(ids.suppressed)) == 3
    )
    assert ids.prefix == () and ids.last_id is None


def test_summaries_are_the_texts_of_what_the_searcher_finds(network):
    config = SearchConfig(beam_width=3, n_best=2)
    summaries = Summarizer(network, TOKENIZER, config).summarize(SOURCES)
    found = Searcher(network, config=config, special=special_tokens(TOKENIZER)).search(
        SOURCES
    )
    letters = dict(enumerate("abcdefghij", start=TOKENIZER.vocabulary.index("▁a")))
    for ranked, hypotheses in zip(summaries, found, strict=True):
        assert 1 <= len(ranked) <= 2
        assert ranked[0].text.split() == [
            letters[token] for token in hypotheses[0].tokens if token in letters
        ]
        assert ranked[0].score == hypotheses[0].score
    assert len({ranked[0].text for ranked in summaries}) > 2


def test_what_the_summarizer_shows_of_its_network(network):
    summarizer = Summarizer(network, TOKENIZER, SearchConfig())
    assert (
        summarizer.network is network
        and summarizer.tokenizer is TOKENIZER
        and summarizer.max_source_tokens == 8
    )


def test_sources_are_cut_by_their_own_tokenizer(network, tmp_path, monkeypatch):
    """Which keeps the special token behind the text."""
    own = read_tokenizer(write_pieces(tmp_path), BERT)
    long = np.array([3, *range(6, 15), 4], "int32")
    summarizer = Summarizer(
        network, TOKENIZER, SearchConfig(beam_width=2), source_tokenizer=own
    )
    assert summarizer.source_tokenizer is own and summarizer.tokenizer is TOKENIZER
    assert (
        Summarizer(network, TOKENIZER, SearchConfig()).source_tokenizer is TOKENIZER
    )  # where there is no other
    searched = []
    monkeypatch.setattr(
        summarizer.searcher,
        "search",
        lambda sources: searched.extend(sources) or [[]] * len(sources),
    )
    assert summarizer.summarize([long, long[:5]]) == [[], []]
    assert [source.tolist() for source in searched] == [
        [3, *range(6, 12), 4],
        [3, 6, 7, 8, 9],
    ]


def test_summaries_differ_in_more_than_white_space(network, monkeypatch):
    """The better score stays, and the order is that of the scores."""
    summarizer = Summarizer(network, TOKENIZER, SearchConfig(beam_width=4, n_best=4))
    a, b, space, line, end = 6, 7, 4, 5, TOKENIZER.end_id
    assert [TOKENIZER.vocabulary[piece] for piece in (space, line, a, b)] == [
        "▁",
        "▁␤",
        "▁a",
        "▁b",
    ]
    found = [
        Hypothesis([a, b, end], -0.1, -6.0, 0.1),
        Hypothesis([space, a, b, end], -0.2, -7.0, 0.1),
        Hypothesis([b, end], -0.3, -3.0, 0.1),
        Hypothesis([b, space, end], -0.4, -9.0, None),
    ]
    other = [
        Hypothesis([end], -0.5, -0.25, 0.1),
        Hypothesis([line, end], -0.6, -0.8, 0.1),
        Hypothesis([a, end], -0.7, -1.0, None),
    ]
    monkeypatch.setattr(summarizer.searcher, "search", lambda sources: [found, other])
    # The mean is over the tokens with the end token.
    assert summarizer.summarize(SOURCES[:2]) == [
        [("a b", -0.1, -2.0, 0.1), ("b", -0.3, -1.5, 0.1)],
        [("", -0.5, -0.25, 0.1), ("a", -0.7, -0.5, None)],
    ]
