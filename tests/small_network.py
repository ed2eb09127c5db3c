"""Networks of a tiny width that differ in their settings, none of whose weights is zero or one."""

import functools

import numpy as np

from model.config import NetworkConfig
from model.network.build import build_network
from model.network.transformer import Transformer
from tests.plain_network import scramble

PAD, VOCABULARY = 4, 13
# Documents of different length, and targets longer than the longest source.
SOURCE = np.array([[7, 8, 7, 0, PAD, PAD], [3, 12, 5, 8, 8, 9]], "int32")
TARGET = np.array([[1, 7, 8, 0, 0, 6, 12, 2], [1, 3, 3, 12, 5, 10, 2, PAD]], "int32")

# Every setting of a network has every value it may take in one of these; `bart` is what imported networks have.
VARIANTS = {
    "pointer": {},
    "plain": {"pointer": False},
    "untied": {"pointer": False, "tied_output": False},
    "untied_pointer": {"tied_output": False},
    "bart": {
        "pointer": False,
        "positions": "learned",
        "embedding_norm": True,
        "activation": "gelu",
        "scaled_embedding": False,
        "logits_bias": True,
        "norm_epsilon": 1e-5,
        "decoder_heads": 4,
        "decoder_feed_forward": 20,
        "decoder_layers": 3,
    },
    "silu": {"activation": "silu", "embedding_norm": True, "scaled_embedding": False, "norm_epsilon": 0.3, "encoder_layers": 1},
    "gelu_tanh": {"activation": "gelu_tanh", "positions": "learned", "logits_bias": True, "decoder_heads": 1, "decoder_feed_forward": 7},
}


def small_config(**changes) -> NetworkConfig:
    shape = {"encoder_layers": 2, "decoder_layers": 2, "width": 8, "feed_forward": 12, "heads": 2, "dropout": 0.2}
    limits = {"max_source_tokens": 7, "max_target_tokens": 9}
    return NetworkConfig(**{"vocabulary_size": VOCABULARY, "pad_id": PAD, **shape, **limits, **changes})


def make_network(*, precision: str = "float32", **changes) -> Transformer:
    network = build_network(small_config(**changes), precision=precision)
    scramble(network, seed=11, scale=0.4)
    return network


@functools.cache
def network_of(variant: str, precision: str = "float32") -> Transformer:
    """The network of a variant; shared, so its weights must stay."""
    return make_network(precision=precision, **VARIANTS[variant])
