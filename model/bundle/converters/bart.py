"""BART (Lewis et al. 2020).

A post-norm Transformer with learned positions and a norm after the embeddings.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    activation,
    attention_names,
)
from precis.model.network.config import StackConfig, TransformerConfig


def bart_config(settings: Mapping[str, Any]) -> TransformerConfig:
    """The network that a config.json describes."""
    return sized_config(
        settings,
        pad_id=settings.get("pad_token_id", 1),
        positions="learned",
        embedding_norm=True,
    )


def sized_config(settings: Mapping[str, Any], **kind: Any) -> TransformerConfig:
    """A network of the sizes in a config.json with the fields of BART.

    Args:
      settings: config.json.
      **kind: the fields of `StackConfig` in which BART and PEGASUS differ.
    """
    is_tied = settings.get("tie_word_embeddings", True)
    positions = settings["max_position_embeddings"]
    stack = {
        "vocabulary_size": settings["vocab_size"],
        "width": settings["d_model"],
        "dropout": settings.get("dropout", 0.1),
        "max_source_tokens": positions,
        "activation": activation(settings, "activation_function"),
        "scaled_embedding": settings.get("scale_embedding", False),
        "norm_epsilon": 1e-5,
        **kind,
    }
    encoder = {
        "feed_forward": settings["encoder_ffn_dim"],
        "heads": settings["encoder_attention_heads"],
    }
    decoder = {
        "feed_forward": settings["decoder_ffn_dim"],
        "heads": settings["decoder_attention_heads"],
    }
    return TransformerConfig(
        **stack,
        **encoder,
        encoder_layers=settings["encoder_layers"],
        decoder_layers=settings["decoder_layers"],
        decoder_stack=None if decoder == encoder else StackConfig(**stack, **decoder),
        tied_output=is_tied,
        logits_bias=is_tied,  # A separate output layer has its own bias.
        pointer=False,
        max_target_tokens=positions - 1,  # The start token takes a position.
    )


_PARTS = ("q_proj", "k_proj", "v_proj", "out_proj")

BART = CheckpointArchitecture(
    network=bart_config,
    names={
        "embedding/table": "shared.weight",
        "embedding/logits_bias": "final_logits_bias",
        "output_layer/kernel": "lm_head.weight",
        "output_layer/bias": "final_logits_bias",
        "source_input/positions": "encoder.embed_positions.weight",
        "source_input/norm": "encoder.layernorm_embedding",
        **attention_names("encoder_#/attention", "encoder.layers.#.self_attn", _PARTS),
        "encoder_#/attention_residual/norm": "encoder.layers.#.self_attn_layer_norm",
        "encoder_#/feed_forward/inner": "encoder.layers.#.fc1",
        "encoder_#/feed_forward/outer": "encoder.layers.#.fc2",
        "encoder_#/feed_forward_residual/norm": "encoder.layers.#.final_layer_norm",
        "target_input/positions": "decoder.embed_positions.weight",
        "target_input/norm": "decoder.layernorm_embedding",
        **attention_names(
            "decoder_#/self_attention", "decoder.layers.#.self_attn", _PARTS
        ),
        "decoder_#/self_residual/norm": "decoder.layers.#.self_attn_layer_norm",
        **attention_names(
            "decoder_#/cross_attention", "decoder.layers.#.encoder_attn", _PARTS
        ),
        "decoder_#/cross_residual/norm": "decoder.layers.#.encoder_attn_layer_norm",
        "decoder_#/feed_forward/inner": "decoder.layers.#.fc1",
        "decoder_#/feed_forward/outer": "decoder.layers.#.fc2",
        "decoder_#/feed_forward_residual/norm": "decoder.layers.#.final_layer_norm",
    },
    prefix="model.",
    embedding=(
        "shared.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.weight",
    ),
    optional=("final_logits_bias",),
    ignored=("encoder.version", "decoder.version"),
    first_position=2,
)
