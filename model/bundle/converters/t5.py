"""T5 (Raffel et al. 2020), Flan-T5 (Chung et al. 2022) and mT5 (Xue et al. 2021).

Pre-norm Transformers without biases. Norms only scale and attention scores are not
scaled. Relative positions add a bias to the scores, which all blocks of the encoder
share, and likewise all blocks of the decoder.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    activation,
    attention_names,
)
from precis.model.errors import DataError
from precis.model.network.config import TransformerConfig

# The source length of the published checkpoints in training. Positions are relative, so
# longer sources are possible.
_TRAINED_TOKENS = 512


def t5_config(settings: Mapping[str, Any]) -> TransformerConfig:
    """The network that a config.json describes."""
    tokens = settings.get("n_positions") or _TRAINED_TOKENS
    gating, _, name = settings.get("feed_forward_proj", "relu").rpartition("-")
    if gating not in ("", "gated"):
        raise DataError(
            f"config.json: feed_forward_proj is {settings['feed_forward_proj']!r}, "
            "and only an activation, or gated- and an activation, can be imported"
        )
    # Older files do not state whether the output is scaled. It is scaled where the
    # output layer is the embedding table.
    is_scaled = settings.get("scale_decoder_outputs")
    if is_scaled is None:
        is_scaled = settings.get("tie_word_embeddings") is not False
    return TransformerConfig(
        vocabulary_size=settings["vocab_size"],
        pad_id=settings.get("pad_token_id", 0),
        encoder_layers=settings["num_layers"],
        decoder_layers=settings.get("num_decoder_layers") or settings["num_layers"],
        width=settings["d_model"],
        feed_forward=settings["d_ff"],
        heads=settings["num_heads"],
        head_width=settings["d_kv"],
        dropout=settings.get("dropout_rate", 0.1),
        tied_output=True,  # Unless the checkpoint holds a separate output layer.
        scaled_output=is_scaled,
        pointer=False,
        max_source_tokens=tokens,
        max_target_tokens=tokens,
        positions="relative",
        relative_buckets=settings.get("relative_attention_num_buckets", 32),
        relative_distance=settings.get("relative_attention_max_distance", 128),
        # Versions with a gate call the approximation of gelu "gelu".
        activation=activation(
            {"feed_forward_proj": "gelu_new" if gating and name == "gelu" else name},
            "feed_forward_proj",
        ),
        gated_feed_forward=bool(gating),
        biases=False,
        norm_first=True,
        rms_norm=True,
        norm_epsilon=settings.get("layer_norm_epsilon", 1e-6),
        scaled_scores=False,
        scaled_embedding=False,
    )


def mt5_config(settings: Mapping[str, Any]) -> TransformerConfig:
    """The network that a config.json of mT5 describes; its output is never scaled."""
    return t5_config(
        {"feed_forward_proj": "gated-gelu", **settings, "scale_decoder_outputs": False}
    )


def _feed_forward(side: str, layer: int) -> dict[str, str]:
    name = f"{side}.block.#.layer.{layer}"
    return {
        f"{side}_#/feed_forward/inner": f"{name}.DenseReluDense.wi_0",
        f"{side}_#/feed_forward/gate": f"{name}.DenseReluDense.wi_1",
        f"{side}_#/feed_forward/outer": f"{name}.DenseReluDense.wo",
        f"{side}_#/feed_forward_residual/norm": f"{name}.layer_norm",
    }


_PARTS = ("q", "k", "v", "o")
_RELATIVE = "relative_attention_bias.weight"

T5 = CheckpointArchitecture(
    network=t5_config,
    names={
        "embedding/table": "shared.weight",
        "output_layer/kernel": "lm_head.weight",
        "encoder_positions/table": f"encoder.block.0.layer.0.SelfAttention.{_RELATIVE}",
        **attention_names(
            "encoder_#/attention", "encoder.block.#.layer.0.SelfAttention", _PARTS
        ),
        "encoder_#/attention_residual/norm": "encoder.block.#.layer.0.layer_norm",
        **_feed_forward("encoder", 1),
        "encoder_norm": "encoder.final_layer_norm",
        "decoder_positions/table": f"decoder.block.0.layer.0.SelfAttention.{_RELATIVE}",
        **attention_names(
            "decoder_#/self_attention", "decoder.block.#.layer.0.SelfAttention", _PARTS
        ),
        "decoder_#/self_residual/norm": "decoder.block.#.layer.0.layer_norm",
        **attention_names(
            "decoder_#/cross_attention",
            "decoder.block.#.layer.1.EncDecAttention",
            _PARTS,
        ),
        "decoder_#/cross_residual/norm": "decoder.block.#.layer.1.layer_norm",
        **_feed_forward("decoder", 2),
        "decoder_norm": "decoder.final_layer_norm",
    },
    prefix="",
    embedding=(
        "shared.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.weight",
    ),
    # All blocks of a side share the table of the first. Older files repeat it for each
    # block, and hold tables of the cross-attention that no network reads.
    ignored=(
        f"encoder.block.#.layer.#.SelfAttention.{_RELATIVE}",
        f"decoder.block.#.layer.#.SelfAttention.{_RELATIVE}",
        f"decoder.block.#.layer.#.EncDecAttention.{_RELATIVE}",
    ),
    older={"DenseReluDense.wi.weight": "DenseReluDense.wi_0.weight"},
)

MT5 = T5._replace(network=mt5_config)
