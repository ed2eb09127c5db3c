"""The summarizer: token ids become distinct texts with the scores of the searcher."""

import numpy as np
import pytest
from support import plain_network
from support.shared_networks import eagerly

from precis.model.inference.batches import Hypothesis
from precis.model.inference.summarizer import Summarizer
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

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


def test_summaries_are_the_texts_of_the_hypotheses(network):
    config = SearchConfig(beam_width=3, n_best=2)
    summarizer = Summarizer(network, TOKENIZER, config)
    with eagerly():
        summaries = summarizer.summarize(SOURCES)
        results = summarizer.searcher.search([source[:8] for source in SOURCES])
    letters = dict(enumerate("abcdefghij", start=TOKENIZER.vocabulary.index("▁a")))
    for ranked, hypotheses in zip(summaries, results, strict=True):
        assert 1 <= len(ranked) <= 2
        assert ranked[0].text.split() == [
            letters[token] for token in hypotheses[0].tokens if token in letters
        ]
        assert ranked[0].score == hypotheses[0].score
    assert len({ranked[0].text for ranked in summaries}) > 2


def test_a_summary_that_differs_in_white_space_only_is_left_out(network, monkeypatch):
    """The better score stays, and the order is that of the scores."""
    summarizer = Summarizer(network, TOKENIZER, SearchConfig(beam_width=4, n_best=4))
    a, b, space, line, end = 6, 7, 4, 5, TOKENIZER.end_id
    assert [TOKENIZER.vocabulary[piece] for piece in (space, line, a, b)] == [
        "▁",
        "▁␤",
        "▁a",
        "▁b",
    ]
    first = [
        Hypothesis([a, b, end], -0.1, -6.0, 0.1),
        Hypothesis([space, a, b, end], -0.2, -7.0, 0.1),
        Hypothesis([b, end], -0.3, -3.0, 0.1),
        Hypothesis([b, space, end], -0.4, -9.0, None),
    ]
    second = [
        Hypothesis([end], -0.5, -0.25, 0.1),
        Hypothesis([line, end], -0.6, -0.8, 0.1),
        Hypothesis([a, end], -0.7, -1.0, None),
    ]
    monkeypatch.setattr(summarizer.searcher, "search", lambda sources: [first, second])
    # The mean is over the tokens with the end token.
    found = [
        [(text, score, mean, margin) for text, score, mean, margin, *_ in summaries]
        for summaries in summarizer.summarize(SOURCES[:2])
    ]
    assert found == [
        [("a b", -0.1, -2.0, 0.1), ("b", -0.3, -1.5, 0.1)],
        [("", -0.5, -0.25, 0.1), ("a", -0.7, -0.5, None)],
    ]
