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
from support import plain_network, read_table
from support.plain_network import Document, scramble

PAD, VOCABULARY = 4, 13
# Documents of different length, and targets longer than the longest source.
SOURCE = np.array(
    [[7, 8, 7, 0, SOURCE_PADDING, SOURCE_PADDING], [3, 12, 5, 8, 8, 9]], "int32"
)
TARGET = np.array([[1, 7, 8, 0, 0, 6, 12, 2], [1, 3, 3, 12, 5, 10, 2, PAD]], "int32")


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _read(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


VARIANTS: Mapping[str, dict[str, dict[str, Any]]] = _read(read_table("networks"))
SHAPES = {name: variants.pop("all") for name, variants in VARIANTS.items()}
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
    "recurrent": plain_network.recurrent,
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
