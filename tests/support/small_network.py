"""Networks of a tiny width with different settings, whose weights are never zero or
one.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from precis.model.network.architectures import ARCHITECTURES
from precis.model.network.build import build_network
from precis.model.network.config import SOURCE_PADDING, NetworkConfig, TransformerConfig
from precis.model.network.generator import Generator
from support import plain_network
from support.plain_network import Document, scramble
from support.plain_recurrent import recurrent

PAD, VOCABULARY = 4, 13
# Documents of different length, and targets longer than the longest source.
SOURCE = np.array(
    [[7, 8, 7, 0, SOURCE_PADDING, SOURCE_PADDING], [3, 12, 5, 8, 8, 9]], "int32"
)
TARGET = np.array([[1, 7, 8, 0, 0, 6, 12, 2], [1, 3, 3, 12, 5, 10, 2, PAD]], "int32")

_ANY = {
    "vocabulary_size": VOCABULARY,
    "pad_id": PAD,
    "width": 8,
    "dropout": 0.2,
    "max_source_tokens": 7,
    "max_target_tokens": 9,
}
_BLOCKS = {**_ANY, "feed_forward": 12, "heads": 2}
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "transformer": {**_BLOCKS, "encoder_layers": 2, "decoder_layers": 2},
    "decoder_only": {**_BLOCKS, "layers": 2},
    "recurrent": {**_ANY, "encoder_layers": 2, "decoder_layers": 2},
}
_RELATIVE = {"positions": "relative", "relative_buckets": 6, "relative_distance": 5}
# Every setting of a network has every value it may take in one of these. Three are what
# imported networks have; `decoder` is what sets the decoder's stack apart from the
# encoder's.
TRANSFORMERS: Mapping[str, Mapping[str, Any]] = {
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
        "decoder": {"heads": 4, "feed_forward": 20},
        "decoder_layers": 3,
    },
    "pegasus": {
        "pointer": False,
        "norm_first": True,
        "positions": "sinusoidal_halves",
        "logits_bias": True,
    },
    "grouped": {
        "pointer": False,
        "positions": "rotary",
        "rotary_scaling": (2.0, 0.5, 1.0, 5),
        "kv_heads": 2,
        "qk_norm": True,
        "heads": 4,
    },
    "t5": {
        **_RELATIVE,
        "pointer": False,
        "scaled_embedding": False,
        "scaled_scores": False,
        "norm_first": True,
        "rms_norm": True,
        "biases": False,
        "gated_feed_forward": True,
        "activation": "gelu_tanh",
        "head_width": 3,
        "scaled_output": True,
    },
    "gate": {
        "activation": "silu",
        "embedding_norm": True,
        "scaled_embedding": False,
        "norm_epsilon": 0.3,
        "heads": 4,
        "feed_forward": 7,
        "encoder_layers": 1,
        "convolutional_gate": True,
    },
    "gelu_tanh": {
        "activation": "gelu_tanh",
        "positions": "learned",
        "logits_bias": True,
        "decoder": {"heads": 1, "feed_forward": 7, "rms_norm": True},
    },
    "modernbert": {
        "pointer": False,
        "positions": "rotary",
        "rotary_base": 50.0,
        "reach": "lg",
        "window": 3,
        "local_rotary_base": 7.0,
        "scaled_embedding": False,
        "embedding_norm": True,
        "norm_first": True,
        "first_norm": False,
        "norm_bias": False,
        "biases": False,
        "gated_feed_forward": True,
        "activation": "gelu",
        "decoder": {
            **{"rotary_base": 9.0, "head_width": 6, "first_norm": True, "reach": ""}
        },
    },
    "t5gemma2": {
        "pointer": False,
        "positions": "rotary",
        "rotary_base": 50.0,
        "reach": "lg",
        "window": 4,
        "local_rotary_base": 7.0,
        "norm_first": True,
        "both_norms": True,
        "rms_norm": True,
        "score_width": 5,
        "qk_norm": True,
        "kv_heads": 1,
        "gated_feed_forward": True,
        "activation": "gelu_tanh",
        "merged_attention": True,
        "decoder": {"reach": "gl", "window": 3, "head_width": 6},
    },
    "vocabularies": {
        "pointer": False,
        "shared_embedding": False,
        "logits_bias": True,
        "norm_first": True,
        "decoder": {
            **_RELATIVE,
            "vocabulary_size": 17,
            "pad_id": 1,
            "width": 12,
            "heads": 3,
            "biases": False,
            "scaled_embedding": False,
        },
    },
}
DECODERS_ONLY: Mapping[str, Mapping[str, Any]] = {
    "decoder_only": {"norm_first": True, "positions": "learned", "activation": "gelu"},
    "decoder_only_relative": {
        **_RELATIVE,
        "scaled_embedding": False,
        "scaled_scores": False,
        "norm_first": True,
        "rms_norm": True,
        "biases": False,
        "gated_feed_forward": True,
        "activation": "silu",
        "head_width": 3,
        "tied_output": False,
    },
    "decoder_only_post_norm": {
        "embedding_norm": True,
        "pointer": False,
        "heads": 4,
        "feed_forward": 7,
        "layers": 1,
        "norm_epsilon": 0.3,
    },
    "decoder_only_rotary": {
        "positions": "rotary",
        "rotary_base": 50.0,
        "norm_first": True,
        "first_norm": False,
        "norm_bias": False,
        "pointer": False,
        "head_width": 6,
        "heads": 3,
    },
    "decoder_only_grouped": {
        "positions": "rotary",
        "rotary_base": 5.0,
        "rotary_scaling": (4.0, 0.5, 2.0, 9),
        "reach": "lg",
        "window": 3,
        "local_rotary_base": 7.0,
        "both_norms": True,
        "score_width": 5,
        "kv_heads": 2,
        "qk_norm": True,
        "norm_first": True,
        "rms_norm": True,
        "pointer": False,
        "continues_source": True,
        "head_width": 6,
        "heads": 4,
    },
    "decoder_only_halves": {
        "positions": "sinusoidal_halves",
        "activation": "gelu_tanh",
        "pointer": False,
        "tied_output": False,
    },
}
RECURRENT: Mapping[str, Mapping[str, Any]] = {
    "gru": {},
    "gru_untied": {"tied_output": False, "decoder_layers": 1},
    "gru_gate": {
        "convolutional_gate": True,
        "pointer": False,
        "encoder_layers": 1,
        "decoder_layers": 3,
    },
}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "transformer": TRANSFORMERS,
    "decoder_only": DECODERS_ONLY,
    "recurrent": RECURRENT,
}
ALL = tuple(name for variants in VARIANTS.values() for name in variants)
# For a test of every variant: those that differ most are fast, the others slow tests.
_FAST = (
    *("pointer", "t5", "decoder_only", "decoder_only_relative"),
    *("decoder_only_rotary", "decoder_only_grouped", "t5gemma2", "gru", "gru_untied"),
)
EACH = tuple(
    name if name in _FAST else pytest.param(name, marks=pytest.mark.slow)
    for name in ALL
)
# One of each architecture, with a pointer.
KINDS = ("pointer", "decoder_only", "gru")
PLAIN: Mapping[str, Callable[..., Document]] = {
    "transformer": plain_network.transformer,
    "decoder_only": plain_network.decoder_only,
    "recurrent": recurrent,
}


def values(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, shape).astype("float32")


def architecture_of(variant: str) -> str:
    return next(name for name, variants in VARIANTS.items() if variant in variants)


def config_of(variant: str, **changes: Any) -> NetworkConfig:
    """The configuration of a variant, some of its settings changed."""
    architecture = architecture_of(variant)
    settings = {**SHAPES[architecture], **VARIANTS[architecture][variant], **changes}
    decoder = settings.pop("decoder", None)
    config = ARCHITECTURES[architecture].config(**settings)
    return (
        dataclasses.replace(
            config, decoder_stack=dataclasses.replace(config.decoder, **decoder)
        )
        if decoder
        else config
    )


def small_config(**changes: Any) -> TransformerConfig:
    config = config_of("pointer", **changes)
    assert isinstance(config, TransformerConfig)
    return config


def make_network(
    variant: str = "pointer", *, precision: str = "float32", **changes: Any
) -> Any:
    network = build_network(config_of(variant, **changes), precision=precision)
    # No norm keeps the states of a recurrent network at a size.
    scramble(
        network, seed=11, scale=1.0 if architecture_of(variant) == "recurrent" else 0.4
    )
    return network


@functools.cache
def network_of(variant: str, precision: str = "float32") -> Any:
    """The network of a variant; shared, so its weights must stay."""
    return make_network(variant, precision=precision)


def by_hand(
    network: Generator, source: np.ndarray, target: np.ndarray
) -> list[Document]:
    """What the plain formulas say of each document of a batch, int [B, S] and [B, T];
    without the padding of the source.
    """
    compute, weights = PLAIN[network.name], plain_network.weights_of(network)
    return [
        compute(network.config, weights, ids[: _read_tokens(network, ids)], written)
        for ids, written in zip(source, target, strict=True)
    ]


def _read_tokens(network: Generator, ids: np.ndarray) -> int:
    """How much of a source is read; the first token of the target stands for the last
    of a source that is continued.
    """
    is_continued = getattr(network.config, "continues_source", False)
    return int((ids != SOURCE_PADDING).sum()) - is_continued


def read_maps(network: Generator, source: np.ndarray, target: np.ndarray) -> list[list]:
    """The attention maps of each document of a batch, without the padding of the
    source: block, number and weights [H, T, S].
    """
    maps = network.attention(source, target)
    width, steps = source.shape[1], target.shape[1]
    documents = []
    for row, ids in enumerate(source):
        length = _read_tokens(network, ids)
        places = {
            "source": np.arange(length),
            "target": np.arange(steps),
            "both": np.array([*range(length), *range(width, width + steps)]),
        }
        documents.append(
            [
                (
                    each.block,
                    each.layer,
                    np.asarray(each.weights)[row][
                        :, places[each.rows][:, None], places[each.columns]
                    ],
                )
                for each in maps
            ]
        )
    return documents
