"""The architectures by name, with their named sizes, and the conversion between names
and configurations.

A command line names an architecture and a size; a bundle stores the name of the
architecture and the fields of its configuration.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model.errors import UsageError
from precis.model.network.config import (
    DecoderOnlyConfig,
    NetworkConfig,
    RecurrentConfig,
    StackConfig,
    TransformerConfig,
)


class NamedArchitecture(NamedTuple):
    """A kind of network that writes summaries.

    Attributes:
      config: the class of its configuration.
      sizes: the fields that each named size sets.
    """

    config: type[Any]
    sizes: Mapping[str, Mapping[str, Any]]


# Name: the number of blocks of an encoder and of a decoder, and the widths. A
# decoder-only network has twice as many blocks.
# `base` is the base model of Vaswani et al. 2017 (table 3); `six_layers` has the same
# depth and half the widths. `four_layers` is the network of TensorFlow's tutorial
# "Neural machine translation with a Transformer and Keras".
_STACKS: Mapping[str, tuple[int, Mapping[str, int]]] = {
    "tiny": (2, {"width": 128, "feed_forward": 512, "heads": 4}),
    "four_layers": (4, {"width": 128, "feed_forward": 512, "heads": 8}),
    "small": (4, {"width": 256, "feed_forward": 1024, "heads": 8}),
    "six_layers": (6, {"width": 256, "feed_forward": 1024, "heads": 8}),
    "base": (6, {"width": 512, "feed_forward": 2048, "heads": 8}),
}
SIZES = tuple(_STACKS)
_TRANSFORMER_SIZES = {
    name: {"encoder_layers": blocks, "decoder_layers": blocks, **stack}
    for name, (blocks, stack) in _STACKS.items()
}
_DECODER_ONLY_SIZES = {
    name: {"layers": 2 * blocks, **stack} for name, (blocks, stack) in _STACKS.items()
}
_RECURRENT_SIZES = {
    "tiny": {"encoder_layers": 1, "decoder_layers": 1, "width": 128},
    "small": {"encoder_layers": 1, "decoder_layers": 1, "width": 256},
    "base": {"encoder_layers": 2, "decoder_layers": 2, "width": 512},
}
# The block settings of a Transformer encoder-decoder by name. `vaswani` follows Vaswani
# et al. 2017; the others follow the checkpoints of these names, which `precis export`
# can write.
LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "vaswani": {},
    "bart": {
        "positions": "learned",
        "embedding_norm": True,
        "activation": "gelu",
        "scaled_embedding": False,
        "norm_epsilon": 1e-5,
    },
    "pegasus": {
        "positions": "sinusoidal_halves",
        "norm_first": True,
        "norm_epsilon": 1e-5,
    },
    "t5": {
        "positions": "relative",
        "norm_first": True,
        "rms_norm": True,
        "biases": False,
        "scaled_scores": False,
        "scaled_embedding": False,
        "scaled_output": True,
    },
}
ARCHITECTURES: Mapping[str, NamedArchitecture] = {
    "transformer": NamedArchitecture(TransformerConfig, _TRANSFORMER_SIZES),
    "decoder_only": NamedArchitecture(DecoderOnlyConfig, _DECODER_ONLY_SIZES),
    "recurrent": NamedArchitecture(RecurrentConfig, _RECURRENT_SIZES),
}


def named_network(
    size: str, *, architecture: str = "transformer", **settings: Any
) -> Any:
    """The configuration of a named size, with the given fields set or replaced.

    Raises:
      UsageError: the architecture does not have this size or a setting.
    """
    config, sizes = ARCHITECTURES[architecture]
    if size not in sizes:
        raise UsageError(
            f"{architecture} has no network size {size!r}; its sizes are "
            f"{', '.join(sizes)}"
        )
    for name in settings.keys() - {field.name for field in dataclasses.fields(config)}:
        raise UsageError(
            f"{name} does not apply to the architecture {architecture}; leave it out"
        )
    return config(**{**sizes[size], **settings})


def architecture_of(config: NetworkConfig) -> str:
    """The name of a configuration's architecture."""
    return next(
        name
        for name, architecture in ARCHITECTURES.items()
        if isinstance(config, architecture.config)
    )


def read_config(architecture: str, fields: Mapping[str, Any]) -> Any:
    """Makes a configuration from its fields, the result of `dataclasses.asdict`.

    Raises:
      ValueError: the architecture or a field is unknown.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(
            f"unknown architecture {architecture!r}, known are "
            f"{', '.join(ARCHITECTURES)}; it needs a newer precis"
        )
    stack = fields.get("decoder_stack")
    try:
        nested = {"decoder_stack": StackConfig(**stack)} if stack else {}
        return ARCHITECTURES[architecture].config(**{**fields, **nested})
    except TypeError as error:
        raise ValueError(
            f"the configuration is from another version of precis: {error}"
        ) from error
