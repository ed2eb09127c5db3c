"""A tiny encoder of 24 tokens, its tokenizer, and tiny selector.

No weight is zero or one, so that every weight changes the output.
"""

from pathlib import Path

import numpy as np

from precis.model.bundle.network_bundle import EncoderBundle
from precis.model.extractive.features import FEATURE_COUNT
from precis.model.network.build import build_network
from precis.model.network.config import EncoderConfig, SelectorConfig
from precis.model.network.selector import Selector
from precis.model.network.transformer import Encoder
from precis.model.tokenization.imported import read_tokenizer
from support.plain_network import scramble
from support.small_encoder_checkpoint import BERT, VOCABULARY, write_pieces

WIDTH, TOKENS = 8, 24


def make_encoder(precision: str = "float32") -> Encoder:
    shape = {
        "encoder_layers": 2,
        "width": WIDTH,
        "feed_forward": 12,
        "heads": 2,
        "dropout": 0.3,
        "positions": "learned",
    }
    config = EncoderConfig(
        vocabulary_size=VOCABULARY, pad_id=0, max_source_tokens=TOKENS, **shape
    )
    encoder = build_network(config, precision=precision)
    scramble(encoder, seed=5)
    return encoder


def make_encoder_bundle(folder: Path, precision: str = "float32") -> EncoderBundle:
    encoder = make_encoder(precision)
    tokenizer = read_tokenizer(write_pieces(folder), BERT)
    return EncoderBundle(encoder.config, tokenizer, "0123456789abcdef", encoder=encoder)


def selector_config(**changes) -> SelectorConfig:
    shape = {
        "vector_width": WIDTH,
        "width": 8,
        "layers": 2,
        "feed_forward": 12,
        "heads": 2,
        "max_sentences": 6,
        "dropout": 0.4,
    }
    return SelectorConfig(**{**shape, **changes})


def make_selector(**changes) -> Selector:
    network = build_network(selector_config(**changes))
    scramble(network, seed=7)
    network.feature_mean.assign(np.linspace(-1, 1, FEATURE_COUNT))
    network.feature_scale.assign(np.linspace(0.5, 2, FEATURE_COUNT))
    return network
