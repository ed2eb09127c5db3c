"""How the checkpoints of one architecture are read.

Architectures differ in the names of their tensors and in the fields of config.json.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, TransformerConfig

# The last part of the path of a weight -> the last part of the name of its tensor.
_LEAVES = {
    "kernel": "weight",
    "gamma": "weight",
    "scale": "weight",
    "bias": "bias",
    "beta": "bias",
}
# The name of an activation in config.json -> its name in a network here.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


Config = TypeVar("Config", TransformerConfig, EncoderConfig)


class CheckpointArchitecture(NamedTuple, Generic[Config]):
    """How the checkpoints of one model_type are read.

    Attributes:
      network: config.json -> the configuration of the network, or of the encoder. It
          raises KeyError where a field is missing.
      names: path of a weight -> name of its tensor. Both may leave out their last part;
          # stands for the number of a layer.
      prefix: the beginning of tensor names that some checkpoints leave out.
      embedding: names of the embedding table of an encoder-decoder: the table itself,
          its copies, and the output layer last. An output layer that differs from the
          table is a separate one, whatever config.json says. All other copies must be
          equal to the table; where there is a separate output layer, only to each
          other, and the table itself is not read.
      optional: tensors that are zero where they are missing.
      ignored: beginnings of the names of tensors that no network needs. Every number is
          written as #.
      first_position: the row of the position table for the first token.
      added: name of a tensor -> name of a tensor whose first row is added to each row.
      older: ends of tensor names in older checkpoints -> ends in current ones.
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
    """The names of the linear layers of an attention.

    Args:
      path: the path of the attention.
      name: the name of the attention in a checkpoint.
      parts: the names of query, key, value and output in a checkpoint.

    Returns:
      Path of each layer -> its name in a checkpoint.
    """
    layers = ("query", "key", "value", "output")
    return {
        f"{path}/{layer}": f"{name}.{part}"
        for layer, part in zip(layers, parts, strict=True)
    }


def tensor_name(path: str, architecture: CheckpointArchitecture[Any]) -> str:
    """The name of the tensor of a weight.

    For BART:

        encoder_3/attention/query/kernel  ->  encoder.layers.3.self_attn.q_proj.weight
    """
    pattern = re.sub(r"_\d+/", "_#/", path)
    layer = re.search(r"_(\d+)/", path)
    if pattern in architecture.names:
        name = architecture.names[pattern]
    else:
        part, leaf = pattern.rsplit("/", 1)
        name = f"{architecture.names[part]}.{_LEAVES[leaf]}"
    return name.replace("#", layer[1]) if layer else name


def current_name(name: str, architecture: CheckpointArchitecture[Any]) -> str:
    """The name of a tensor without the prefix, and as current checkpoints write it."""
    name = name.removeprefix(architecture.prefix)
    for older, current in architecture.older.items():
        if name.endswith(older):
            return name.removesuffix(older) + current
    return name


def is_ignored(name: str, architecture: CheckpointArchitecture[Any]) -> bool:
    """Whether no network needs the tensor of a current name."""
    pattern = re.sub(r"\.\d+(?=\.)", ".#", name)
    return pattern.startswith(tuple(architecture.ignored))


def activation(settings: Mapping[str, Any], field: str) -> str:
    """The name in a network of the activation that config.json names.

    Args:
      settings: config.json.
      field: the field with the name; without it the activation is gelu.

    Raises:
      DataError: no network has such an activation.
    """
    name = settings.get(field, "gelu")
    if name not in ACTIVATIONS:
        raise DataError(
            f"config.json: {field} {name!r} is not one of {', '.join(ACTIVATIONS)}; "
            "it cannot be imported"
        )
    return ACTIVATIONS[name]
