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
    shape = {"encoder_layers": 1, "decoder_layers": 1, "width": 8, "feed_forward": 12}
    limits = {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 6}
    config = TransformerConfig(
        vocabulary_size=TOKENIZER.vocabulary_size,
        pad_id=TOKENIZER.pad_id,
        heads=2,
        **shape,
        **limits,
    )
    network = build_network(config)
    plain_network.scramble(network, seed=1, scale=0.7)
    saved = {"network": network, "tokenizer": TOKENIZER, "provenance": {}}
    model_id = save_bundle(str(folder), **saved)
    return ModelSearch(str(folder), model_id, "float32", CONFIG)


def random_sources(count: int) -> list[np.ndarray]:
    """Sources of 0 to 17 tokens, int32 [S] each; about one in five has all 17."""
    random = np.random.default_rng(5)
    sizes = (random.integers(0, 21) for _ in range(count))
    sources = (random.integers(6, 16, size=size, dtype="int32") for size in sizes)
    return [source[:MAX_SOURCE_TOKENS] for source in sources]
