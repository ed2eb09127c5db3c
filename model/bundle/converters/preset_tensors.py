"""The tensors of a keras-hub preset, renamed and reshaped to those of a checkpoint.

A preset names a tensor by the path of its layer. The converter finds the same weight in
a network here and names the tensor as a checkpoint of Hugging Face does. For BART:

    preset        [D, H, D / H]
        layers/transformer_encoder_3/_self_attention_layer/query_dense/vars/0
    here          [D, D]
        encoder_3/attention/query/kernel
    checkpoint    [D, D], transposed
        encoder.layers.3.self_attn.q_proj.weight
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    tensor_name,
)
from precis.model.bundle.converters.tensors import Tensor
from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig, TransformerConfig

# The path of a tensor: a container, the path of the layer, the number of the weight.
_PATH = re.compile(r"[^/]+/(.+)/vars/([01])")
# In the tables below, paths of layers are without leading underscores of their parts.
# Layers without a counterpart here -> their names in a checkpoint.
_NAMES = {"embedding": "embeddings.token_type_embeddings", "dense": "pooler.dense"}
# Layers that occur once -> their paths here.
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
# Parts of the layers of a Transformer -> their paths here.
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


def preset_tensors(
    tensors: Mapping[str, Tensor],
    config: TransformerConfig | EncoderConfig,
    architecture: CheckpointArchitecture[Any],
) -> dict[str, Tensor]:
    """The tensors of a preset, named and shaped as in a checkpoint of Hugging Face.

    Args:
      tensors: by their paths in the preset. A tensor that no such network has keeps its
          path, and `assign` refuses it.
      config: the configuration of the network.
      architecture: gives the names in a checkpoint.

    Raises:
      DataError: a tensor does not hold floating-point numbers.
    """
    layers = _layers(config)
    renamed: dict[str, Tensor] = {}
    for path, tensor in tensors.items():
        match = _PATH.fullmatch(path)
        layer = match[1].replace("/_", "/") if match else path
        number = int(match[2]) if match else 0
        if layer in _NAMES:
            renamed[f"{_NAMES[layer]}.{('weight', 'bias')[number]}"] = tensor
            continue
        weight = _weight_path(layers[layer], number) if layer in layers else path
        try:
            values = _reshape(tensor.numbers(), weight, architecture)
            renamed[tensor_name(weight, architecture)] = Tensor(
                "F32", values.shape, values.tobytes()
            )
        except KeyError:  # No weight here has such a path.
            renamed[path] = tensor
        except ValueError as error:
            raise DataError(
                f"{path}: {error}, and only floating-point weights are read; "
                "save the preset in one"
            ) from error
    # RoBERTa's vector of the first of two texts is zero, and a preset leaves it out.
    for name in architecture.added.values():
        zeros = Tensor("F32", (1, config.width), bytes(4 * config.width))
        renamed.setdefault(name, zeros)
    return renamed


def _layers(config: TransformerConfig | EncoderConfig) -> dict[str, str]:
    """Path of a layer in a preset -> path of the layer here, or of its only weight."""
    encoder_layers = config.encoder_layers
    decoder_layers = 0
    if isinstance(config, TransformerConfig):
        decoder_layers = config.decoder_layers
    encoder = {"self": ("attention", "attention_residual")}
    decoder = {
        "self": ("self_attention", "self_residual"),
        "cross": ("cross_attention", "cross_residual"),
    }
    dense = "{}_attention_layer/{}_dense"
    projector = "{}_attention/{}_projector"
    t5 = "t5_transformer_layer"
    return {
        **_SINGLE,
        **_numbered(
            "transformer_encoder",
            "encoder",
            range(encoder_layers),
            {**_attention_parts(dense, encoder), **_FEED_FORWARD},
        ),
        **_numbered(
            "transformer_decoder",
            "decoder",
            range(decoder_layers),
            {**_attention_parts(dense, decoder), **_FEED_FORWARD},
        ),
        # T5 numbers the layers of the decoder after those of the encoder. The first
        # layer of each holds the relative positions.
        **_numbered(
            t5,
            "encoder",
            range(encoder_layers),
            {**_attention_parts(projector, encoder), **_T5_FEED_FORWARD},
        ),
        **_numbered(
            t5,
            "decoder",
            range(encoder_layers, encoder_layers + decoder_layers),
            {**_attention_parts(projector, decoder), **_T5_FEED_FORWARD},
        ),
        f"{t5}/self_attention": "encoder_positions/table",
        f"{t5}_{encoder_layers}/self_attention": "decoder_positions/table",
    }


def _attention_parts(
    pattern: str, attentions: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """The parts of the attentions of a layer in a preset -> their paths here.

    Args:
      pattern: the path of a linear layer in a preset, with places for the name of the
          attention and the part.
      attentions: name of an attention in a preset -> the paths here of the attention
          and of its residual connection.
    """
    parts = {}
    for name, (attention, residual) in attentions.items():
        for part in _PARTS:
            parts[pattern.format(name, part)] = f"{attention}/{part}"
        parts[f"{name}_attention_layer_norm"] = f"{residual}/norm"
    return parts


def _numbered(
    preset_name: str, name: str, numbers: range, parts: Mapping[str, str]
) -> dict[str, str]:
    """The parts of all layers of a kind in a preset -> their paths here.

    A preset leaves out the number 0: t5_layer, t5_layer_1, t5_layer_2.

    Args:
      preset_name: the name of the layers in a preset.
      name: the name of the layers here, where they are numbered from 0.
      numbers: the numbers in the preset.
      parts: the parts of one layer.
    """
    paths = {}
    for index, number in enumerate(numbers):
        layer = f"{preset_name}_{number}" if number else preset_name
        for preset_part, part in parts.items():
            paths[f"{layer}/{preset_part}"] = f"{name}_{index}/{part}"
    return paths


def _weight_path(layer: str, number: int) -> str:
    """The path here of a weight of a layer; each kind of layer has a fixed order."""
    if layer.endswith("norm"):
        return f"{layer}/{('gamma', 'beta')[number]}"
    if layer.endswith(("/table", "/positions")):
        # The second weight of an embedding is an output layer that is not tied.
        return "output_layer/kernel" if number else layer
    return f"{layer}/{('kernel', 'bias')[number]}"


def _reshape(
    values: np.ndarray, weight: str, architecture: CheckpointArchitecture[Any]
) -> np.ndarray:
    """The values of a weight in the shape of a checkpoint.

        kernel       [in, H, out / H] or [H, in / H, out]  ->  [out, in]
        bias         [H, out / H]                          ->  [out]
        positions    rows that are never read are added at the top, as zeros

    Args:
      values: as the preset stores them.
      weight: the path of the weight here.
      architecture: gives the number of rows that are never read.
    """
    if weight.endswith("/output/kernel"):
        out = values.shape[-1]
        return np.ascontiguousarray(values.reshape(-1, out).T)
    if weight.endswith("/kernel"):
        out = values.size // len(values)
        return np.ascontiguousarray(values.reshape(-1, out).T)
    if weight.endswith("/bias"):
        return values.reshape(-1)
    if weight.endswith("/positions"):
        return np.pad(values, [(architecture.first_position, 0), (0, 0)])
    return values
