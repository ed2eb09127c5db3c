"""A tiny network in a bundle, how it is searched, and sources for it."""

from pathlib import Path

import numpy as np

from precis.model.bundle.network_bundle import save_bundle
from precis.model.inference.bulk_summarizer import ModelSearch
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from support import plain_network

TOKENIZER = Tokenizer(
    [*RESERVED_TOKENS, "▁", "▁␤", *(f"▁{letter}" for letter in "abcdefghij")]
)
CONFIG = SearchConfig(beam_width=3, n_best=2)
MAX_SOURCE_TOKENS = 17


def small_search(folder: Path) -> ModelSearch:
    """Saves the bundle into a folder and says how it is searched."""
    network = build_network(
        TransformerConfig(
            vocabulary_size=TOKENIZER.vocabulary_size,
            pad_id=TOKENIZER.pad_id,
            encoder_layers=1,
            decoder_layers=1,
            width=8,
            feed_forward=12,
            heads=2,
            max_source_tokens=MAX_SOURCE_TOKENS,
            max_target_tokens=6,
        )
    )
    plain_network.scramble(network, seed=1, scale=0.7)
    model_id = save_bundle(
        str(folder), network=network, tokenizer=TOKENIZER, provenance={}
    )
    return ModelSearch(str(folder), model_id, "float32", CONFIG)


def random_sources(count: int) -> list[np.ndarray]:
    """Sources of 0 to 17 tokens, int32 [S] each; about one in five has all 17."""
    random = np.random.default_rng(5)
    lengths_and_tokens = (
        random.integers(6, 16, size=random.integers(0, 21)) for _ in range(count)
    )
    return [tokens[:MAX_SOURCE_TOKENS].astype("int32") for tokens in lengths_and_tokens]
