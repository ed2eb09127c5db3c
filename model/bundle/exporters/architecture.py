"""The checkpoint of transformers that computes what a network computes, as config.json.

A network equals BART, PEGASUS or T5 if the converter of that architecture reads the
config.json made here as the same network. Lengths, dropout and names may differ.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model.bundle.converters.architecture import ACTIVATIONS
from precis.model.bundle.converters.checkpoint import ENCODER_DECODERS
from precis.model.errors import DataError, UsageError
from precis.model.network.config import (
    NetworkConfig,
    StackConfig,
    TransformerConfig,
)
from precis.model.search.config import SpecialTokens

# The name of a model_type in messages, and its class in transformers. mT5 is a T5
# whose output is not scaled, and is written for networks that came from it.
MODEL_TYPES: Mapping[str, tuple[str, str]] = {
    "bart": ("BART", "BartForConditionalGeneration"),
    "pegasus": ("PEGASUS", "PegasusForConditionalGeneration"),
    "t5": ("T5", "T5ForConditionalGeneration"),
    "mt5": ("mT5", "MT5ForConditionalGeneration"),
}
_WAY_OUT = (
    "write a SavedModel with --format saved_model, or train a network with "
    "--layout bart --no-pointer, or --layout t5 --no-pointer"
)
# Fields that do not change what a network computes of a text that it can read, or that
# a checkpoint states by its tensors.
_FREE_FIELDS = (
    "decoder_stack",
    "dropout",
    "logits_bias",
    "max_source_tokens",
    "max_target_tokens",
    "tied_output",
)
_DECODER = "decoder "
_RELATIVE_FIELDS = ("relative_buckets", "relative_distance")


class CheckpointConfig(NamedTuple):
    """How a network is written as a checkpoint.

    Attributes:
      model_type: one of MODEL_TYPES.
      settings: the content of config.json.
      network: the shape of the network.
    """

    model_type: str
    settings: dict[str, Any]
    network: TransformerConfig


def checkpoint_config(
    config: NetworkConfig, special: SpecialTokens, *, came_from: str = ""
) -> CheckpointConfig:
    """The config.json of a network.

    Args:
      config: the shape of the network.
      special: its special tokens.
      came_from: the model_type that it was imported from, if it was.

    Raises:
      UsageError: the network is none that transformers can compute.
    """
    if not isinstance(config, TransformerConfig):
        raise UsageError(
            "only an encoder-decoder Transformer can be written for transformers, and "
            f"this network has a {type(config).__name__}; {_WAY_OUT}"
        )
    differences = {
        model_type: _differences(config, special, model_type)
        for model_type in MODEL_TYPES
        if model_type != "mt5" or came_from == "mt5"
    }
    order = sorted(differences, key=lambda name: (name != came_from, name))
    for model_type in order:
        if not differences[model_type]:
            settings = _settings(config, special, model_type)
            return CheckpointConfig(model_type, settings, config)
    nearest = min(order, key=lambda name: len(differences[name]))
    raise UsageError(
        "transformers has no such network; the nearest is "
        f"{MODEL_TYPES[nearest][0]}, but {', '.join(differences[nearest])}; {_WAY_OUT}"
    )


def _differences(
    config: TransformerConfig, special: SpecialTokens, model_type: str
) -> list[str]:
    """What keeps a network from being one of a model_type."""
    settings = _settings(config, special, model_type)
    try:
        read = ENCODER_DECODERS[model_type].network(settings)
    except (DataError, UsageError) as error:
        return [str(error)]
    here, there = _computation(config), _computation(read)
    differences = [
        f"{name} is {here[name]} here and {there[name]} there"
        for name in here
        if here[name] != there[name] and not _is_said(name, here, there)
    ]
    if config.scaled_output and not config.tied_output:
        differences.append("a separate output layer is scaled here and not there")
    return differences


def _is_said(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether a difference of the decoder is also one of the encoder."""
    both = name.removeprefix(_DECODER)
    if both == name:
        return False
    return here[both] == here[name] and there[both] == there[name]


