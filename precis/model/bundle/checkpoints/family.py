"""What the checkpoints of one architecture look like: the names of the fields of
config.json and of the tensors, beside those of a network.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, StackConfig, TransformerConfig

# The name of an activation in config.json -> its name in a network. Of two names, the
# first is written.
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
      here: its name in the configuration of a network; decoder.heads is that of the
          decoder's stack.
      there: its name in config.json.
      default: what holds where config.json does not have it; without a default, it
          must be there.
    """

    here: str
    there: str
    default: Any = _NEEDED


# As most checkpoints after BERT name them.
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
      class_name: the class in transformers that writes; "" for an encoder alone.
      config: the class of the configuration of a network that writes.
      is_general: as in `read_generation`.
      defaults: the special tokens that its class in transformers has where config.json
          states none, and there is no generation_config.json.
      fields: what config.json says of a network field by field.
      fixed: the fields of a network that all its checkpoints share. No checkpoint of
          a network that writes has a pointer.
      known: settings and their values, as in `check_known`.
      read: config.json -> fields of a network that no single field gives. It raises
          KeyError where a field is missing.
      write: a network -> fields of config.json that no single field gives.
      names: path of a weight -> name of its tensor. Both may leave out their last part;
          # stands for the number of a layer.
      prefix: the beginning of tensor names that some checkpoints leave out.
      without_prefix: the tensors that never have it.
      embedding: names of the embedding table of an encoder-decoder: the table itself,
          its copies, and the output layer last. An output layer that differs from the
          table is a separate one, whatever config.json says. All other copies must be
          equal to the table; where there is a separate output layer, only to each
          other, and the table itself is not read.
      optional: tensors that are zero where they are missing; they are stored as [1, V].
      omitted: names of others that are zero where they are missing, as a pattern.
      ignored: the beginnings of names of tensors that no network needs, as a pattern.
      first_position: the row of the position table for the first token.
      norm_offset: what is added to the scales of norms that only scale.
      added: name of a tensor -> name of a tensor whose first row is added to each row.
      older: ends of tensor names in older checkpoints -> ends in current ones.
      joined: end of the name of a layer -> what is behind it in the names of those
          whose rows it stands for, one below the other.
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
          DataError: no network is like that.
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
        """The fields of config.json of a network, as if it were of this family."""
        settings = {}
        for here, there, _ in self.fields:
            side = config.decoder if here.startswith(_DECODER) else config
            value = getattr(side, here.removeprefix(_DECODER))
            settings[there] = activation_name(value) if here == "activation" else value
        return {**settings, **self.write(config)}

    def tensor_name(self, path: str) -> str:
        """The name of the tensor of a weight, without the prefix.

        Args:
          path: of the weight in the network. For BART:

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
        """The name of a tensor without the prefix, and as current checkpoints write
        it.
        """
        return _with_end(name.removeprefix(self.prefix), self.older)

    def parts(self, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
        """The tensors that a stored one stands for, by current name."""
        layer, _, leaf = name.rpartition(".")
        for end, parts in self.joined.items():
            if layer.endswith(end):
                rows = np.array_split(values, len(parts))
                names = [f"{layer}.{part}.{leaf}" for part in parts]
                return dict(zip(names, rows, strict=True))
        return {name: values}

    def stored_name(self, name: str, *, has_gate: bool) -> str:
        """The name that a checkpoint gives a tensor: `current_name` the other way
        round. A T5 without a gate has the older names.
        """
        if not has_gate:
            name = _with_end(name, {new: old for old, new in self.older.items()})
        return name if name in self.without_prefix else self.prefix + name


def token_ids(**ids: int) -> dict[str, int]:
    """Special tokens by their names in config.json: `pad=0` for `pad_token_id: 0`."""
    return {f"{name}_token_id": token for name, token in ids.items()}


def _with_end(name: str, ends: Mapping[str, str]) -> str:
    """A name with another end, where it has one of the ends."""
    for end, other in ends.items():
        if name.endswith(end):
            return name.removesuffix(end) + other
    return name


def block_names(path: str, name: str, layers: str, stored: str) -> dict[str, str]:
    """The names of the layers of a block, by path. Of the words of two texts each is
    one layer, or several where it has a list in braces:

        attention/{query,key}    self_attn.{q,k}_proj

    Args:
      path: the beginning of the paths, with a list where there are several blocks.
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
      DataError: no network has such an activation.
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
    """Refuses settings that no network here computes; the values by name are `known`.

    Raises:
      DataError: naming the setting.
    """
    for name, values in known.items():
        if (value := settings.get(name)) not in (None, *values):
            raise DataError(
                f"config.json: {name} is {value!r}, and only "
                f"{' or '.join(map(repr, values))} is computed here; {way_out}"
            )


def activation(name: Any, field: str) -> str:
    """The name in a network of an activation in a field of config.json.

    Raises:
      DataError: no network has such an activation.
    """
    if name not in ACTIVATIONS:
        raise DataError(
            f"config.json: {field} {name!r} is not one of {', '.join(ACTIVATIONS)}; "
            "it cannot be imported"
        )
    return ACTIVATIONS[name]


def activation_name(activation: str) -> str:
    """The name of an activation in transformers."""
    return next(name for name, here in ACTIVATIONS.items() if here == activation)
