"""The text part of T5Gemma 2 (Zhang et al. 2025, arXiv:2512.14856).

An encoder-decoder whose decoder reads source and target in one attention, with the
blocks of Gemma 3: norms of queries and keys, norms before and behind each sublayer,
grouped keys and values, and blocks that read a window of the text. All scales of norms
are stored less 1. Its vision tower is not read, nor the embedding of the token behind
an image.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import Family, activation
from precis.model.bundle.checkpoints.llama import block_names
from precis.model.bundle.checkpoints.modernbert import GLOBAL, LOCAL, reach_of, theta_of
from precis.model.errors import DataError

# At most so much of the positions is read or written: the memory of a source grows with
# its length.
_SOURCE_TOKENS, _TARGET_TOKENS = 4096, 1024


def _stack(side: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one side."""
    for name, known in (("attention_bias", False), ("final_logit_softcapping", None)):
        if (value := side.get(name) or known) != known:
            raise DataError(
                f"config.json: {name} is {value!r}, and only {known} is computed here; "
                "it cannot be imported"
            )
    pattern = side.get("sliding_window_pattern", 6)
    layers = range(1, side["num_hidden_layers"] + 1)
    kinds = [LOCAL if layer % pattern else GLOBAL for layer in layers]
    function = side.get("hidden_activation", "gelu_pytorch_tanh")
    return {
        "width": side["hidden_size"],
        "feed_forward": side["intermediate_size"],
        "heads": side["num_attention_heads"],
        "kv_heads": side["num_key_value_heads"],
        "head_width": side["head_dim"],
        "score_width": side.get("query_pre_attn_scalar", 256),
        "activation": activation(function, "hidden_activation"),
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
        "max_source_tokens": min(positions, _SOURCE_TOKENS),
        "max_target_tokens": min(positions, _TARGET_TOKENS),
    }


def _names(side: str) -> dict[str, str]:
    path, block = f"{side}_#", f"{side}.layers.#"
    names = {**block_names(path, block), f"{side}_norm": f"{side}.norm"}
    for here, there in (("attention", "self_attn"), ("feed_forward", "feedforward")):
        names[f"{path}/{here}_residual/norm"] = f"{block}.pre_{there}_layernorm"
        names[f"{path}/{here}_residual/update_norm"] = f"{block}.post_{there}_layernorm"
    return names


T5GEMMA2 = Family(
    title="T5Gemma 2",
    class_name="T5Gemma2ForConditionalGeneration",
    is_general=True,
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
        r"|(en|de)coder\.embed_tokens\.eoi_embedding"
    ),
    norm_offset=1.0,
)
