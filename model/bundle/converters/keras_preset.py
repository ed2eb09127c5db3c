"""Presets of keras-hub, as `save_to_preset` writes them: the settings and tensors of a
checkpoint of Hugging Face are made of theirs.

config.json        the class of the backbone, and what it was made with
model.weights.h5   the weights by the paths of their layers; or model.weights.json and several such files
tokenizer.json     what the tokenizer was made with; its vocabulary lies in assets/tokenizer

    layers/transformer_encoder_3/_self_attention_layer/query_dense/vars/0  [D, H, D / H]
    ->  encoder_3/attention/query/kernel, here  ->
    encoder.layers.3.self_attn.q_proj.weight  [D, D], for BART
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from precis.model.bundle.converters.architecture import Architecture, tensor_name
from precis.model.bundle.converters.tensors import Tensor
from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, TransformerConfig
from precis.model.search.config import SearchConfig

# No preset says how to search, so a network of one is searched as one that was trained
# here.
_SEARCH = {
    "num_beams": SearchConfig().beam_width,
    "no_repeat_ngram_size": SearchConfig().no_repeat_ngram,
}
_NEW_TOKENS = SearchConfig().max_summary_tokens


def is_preset(config: Mapping[str, Any]) -> bool:
    """Whether a config.json is that of a preset."""
    return "registered_name" in config


def preset_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json of a checkpoint of Hugging Face says of the same network; of a
    backbone that is not known, only its name.

    Args:
      config: config.json of a preset.

    Raises:
      DataError: a field is missing, or has a value that no such checkpoint has.
    """
    name = str(config["registered_name"])
    backbone = name.rpartition(">")[
        2
    ]  # in front of it stands keras_hub, or keras_nlp in older presets
    if backbone not in _SETTINGS:
        return {"model_type": name}
    try:
        return _SETTINGS[backbone](config["config"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"config.json: no settings of a {backbone} ({error!r}); save the preset again"
        ) from error


def _bert(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "vocab_size": config["vocabulary_size"],
        "num_hidden_layers": config["num_layers"],
        "num_attention_heads": config["num_heads"],
        "hidden_size": config["hidden_dim"],
        "intermediate_size": config["intermediate_dim"],
        "hidden_dropout_prob": config["dropout"],
        "max_position_embeddings": config["max_sequence_length"],
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def _roberta(config: Mapping[str, Any]) -> dict[str, Any]:
    rows = (
        config["max_sequence_length"] + 2
    )  # a preset leaves out the two that are never read
    other = {
        "model_type": "roberta",
        "max_position_embeddings": rows,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    }
    return {**_bert(config), **other}


def _distilbert(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model_type": "distilbert",
        "vocab_size": config["vocabulary_size"],
        "n_layers": config["num_layers"],
        "n_heads": config["num_heads"],
        "dim": config["hidden_dim"],
        "hidden_dim": config["intermediate_dim"],
        "dropout": config["dropout"],
        "max_position_embeddings": config["max_sequence_length"],
        "activation": "gelu",
        "pad_token_id": 0,
    }


def _bart(config: Mapping[str, Any]) -> dict[str, Any]:
    layers, heads, inner = (
        config["num_layers"],
        config["num_heads"],
        config["intermediate_dim"],
    )
    positions = config["max_sequence_length"]
    return {
        "model_type": "bart",
        "vocab_size": config["vocabulary_size"],
        "d_model": config["hidden_dim"],
        **{f"{side}_layers": layers for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": heads for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": inner for side in ("encoder", "decoder")},
        "dropout": config["dropout"],
        "max_position_embeddings": positions,
        "activation_function": "gelu",
        # A target begins with the end token and the start token.
        **{
            "bos_token_id": 0,
            "pad_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            "forced_bos_token_id": 0,
        },
        **{**_SEARCH, "max_new_tokens": min(_NEW_TOKENS, positions - 1)},
    }


def _t5(config: Mapping[str, Any]) -> dict[str, Any]:
    is_gated, is_tied = config["use_gated_activation"], config["tie_embedding_weights"]
    return {
        "model_type": "t5",
        "vocab_size": config["vocabulary_size"],
        "num_layers": config["num_layers"],
        "num_heads": config["num_heads"],
        "d_model": config["hidden_dim"],
        "d_ff": config["intermediate_dim"],
        "d_kv": config["key_value_dim"] or config["hidden_dim"] // config["num_heads"],
        "dropout_rate": config["dropout"],
        "layer_norm_epsilon": config["layer_norm_epsilon"],
        "feed_forward_proj": _t5_activation(config["activation"], is_gated=is_gated),
        "tie_word_embeddings": is_tied,
        "scale_decoder_outputs": is_tied,
        **{"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
        **{**_SEARCH, "max_new_tokens": _NEW_TOKENS},
    }


def _t5_activation(activation: Any, *, is_gated: bool) -> str:
    """The activation, a name or Keras's description of a function, as T5 writes it."""
    described = activation["config"] if isinstance(activation, dict) else activation
    name = str(described).rpartition(">")[2]
    if name == "gelu" and is_gated:
        raise DataError(
            "config.json: activation is 'gelu' with a gate, and what T5 has there is its approximation; it cannot be imported"
        )
    name = "gelu_new" if name == "gelu_approximate" else name
    return f"gated-{name}" if is_gated else name


_SETTINGS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "BartBackbone": _bart,
    "BertBackbone": _bert,
    "DistilBertBackbone": _distilbert,
    "RobertaBackbone": _roberta,
    "T5Backbone": _t5,
}


def preset_tensors(
    tensors: Mapping[str, Tensor],
    config: TransformerConfig | EncoderConfig,
    architecture: Architecture[Any],
) -> dict[str, Tensor]:
    """The tensors of a preset, named and laid out as in a checkpoint of Hugging Face.

    Args:
      tensors: by their paths in the preset. One that no such network has keeps its
          path, and is refused later.
      config: of the network.
      architecture: of the checkpoint.

    Raises:
      DataError: a tensor does not hold floating-point numbers.
    """
    layers = _layers(config)
    found: dict[str, Tensor] = {}
    for path, tensor in tensors.items():
        match = _PATH.fullmatch(path)
        layer, number = (
            (match[1].replace("/_", "/"), int(match[2])) if match else (path, 0)
        )
        if layer in _NAMES:
            found[f"{_NAMES[layer]}.{('weight', 'bias')[number]}"] = tensor
            continue
        weight = _weight(layers[layer], number) if layer in layers else path
        try:
            numbers = _laid_out(tensor.numbers(), weight, architecture)
            found[tensor_name(weight, architecture)] = Tensor(
                "F32", numbers.shape, numbers.tobytes()
            )
        except KeyError:
            found[path] = tensor
        except ValueError as error:
            raise DataError(
                f"{path}: {error}, and only floating-point weights are read; save the preset in one"
            ) from error
    # RoBERTa's vector of the first of two texts, which a preset leaves out, as it is
    # zero
    for name in architecture.added.values():
        found.setdefault(
            name, Tensor("F32", (1, config.width), bytes(4 * config.width))
        )
    return found


# The path of a tensor: what holds the layers, the layer, which of its weights.
_PATH = re.compile(r"[^/]+/(.+)/vars/([01])")
# Layers, their parts without leading underscores. What a network here has no layer for,
# and its name at Hugging Face:
_NAMES = {"embedding": "embeddings.token_type_embeddings", "dense": "pooler.dense"}
# The other layers, and the parts of those that are numbered, there and here.
_SINGLE = {
    "reversible_embedding": "embedding/table",
    "token_and_position_embedding/token_embedding": "embedding/table",
    "token_and_position_embedding/position_embedding": "source_input/positions",
    "position_embedding": "source_input/positions",
    "position_embedding_1": "target_input/positions",
    "layer_normalization": "source_input/norm",
    "layer_normalization_1": "target_input/norm",
    "t5_layer_norm": "encoder_norm",
    "t5_layer_norm_1": "decoder_norm",
}
_PARTS = ("query", "key", "value", "output")
_FEED_FORWARD = {
    "feedforward_intermediate_dense": "feed_forward/inner",
    "feedforward_output_dense": "feed_forward/outer",
    "feedforward_layer_norm": "feed_forward_residual/norm",
}
_T5_FEED_FORWARD = {
    "input_projector": "feed_forward/inner",
    "gate_projector": "feed_forward/gate",
    "output_projector": "feed_forward/outer",
    "layer_norm": "feed_forward_residual/norm",
}


def _layers(config: TransformerConfig | EncoderConfig) -> dict[str, str]:
    """Path of a layer in a preset -> path of it here, or of its only weight."""
    encoder, decoder = (
        config.encoder_layers,
        config.decoder_layers if isinstance(config, TransformerConfig) else 0,
    )
    attentions = {"self": ("attention", "attention_residual")}
    both = {
        "self": ("self_attention", "self_residual"),
        "cross": ("cross_attention", "cross_residual"),
    }
    t5 = "t5_transformer_layer"
    return {
        **_SINGLE,
        **_numbered(
            "transformer_encoder",
            "encoder",
            encoder,
            {**_attention("{}_attention_layer/{}_dense", attentions), **_FEED_FORWARD},
        ),
        **_numbered(
            "transformer_decoder",
            "decoder",
            decoder,
            {**_attention("{}_attention_layer/{}_dense", both), **_FEED_FORWARD},
        ),
        # Those of the decoder go on where those of the encoder end; the first of each
        # has the numbers of the relative positions.
        **_numbered(
            t5,
            "encoder",
            encoder,
            {**_attention("{}_attention/{}_projector", attentions), **_T5_FEED_FORWARD},
        ),
        **_numbered(
            t5,
            "decoder",
            decoder,
            {**_attention("{}_attention/{}_projector", both), **_T5_FEED_FORWARD},
            before=encoder,
        ),
        f"{t5}/self_attention": "encoder_positions/table",
        f"{t5}_{encoder}/self_attention": "decoder_positions/table",
    }


def _attention(pattern: str, sides: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The linear layers and the norm of attentions, there and here."""
    linear = {
        pattern.format(side, part): f"{path}/{part}"
        for side, (path, _) in sides.items()
        for part in _PARTS
    }
    return {
        **linear,
        **{
            f"{side}_attention_layer_norm": f"{path}/norm"
            for side, (_, path) in sides.items()
        },
    }


def _numbered(
    theirs: str, ours: str, count: int, parts: Mapping[str, str], *, before: int = 0
) -> dict[str, str]:
    """The parts of all layers of a kind; theirs are numbered from `before`, and the
    number 0 is left out.
    """
    names = [
        f"{theirs}_{number}" if number else theirs
        for number in range(before, before + count)
    ]
    return {
        f"{name}/{there}": f"{ours}_{place}/{here}"
        for place, name in enumerate(names)
        for there, here in parts.items()
    }


def _weight(layer: str, number: int) -> str:
    """The path of a layer's weight: which one comes first is known for every kind."""
    if layer.endswith("norm"):
        return f"{layer}/{('gamma', 'beta')[number]}"
    if layer.endswith(("/table", "/positions")):
        return (
            "output_layer/kernel" if number else layer
        )  # of an embedding that is not tied
    return f"{layer}/{('kernel', 'bias')[number]}"


def _laid_out(
    numbers: np.ndarray, weight: str, architecture: Architecture[Any]
) -> np.ndarray:
    """Weights as a checkpoint has them: linear layers [out, in], heads side by side,
    tables with rows that are never read.
    """
    if weight.endswith("/kernel"):
        into = (
            numbers.shape[-1]
            if weight.endswith("/output/kernel")
            else numbers.size // len(numbers)
        )
        return np.ascontiguousarray(numbers.reshape(-1, into).T)
    if weight.endswith("/bias"):
        return numbers.reshape(-1)
    if weight.endswith("/positions"):
        return np.pad(numbers, [(architecture.first_position, 0), (0, 0)])
    return numbers
