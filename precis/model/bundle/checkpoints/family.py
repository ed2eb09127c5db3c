"""A family: maps the fields of config.json and the tensors of the checkpoints of one
architecture to the fields and weights of a network.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, StackConfig, TransformerConfig

# The name of an activation in config.json -> its name in a network. If there are two
# names, the first is written.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
# The last part of the path of a weight -> the last part of the name of its tensor.
_LEAVES = {
    "kernel": "weight",
    "gamma": "weight",
    "scale": "weight",
    "bias": "bias",
    "beta": "bias",
}
_NEEDED = object()
_DECODER = "decoder."
# The layers of a block, as `block_names` takes them.
BLOCK = (
    "attention/{query,key,value,output} attention_residual/norm "
    "feed_forward/{inner,outer} feed_forward_residual/norm "
)
GATED = BLOCK.replace("inner", "inner,gate")
CROSS = "cross_attention/{query,key,value,output} cross_residual/norm "


class Field(NamedTuple):
    """A field of a network and of config.json.

    Attributes:
      here: the name in the configuration of a network; `decoder.heads` is the field
          `heads` of the decoder's stack.
      there: the name in config.json.
      default: the value if config.json does not have the field; without a default the
          field is required.
    """

    here: str
    there: str
    default: Any = _NEEDED


# The names in most checkpoints after BERT.
HIDDEN = (
    Field("vocabulary_size", "vocab_size"),
    Field("width", "hidden_size"),
    Field("feed_forward", "intermediate_size"),
    Field("heads", "num_attention_heads"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Family:
    """The checkpoints of one model_type.

    Attributes:
      title: the name of the architecture.
      class_name: the class of writers in transformers; "" for an encoder.
      config: the class of the configuration of a writer.
      is_general: as for `read_generation`.
      defaults: the special tokens of the class in transformers, for a config.json that
          does not state them and has no generation_config.json.
      fields: the fields of a network that equal a field of config.json.
      fixed: the fields of a network that are the same in all checkpoints of the family.
      known: the allowed values of other settings, as for `check_known`.
      read: config.json -> the other fields of a network. Raises KeyError if a field is
          missing.
      write: a network -> the other fields of config.json.
      names: path of a weight -> name of its tensor. Both may leave out their last part;
          # means the number of a layer.
      prefix: the beginning of tensor names, which some checkpoints leave out.
      without_prefix: the tensors that never have the prefix.
      embedding: names of the embedding table of an encoder-decoder: the table, its
          copies, and last the output layer. An output layer that differs from the
          table is separate, even if config.json does not say so. The copies must equal
          the table. With a separate output layer they must equal each other, and the
          table is not read.
      optional: tensors that are zero if they are missing; stored as [1, V].
      omitted: a pattern of the names of other tensors that are zero if missing.
      ignored: a pattern of the beginnings of names of tensors that are not needed.
      first_position: the row of the position table for the first token.
      norm_offset: the number added to the scales of norms that only scale.
      added: name of a tensor -> name of a tensor whose first row is added to each row.
      older: ends of tensor names in older checkpoints -> ends in current checkpoints.
      joined: end of the name of a stored layer -> ends of the names of the layers whose
          rows it holds, one after the other.
    """

    title: str
    class_name: str = ""
    config: type[Any] = TransformerConfig
    is_general: bool = False
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fields: tuple[Field, ...]
    fixed: Mapping[str, Any]
    known: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    read: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _: {}
    write: Callable[[TransformerConfig], dict[str, Any]] = lambda _: {}
    names: Mapping[str, str]
    prefix: str = ""
    without_prefix: tuple[str, ...] = ()
    embedding: tuple[str, ...] = (
        "shared.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.weight",
    )
    optional: tuple[str, ...] = ()
    omitted: str = r"\Z"
    ignored: str = r"\Z"
    first_position: int = 0
    norm_offset: float = 0.0
    added: Mapping[str, str] = dataclasses.field(default_factory=dict)
    older: Mapping[str, str] = dataclasses.field(default_factory=dict)
    joined: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def network(self, settings: Mapping[str, Any]) -> Any:
        """The configuration of the network, or of the encoder, in a config.json.

        Raises:
          DataError: a setting is not supported.
          KeyError: a field is missing.
        """
        check_known(settings, self.known)
        values = {**self.fixed, **read_fields(self.fields, settings)}
        values |= self.read(settings)
        if not self.class_name:
            return EncoderConfig(**values)
        values["pointer"] = False
        if self.config is not TransformerConfig:
            return self.config(**values)
        stack = {field.name for field in dataclasses.fields(StackConfig)}
        of_encoder = {name: values[name] for name in stack & values.keys()}
        of_decoder = {
            name.removeprefix(_DECODER): values.pop(name)
            for name in list(values)
            if name.startswith(_DECODER)
        }
        if not of_decoder.items() <= of_encoder.items():
            values["decoder_stack"] = StackConfig(**{**of_encoder, **of_decoder})
        return TransformerConfig(**values)

    def settings(self, config: TransformerConfig) -> dict[str, Any]:
        """The fields of config.json for a network, as a network of this family."""
        settings = {}
        for here, there, _ in self.fields:
            side = config.decoder if here.startswith(_DECODER) else config
            value = getattr(side, here.removeprefix(_DECODER))
            settings[there] = activation_name(value) if here == "activation" else value
        return {**settings, **self.write(config)}

    def tensor_name(self, path: str) -> str:
        """The name of the tensor of a weight, without the prefix.

        Args:
          path: the path of the weight in the network. For BART:

            transformer/encoder_3/attention/query/kernel
            ->  encoder.layers.3.self_attn.q_proj.weight
        """
        path = path.split("/", 1)[1]
        pattern = re.sub(r"_\d+/", "_#/", path)
        # In the blocks of a decoder the attention has a longer name.
        pattern = pattern.replace("/self_attention/", "/attention/")
        pattern = pattern.replace("/self_residual/", "/attention_residual/")
        layer = re.search(r"_(\d+)/", path)
        if pattern in self.names:
            name = self.names[pattern]
        else:
            part, leaf = pattern.rsplit("/", 1)
            name = f"{self.names[part]}.{_LEAVES[leaf]}"
        return name.replace("#", layer[1]) if layer else name

    def current_name(self, name: str) -> str:
        """The name of a tensor in current checkpoints, without the prefix."""
        return _with_end(name.removeprefix(self.prefix), self.older)

    def parts(self, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
        """The tensors that a stored tensor holds, by current name."""
        layer, _, leaf = name.rpartition(".")
        for end, parts in self.joined.items():
            if layer.endswith(end):
                rows = np.array_split(values, len(parts))
                names = [f"{layer}.{part}.{leaf}" for part in parts]
                return dict(zip(names, rows, strict=True))
        return {name: values}

    def stored_name(self, name: str, *, has_gate: bool) -> str:
        """The name of a tensor in a checkpoint: the inverse of `current_name`. T5
        without a gate has the older names.
        """
        if not has_gate:
            name = _with_end(name, {new: old for old, new in self.older.items()})
        return name if name in self.without_prefix else self.prefix + name


def token_ids(**ids: int) -> dict[str, int]:
    """Special tokens by their names in config.json: `pad=0` for `pad_token_id: 0`."""
    return {f"{name}_token_id": token for name, token in ids.items()}


def _with_end(name: str, ends: Mapping[str, str]) -> str:
    """Replaces the end of a name that has one of the ends."""
    for end, other in ends.items():
        if name.endswith(end):
            return name.removesuffix(end) + other
    return name


def block_names(path: str, name: str, layers: str, stored: str) -> dict[str, str]:
    """The names of the layers of a block, by path. A word of `layers` and `stored` is a
    layer, or several layers if it has a list in braces:

        attention/{query,key}    self_attn.{q,k}_proj

    Args:
      path: the beginning of the paths; with a list, of several blocks.
      name: the beginning of the names in a checkpoint.
      layers: the paths in the block.
      stored: the names in the block.
    """
    pairs = [*zip(layers.split(), stored.split(), strict=True)]
    return {
        block + here: stored_block + there
        for block, stored_block in zip(_listed(path), _listed(name), strict=True)
        for pair in pairs
        for here, there in zip(*map(_listed, pair), strict=True)
    }


def _listed(word: str) -> list[str]:
    before, _, rest = word.partition("{")
    each, _, behind = rest.partition("}")
    return [f"{before}{part}{behind}" for part in each.split(",")]


def read_fields(fields: Iterable[Field], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a network by name, from the settings in a config.json.

    Raises:
      DataError: the activation is not supported.
      KeyError: a field is missing.
    """
    values = {}
    for here, there, default in fields:
        value = settings[there] if default is _NEEDED else settings.get(there, default)
        values[here] = activation(value, there) if here == "activation" else value
    return values


def check_known(
    settings: Mapping[str, Any],
    known: Mapping[str, Sequence[Any]],
    way_out: str = "take another checkpoint",
) -> None:
    """Refuses settings that are not supported; `known` has the allowed values by name.

    Raises:
      DataError: a setting has another value; the message names it.
    """
    for name, values in known.items():
        if (value := settings.get(name)) not in (None, *values):
            raise DataError(
                f"config.json: {name} is {value!r}, but precis supports only "
                f"{' or '.join(map(repr, values))}; {way_out}"
            )


def activation(name: Any, field: str) -> str:
    """The name in a network of an activation in a field of config.json.

    Raises:
      DataError: the activation is not supported.
    """
    if name not in ACTIVATIONS:
        raise DataError(
            f"config.json: {field} is {name!r}, but precis supports only "
            f"{', '.join(ACTIVATIONS)}; it cannot be imported"
        )
    return ACTIVATIONS[name]


def activation_name(activation: str) -> str:
    """The name of an activation in transformers."""
    return next(name for name, here in ACTIVATIONS.items() if here == activation)
