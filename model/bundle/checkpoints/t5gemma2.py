"""The text part of T5Gemma 2 (Zhang et al. 2025, arXiv:2512.14856).

An encoder-decoder whose decoder reads source and target in one attention, with the
blocks of Gemma 3: norms of queries and keys, norms before and behind each sublayer,
grouped keys and values, and blocks that read a window of the text. All scales of norms
are stored less 1. Its vision tower is not read.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import Family, activation, attention_names
from precis.model.bundle.checkpoints.modernbert import (
    GLOBAL,
    LOCAL,
    reach_of,
    theta_of,
)
from precis.model.errors import DataError

# At most so much of the positions is read or written: the memory of a source grows with
# its length.
_SOURCE_TOKENS, _TARGET_TOKENS = 4096, 1024
_PARTS = ("q_proj", "k_proj", "v_proj", "o_proj")


def _stack(side: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one side."""
    for name, known in (("attention_bias", False), ("final_logit_softcapping", None)):
        if (value := side.get(name) or known) != known:
            raise DataError(
                f"config.json: {name} is {value!r}, and only {known} is computed here; "
                "it cannot be imported"
            )
    pattern = side.get("sliding_window_pattern", 6)
    kinds = [
        LOCAL if (layer + 1) % pattern else GLOBAL
        for layer in range(side["num_hidden_layers"])
    ]
    return {
        "width": side["hidden_size"],
        "feed_forward": side["intermediate_size"],
        "heads": side["num_attention_heads"],
        "kv_heads": side["num_key_value_heads"],
        "head_width": side["head_dim"],
        "score_width": side.get("query_pre_attn_scalar", 256),
        "activation": activation(
            side.get("hidden_activation", "gelu_pytorch_tanh"), "hidden_activation"
        ),
        "norm_epsilon": side.get("rms_norm_eps", 1e-6),
        "reach": reach_of(side, kinds),
        "window": side.get("sliding_window") or 4096,
        "rotary_base": theta_of(side, GLOBAL, "rope_theta", 1e6),
        "local_rotary_base": theta_of(side, LOCAL, "rope_local_base_freq", 1e4),
    }


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    encoder, decoder = settings["encoder"]["text_config"], settings["decoder"]
    positions = encoder.get("max_position_embeddings", 131_072)
    return {
        **_stack(encoder),
        **{f"decoder.{name}": value for name, value in _stack(decoder).items()},
        "vocabulary_size": settings["vocab_size"],
        "pad_id": settings.get("pad_token_id") or 0,
        "encoder_layers": encoder["num_hidden_layers"],
        "decoder_layers": decoder["num_hidden_layers"],
        "unscaled_id": settings["encoder"].get("eoi_token_index", 256_000),
        "max_source_tokens": min(positions, _SOURCE_TOKENS),
        "max_target_tokens": min(positions, _TARGET_TOKENS),
    }


def _names(side: str) -> dict[str, str]:
    block = f"{side}.layers.#"
    return {
        **attention_names(f"{side}_#/attention", f"{block}.self_attn", *_PARTS),
        f"{side}_#/attention/query_norm": f"{block}.self_attn.q_norm",
        f"{side}_#/attention/key_norm": f"{block}.self_attn.k_norm",
        f"{side}_#/attention_residual/norm": f"{block}.pre_self_attn_layernorm",
        f"{side}_#/attention_residual/update_norm": (
            f"{block}.post_self_attn_layernorm"
        ),
        f"{side}_#/feed_forward/inner": f"{block}.mlp.gate_proj",
        f"{side}_#/feed_forward/gate": f"{block}.mlp.up_proj",
        f"{side}_#/feed_forward/outer": f"{block}.mlp.down_proj",
        f"{side}_#/feed_forward_residual/norm": f"{block}.pre_feedforward_layernorm",
        f"{side}_#/feed_forward_residual/update_norm": (
            f"{block}.post_feedforward_layernorm"
        ),
        f"{side}_norm": f"{side}.norm",
    }


T5GEMMA2 = Family(
    title="T5Gemma 2",
    class_name="T5Gemma2ForConditionalGeneration",
    fields=(),
    fixed={
        "positions": "rotary",
        "qk_norm": True,
        "norm_first": True,
        "both_norms": True,
        "rms_norm": True,
        "biases": False,
        "gated_feed_forward": True,
        "merged_attention": True,
        "dropout": 0.0,
        "pointer": False,
    },
    read=_read,
    names={
        "embedding/table": "shared.weight",
        "embedding/unscaled": "encoder.embed_tokens.eoi_embedding",
        "output_layer/kernel": "lm_head.out_proj.weight",
        **_names("encoder"),
        **_names("decoder"),
    },
    prefix="model.",
    embedding=(
        "shared.weight",  # No file has it.
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
        "lm_head.out_proj.weight",
    ),
    ignored=(
        r"encoder\.(vision_tower|multi_modal_projector)\."
        r"|decoder\.embed_tokens\.eoi_embedding"
    ),
    norm_offset=1.0,
)