def _computation(config: TransformerConfig) -> dict[str, Any]:
    """The fields of a network that decide what it computes."""
    values = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(TransformerConfig)
        if field.name not in (*_FREE_FIELDS, *_RELATIVE_FIELDS)
    }
    decoder = _stack_values(config.decoder)
    return {
        **values,
        **_stack_values(config),
        **{f"{_DECODER}{name}": value for name, value in decoder.items()},
    }


def _stack_values(stack: StackConfig) -> dict[str, Any]:
    """The fields of a stack that decide what it computes."""
    values = {
        field.name: getattr(stack, field.name)
        for field in dataclasses.fields(StackConfig)
        if field.name not in (*_FREE_FIELDS, *_RELATIVE_FIELDS)
    }
    is_relative = stack.positions == "relative"
    for name in _RELATIVE_FIELDS:
        values[name] = getattr(stack, name) if is_relative else None
    values["head_width"] = stack.head_width or stack.width // stack.heads
    return values


def _settings(
    config: TransformerConfig, special: SpecialTokens, model_type: str
) -> dict[str, Any]:
    """The config.json of a network, as if it were one of a model_type."""
    is_t5 = model_type in ("t5", "mt5")
    shape = _t5_shape if is_t5 else _bart_shape
    return {
        "architectures": [MODEL_TYPES[model_type][1]],
        "model_type": model_type,
        "is_encoder_decoder": True,
        "dtype": "float32",
        # The cache of T5 in transformers has as many layers as its encoder.
        "use_cache": not is_t5 or config.decoder_layers <= config.encoder_layers,
        "vocab_size": config.vocabulary_size,
        "pad_token_id": config.pad_id,
        "bos_token_id": special.start_id,
        "eos_token_id": special.end_id,
        "decoder_start_token_id": special.start_id,
        # Without these lines BART would force its own end token.
        "forced_bos_token_id": None,
        "forced_eos_token_id": None,
        **shape(config),
    }


def _bart_shape(config: TransformerConfig) -> dict[str, Any]:
    """The sizes of BART and PEGASUS."""
    sides = {"encoder": config.encoder, "decoder": config.decoder}
    sizes = {
        f"{side}_{name}": value
        for side, stack in sides.items()
        for name, value in (
            ("ffn_dim", stack.feed_forward),
            ("attention_heads", stack.heads),
            ("layers", getattr(config, f"{side}_layers")),
        )
    }
    return {
        "d_model": config.width,
        **sizes,
        "activation_function": _activation_name(config.activation),
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": config.scaled_embedding,
        "max_position_embeddings": position_count(config),
        "tie_word_embeddings": config.tied_output,
    }


def position_count(config: TransformerConfig) -> int:
    """The rows of the tables of positions, which both sides have as many of."""
    # The start token takes a position.
    return max(config.max_source_tokens, config.max_target_tokens + 1)


def _t5_shape(config: TransformerConfig) -> dict[str, Any]:
    """The sizes of T5."""
    name = _activation_name(config.activation)
    # With a gate, "gelu" stands for its approximation.
    gated = "gated-gelu" if name == "gelu_new" else f"gated-{name}"
    return {
        "d_model": config.width,
        "d_ff": config.feed_forward,
        "d_kv": config.head_width or config.width // config.heads,
        "num_heads": config.heads,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_distance,
        "feed_forward_proj": gated if config.gated_feed_forward else name,
        "dropout_rate": config.dropout,
        "layer_norm_epsilon": config.norm_epsilon,
        "n_positions": config.max_source_tokens,
        # In T5 this says whether the output is scaled. `checkpoint_tensors` writes the
        # output layer where it is not.
        "tie_word_embeddings": config.scaled_output,
    }


def _activation_name(activation: str) -> str:
    """The name of an activation in transformers."""
    return next(name for name, here in ACTIVATIONS.items() if here == activation)
