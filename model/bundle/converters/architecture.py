"""What tells one architecture's checkpoints from another's: the names of the tensors
and the fields of config.json.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, TransformerConfig

# The last part of a weight's path, and what it is called in a checkpoint.
_LEAVES = {
    "kernel": "weight",
    "gamma": "weight",
    "scale": "weight",
    "bias": "bias",
    "beta": "bias",
}
# What the activations are called in config.json and here.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


Config = TypeVar("Config", TransformerConfig, EncoderConfig)


class Architecture(NamedTuple, Generic[Config]):
    """How the checkpoints of one model_type are read.

    Attributes:
      network: config.json -> the shape of the network, or of the encoder. A KeyError is
          a field that is missing.
      names: path of a weight -> name of its tensor, or both without their last part; #
          stands for the number of a layer.
      prefix: of the names, which some checkpoints leave out.
      embedding: of an encoder-decoder, the tensor of the embedding table, then the
        names under which it is repeated, the output layer's last. One there that
        differs is an output layer of its own, whatever config.json says; the others
        must be equal, but for the first where there is an output layer, which then is
        not read.
      optional: tensors that are zero where they are missing.
      ignored: what the names of tensors begin with that no network needs; every number
          is a # there.
      first_position: the row of the position table that the first token reads.
      added: a tensor -> another one, whose first row is added to each of its rows.
      older: what the names of tensors end with in older checkpoints -> what they end
          with today.
    """

    network: Callable[[Mapping[str, Any]], Config]
    names: Mapping[str, str]
    prefix: str
    embedding: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    first_position: int = 0
    added: Mapping[str, str] = {}
    older: Mapping[str, str] = {}


def attention_names(
    path: str, name: str, parts: tuple[str, str, str, str]
) -> dict[str, str]:
    """The names of an attention's linear layers, given those of query, key, value and
    output below its own.
    """
    ours = ("query", "key", "value", "output")
    return {
        f"{path}/{part}": f"{name}.{theirs}"
        for part, theirs in zip(ours, parts, strict=True)
    }


def tensor_name(path: str, architecture: Architecture[Any]) -> str:
    """The tensor of a weight: encoder_3/attention/query/kernel ->
    encoder.layers.3.self_attn.q_proj.weight, for BART.
    """
    pattern = re.sub(r"_\d+/", "_#/", path)
    layer = re.search(r"_(\d+)/", path)
    if pattern in architecture.names:
        name = architecture.names[pattern]
    else:
        part, leaf = pattern.rsplit("/", 1)
        name = f"{architecture.names[part]}.{_LEAVES[leaf]}"
    return name.replace("#", layer[1]) if layer else name


def current_name(name: str, architecture: Architecture[Any]) -> str:
    """The name of a checkpoint's tensor, without the prefix and as it is today."""
    name = name.removeprefix(architecture.prefix)
    for older, today in architecture.older.items():
        if name.endswith(older):
            return name.removesuffix(older) + today
    return name


def is_ignored(name: str, architecture: Architecture[Any]) -> bool:
    """Whether no network needs a tensor of the (current) name."""
    return re.sub(r"\.\d+(?=\.)", ".#", name).startswith(tuple(architecture.ignored))


def activation(settings: Mapping[str, Any], field: str) -> str:
    """What the activation that a field of config.json names is called here; without the
    field it is gelu.

    Raises:
      DataError: there is none of that name.
    """
    name = settings.get(field, "gelu")
    if name not in _ACTIVATIONS:
        raise DataError(
            f"config.json: {field} {name!r} is not one of {', '.join(_ACTIVATIONS)}; it cannot be imported"
        )
    return _ACTIVATIONS[name]
