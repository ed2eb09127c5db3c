"""Articles, a tiny network for them in a bundle, and the flags of its export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precis.model.bundle.network_bundle import save_bundle
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.text.article import Article
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample import generator
from support.plain_network import scramble

ARTICLES = [generator.document(100 + index).article for index in range(12)]
ARTICLES += [
    "(CNN) -- " + ARTICLES[0],
    "LONDON, England (CNN)\u00a0-- Rain\r\nfell\x00 on\tMonday. "
    "Cafe\u0301 owners \u2014 said so.",
    "By . Jane Roe . PUBLISHED: . 09:12 EST, 3 May 2014 . | . Rain fell .",
    "a",
]
FLAGS = {"beam_width": 4, "n_best": 3, "max_summary_tokens": 9}


def bodies(**cleaning: Any) -> list[str]:
    """The bodies of the articles; the arguments are those of `Article`."""
    return [Article.from_text(article, **cleaning).body for article in ARTICLES]


def save_small_network(folder: Path) -> str:
    """Saves the bundle, and returns its folder."""
    tokenizer = Tokenizer(learn(count_words(bodies()), size=400))
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        encoder_layers=1,
        decoder_layers=1,
        width=16,
        feed_forward=16,
        heads=2,
        max_source_tokens=40,
        max_target_tokens=12,
    )
    network = build_network(config, seed=5)
    scramble(network, seed=3, scale=0.7)
    save_bundle(str(folder), network=network, tokenizer=tokenizer, provenance={})
    return str(folder)


def assert_same_summaries(summaries, scores, expected):
    """Holds the output of a graph against the summaries of a `Summarizer`.

    Args:
      summaries: the texts of each article, "" behind the last.
      scores: float32 [B, N].
      expected: what the summarizer wrote.
    """
    assert len(summaries) == len(expected)
    for texts, numbers, ranked in zip(summaries, scores, expected, strict=True):
        missing = FLAGS["n_best"] - len(ranked)
        assert texts == [summary.text for summary in ranked] + [""] * missing
        close = [pytest.approx(summary.score, abs=1e-4) for summary in ranked]
        assert numbers.tolist() == close + [-np.inf] * missing
