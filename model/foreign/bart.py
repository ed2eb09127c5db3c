"""BART (Lewis et al. 2020): a post-norm Transformer with learned positions and a norm behind the embeddings."""

from collections.abc import Mapping
from typing import Any

from model.config import NetworkConfig
from model.foreign.architecture import Architecture, activation


def network_config(settings: Mapping[str, Any]) -> NetworkConfig:
    """The network that a config.json describes."""
    is_tied, positions = settings.get("tie_word_embeddings", True), settings["max_position_embeddings"]
    return NetworkConfig(
        vocabulary_size=settings["vocab_size"],
        pad_id=settings.get("pad_token_id", 1),
        encoder_layers=settings["encoder_layers"],
        decoder_layers=settings["decoder_layers"],
        width=settings["d_model"],
        feed_forward=settings["encoder_ffn_dim"],
        heads=settings["encoder_attention_heads"],
        decoder_feed_forward=settings["decoder_ffn_dim"],
        decoder_heads=settings["decoder_attention_heads"],
        dropout=settings.get("dropout", 0.1),
        tied_output=is_tied,
        pointer=False,
        max_source_tokens=positions,
        max_target_tokens=positions - 1,  # the start token takes a position
        positions="learned",
        activation=activation(settings, "activation_function"),
        scaled_embedding=settings.get("scale_embedding", False),
        embedding_norm=True,
        logits_bias=is_tied,  # an output layer of its own has a bias already
        norm_epsilon=1e-5,
    )


def _attention(path: str, name: str) -> dict[str, str]:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    return {f"{path}/{ours}": f"{name}.{theirs}" for ours, theirs in parts.items()}


BART = Architecture(
    network=network_config,
    names={
        "embedding/table": "shared.weight",
        "embedding/logits_bias": "final_logits_bias",
        "output_layer/kernel": "lm_head.weight",
        "output_layer/bias": "final_logits_bias",
        "source_input/positions": "encoder.embed_positions.weight",
        "source_input/norm": "encoder.layernorm_embedding",
        **_attention("encoder_#/attention", "encoder.layers.#.self_attn"),
        "encoder_#/attention_residual/norm": "encoder.layers.#.self_attn_layer_norm",
        "encoder_#/feed_forward/inner": "encoder.layers.#.fc1",
        "encoder_#/feed_forward/outer": "encoder.layers.#.fc2",
        "encoder_#/feed_forward_residual/norm": "encoder.layers.#.final_layer_norm",
        "target_input/positions": "decoder.embed_positions.weight",
        "target_input/norm": "decoder.layernorm_embedding",
        **_attention("decoder_#/self_attention", "decoder.layers.#.self_attn"),
        "decoder_#/self_residual/norm": "decoder.layers.#.self_attn_layer_norm",
        **_attention("decoder_#/cross_attention", "decoder.layers.#.encoder_attn"),
        "decoder_#/cross_residual/norm": "decoder.layers.#.encoder_attn_layer_norm",
        "decoder_#/feed_forward/inner": "decoder.layers.#.fc1",
        "decoder_#/feed_forward/outer": "decoder.layers.#.fc2",
        "decoder_#/feed_forward_residual/norm": "decoder.layers.#.final_layer_norm",
    },
    prefix="model.",
    embedding=("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
    optional=("final_logits_bias",),
    ignored=("encoder.version", "decoder.version"),
    first_position=2,
)
