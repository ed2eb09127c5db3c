"""Llama (Dubey et al. 2024), with it SmolLM2, and Qwen2 and Qwen3 (Yang et al. 2025):
language models that continue a prompt.

Pre-norm Transformers with rotary positions, grouped keys and values, norms that only
scale and a gated feed-forward network. Qwen2 has biases in its attention, Qwen3 norms
of queries and keys.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.checkpoints.family import Family, Field, attention_names
from precis.model.errors import DataError
from precis.model.network.config import DecoderOnlyConfig
from precis.model.tokenization.prompts import TEMPLATE, prompt_parts

_SETTINGS_FILE, _TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
CHAT_FILES = (_SETTINGS_FILE, _TEMPLATE_FILE)
# At most so much of the positions is read or written: the memory of a source grows with
# the square of its length.
_SOURCE_TOKENS, _TARGET_TOKENS = 4096, 1024
_PARTS = ("q_proj", "k_proj", "v_proj", "o_proj")
_FULL = "full_attention"
_SCALING = ("factor", "low_freq_factor", "high_freq_factor")
_LENGTH = "original_max_position_embeddings"


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    positions = settings.get("max_position_embeddings", 2048)
    # Until transformers 5, rotary positions had two fields.
    rotary = {**(settings.get("rope_scaling") or {})}
    rotary |= settings.get("rope_parameters") or {}
    kind = rotary.get("rope_type") or rotary.get("type") or "default"
    has_biases = bool(settings.get("attention_bias"))
    other_layers = {*(settings.get("layer_types") or ())} - {_FULL}
    for name, value, known in (
        ("rope_type", kind, ("default", "llama3")),
        ("partial_rotary_factor", rotary.get("partial_rotary_factor", 1), (1,)),
        ("use_sliding_window", bool(settings.get("use_sliding_window")), (False,)),
        ("mlp_bias", bool(settings.get("mlp_bias")), (False, has_biases)),
        ("layer_types", min(other_layers, default=_FULL), (_FULL,)),
    ):
        if value not in known:
            raise DataError(
                f"config.json: {name} is {value!r}, and only "
                f"{' or '.join(map(repr, dict.fromkeys(known)))} is computed here; "
                "serve it with vLLM or llama.cpp: --bundle openai://HOST:PORT/v1#MODEL"
            )
    scaling: tuple[float, ...] = ()
    if kind == "llama3":
        scaling = (*(rotary[name] for name in _SCALING), rotary.get(_LENGTH, positions))
    theta = rotary.get("rope_theta") or settings.get("rope_theta") or 10_000
    target = min(_TARGET_TOKENS, positions // 2)
    return {
        "pad_id": max(settings.get("pad_token_id") or 0, 0),
        "rotary_base": float(theta),
        "rotary_scaling": scaling,
        "biases": has_biases,
        "max_source_tokens": max(1, min(_SOURCE_TOKENS, positions - target)),
        "max_target_tokens": max(1, target),
    }


def block_names(path: str, name: str) -> dict[str, str]:
    """The names of the layers that a block of Llama or of Gemma has, by path; `path`
    and `name` are those of the block.
    """
    return {
        **attention_names(f"{path}/attention", f"{name}.self_attn", *_PARTS),
        f"{path}/attention/query_norm": f"{name}.self_attn.q_norm",
        f"{path}/attention/key_norm": f"{name}.self_attn.k_norm",
        f"{path}/feed_forward/inner": f"{name}.mlp.gate_proj",
        f"{path}/feed_forward/gate": f"{name}.mlp.up_proj",
        f"{path}/feed_forward/outer": f"{name}.mlp.down_proj",
    }


LLAMA = Family(
    title="Llama",
    class_name="LlamaForCausalLM",
    config=DecoderOnlyConfig,
    is_general=True,
    fields=(
        Field("vocabulary_size", "vocab_size"),
        Field("width", "hidden_size"),
        Field("layers", "num_hidden_layers"),
        Field("feed_forward", "intermediate_size"),
        Field("heads", "num_attention_heads"),
        Field("kv_heads", "num_key_value_heads", None),
        Field("head_width", "head_dim", None),
        Field("activation", "hidden_act", "silu"),
        Field("norm_epsilon", "rms_norm_eps", 1e-6),
        Field("tied_output", "tie_word_embeddings", False),
    ),
    fixed={
        "positions": "rotary",
        "gated_feed_forward": True,
        "norm_first": True,
        "rms_norm": True,
        "scaled_embedding": False,
        "dropout": 0.0,
        "pointer": False,
        "continues_source": True,
    },
    read=_read,
    names={
        "embedding/table": "embed_tokens.weight",
        "output_layer/kernel": "lm_head.weight",
        "output_layer/bias": "lm_head.bias",
        **block_names("block_#", "layers.#"),
        "block_#/attention_residual/norm": "layers.#.input_layernorm",
        "block_#/feed_forward_residual/norm": "layers.#.post_attention_layernorm",
        "last_norm": "norm",
    },
    prefix="model.",
    without_prefix=("lm_head.weight",),
    embedding=("embed_tokens.weight", "lm_head.weight"),
    # All linear layers here have biases or none; those that are missing are zero.
    omitted=r"(layers\.\d+\.(mlp\.\w+|self_attn\.o_proj)|lm_head)\.bias",
    ignored=r"layers\.\d+\.self_attn\.rotary_emb\.",
)


def _read_qwen2(settings: Mapping[str, Any]) -> dict[str, Any]:
    return _read({**settings, "attention_bias": True})


QWEN2 = dataclasses.replace(
    LLAMA, title="Qwen2", class_name="Qwen2ForCausalLM", read=_read_qwen2
)
QWEN3 = dataclasses.replace(
    LLAMA,
    title="Qwen3",
    class_name="Qwen3ForCausalLM",
    fixed={**LLAMA.fixed, "qk_norm": True},
    fields=(*LLAMA.fields, Field("head_width", "head_dim", 128)),
)


def read_chat(folder: str) -> dict[str, Any]:
    """The chat template of a checkpoint and its special tokens, by name; without a
    template nothing is under `chat_template`.

    Raises:
      DataError: a file is damaged, or the template cannot be filled in.
    """
    way_out = "download the checkpoint again"
    path = files.join(folder, _SETTINGS_FILE)
    settings = files.read_object(path, way_out=way_out) if files.exists(path) else {}
    chat = {
        name: value["content"] if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name.endswith("_token") and value and not isinstance(value, bool)
    }
    template = settings.get(TEMPLATE)
    path = files.join(folder, _TEMPLATE_FILE)
    way_out = "take that part out of the template, or all of it for a plain prompt"
    with files.naming_damage(folder, way_out=way_out):
        if isinstance(template, list):  # Some checkpoints have several, by name.
            template = {each["name"]: each["template"] for each in template}["default"]
        if files.exists(path):
            template = files.read_bytes(path).decode()
        if template:
            chat[TEMPLATE] = template
            prompt_parts(chat, "")
    return chat
