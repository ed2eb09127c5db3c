"""What tells one architecture's checkpoints from another's: the names of the tensors and the fields of config.json."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from model.config import NetworkConfig

# The last part of a weight's path, and what it is called in a checkpoint.
_LEAVES = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}


class Architecture(NamedTuple):
    """How the checkpoints of one model_type are read.

    Attributes:
      network: config.json -> the shape of the network. A KeyError is a field that is missing.
      names: path of a weight -> name of its tensor, or both without their last part; # stands for the number of a layer.
      prefix: of the names, which some checkpoints leave out.
      embedding: the tensor of the embedding table, then the names under which it is repeated. With a tied output the first one counts and
        the others may differ; without, the others do, where they are there, and must be equal.
      optional: tensors that are zero where they are missing.
      ignored: tensors that no network needs.
      first_position: the row of the position table that the first token reads.
    """

    network: Callable[[Mapping[str, Any]], NetworkConfig]
    names: Mapping[str, str]
    prefix: str
    embedding: tuple[str, ...]
    optional: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    first_position: int = 0


def tensor_name(path: str, architecture: Architecture) -> str:
    """The tensor of a weight: encoder_3/attention/query/kernel -> encoder.layers.3.self_attn.q_proj.weight, for BART."""
    pattern = re.sub(r"_\d+/", "_#/", path)
    layer = re.search(r"_(\d+)/", path)
    if pattern in architecture.names:
        name = architecture.names[pattern]
    else:
        part, leaf = pattern.rsplit("/", 1)
        name = f"{architecture.names[part]}.{_LEAVES[leaf]}"
    return name.replace("#", layer[1]) if layer else name
