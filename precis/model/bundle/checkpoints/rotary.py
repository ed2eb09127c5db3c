"""Checkpoints with rotary positions: encoders, language models that continue a prompt,
and an encoder-decoder.

- ModernBERT (Warner et al. 2024), and the encoders of Ettin (Weller et al. 2025):
  without biases. In published checkpoints every third block attends to the whole text,
  the others to 64 tokens on either side. The attention of the first block reads the
  norm of the embeddings.
- Llama (Dubey et al. 2024), including SmolLM2, and Qwen2 and Qwen3 (Yang et al. 2025):
  grouped keys and values, norms that only scale. Qwen2 has biases in its attention,
  Qwen3 norms of queries and keys.
- The text part of T5Gemma 2 (Zhang et al. 2025, arXiv:2512.14856): its decoder reads
  source and target in a single attention. It has the blocks of Gemma 3: norms of
  queries and keys, norms before and after each sublayer, blocks that read a window of
  the text. The scales of norms are stored minus 1. The vision tower and the embedding
  of the token after an image are not read.

All are pre-norm Transformers with a gated feed-forward network.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.checkpoints.bert import BERT
from precis.model.bundle.checkpoints.family import (
    GATED,
    HIDDEN,
    Family,
    Field,
    block_names,
    check_known,
    read_fields,
)
from precis.model.errors import DataError
from precis.model.network.config import DecoderOnlyConfig
from precis.model.tokenization.prompts import TEMPLATE, prompt_parts

_SETTINGS_FILE, _TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
CHAT_FILES = (_SETTINGS_FILE, _TEMPLATE_FILE)
_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
_LETTERS = {_GLOBAL: "g", _LOCAL: "l"}
# Maximum tokens, even if a checkpoint has more positions: memory grows with the length
# of a source, and with the square of the length of a prompt.
_SOURCE_TOKENS, _TARGET_TOKENS = 4096, 1024
_SERVED = "serve it with vLLM or llama.cpp: `bundle=openai://HOST:PORT/v1#MODEL`"
_SUBLAYERS = ("self_attn", "feedforward")  # in names of T5Gemma 2
_SCALING = ("factor", "low_freq_factor", "high_freq_factor")
_LENGTH = "original_max_position_embeddings"
_BLOCKS = {"positions": "rotary", "norm_first": True, "gated_feed_forward": True}
_RMS_BLOCKS = {**_BLOCKS, "rms_norm": True, "dropout": 0.0}
# The blocks of Llama and of Gemma; %s is for the names of their norms.
_QK_GATED = GATED + "attention/{query,key}_norm"
_STORED = "self_attn.{q,k,v,o}_proj %s mlp.{gate,up,down}_proj %s self_attn.{q,k}_norm"


def _rotary(settings: Mapping[str, Any], kind: str = "") -> dict[str, Any]:
    """The settings of rotary positions, for a kind of layers if kinds differ. Before
    transformers 5 they were in two fields.
    """
    stored = settings.get("rope_parameters") or {}
    rotary = {**(settings.get("rope_scaling") or {})}
    rotary |= (stored.get(kind) or {}) if kind else stored
    return {**rotary, "rope_type": rotary.get("rope_type") or rotary.get("type")}


def _windows(
    settings: Mapping[str, Any], default: list[str], **older: tuple[str, float]
) -> dict[str, Any]:
    """The fields of blocks that read the whole text or a window.

    Args:
      settings: the settings of a stack.
      default: the kinds of its layers if the file does not name them.
      **older: for each theta, by its field in a network, its name before transformers 5
          and its default.
    """
    kinds = settings.get("layer_types") or default
    if len(kinds) != len(default) or not {*kinds} <= {*_LETTERS}:
        raise DataError(
            f"config.json: layer_types is {kinds}, but must name {_GLOBAL} or "
            f"{_LOCAL} for each of the {len(default)} layers; download it again"
        )
    fields = {"reach": "".join(_LETTERS[kind] for kind in kinds)}
    for kind, (here, (there, theta)) in zip(_LETTERS, older.items(), strict=True):
        rotary = _rotary(settings, kind)
        check_known(rotary, {"rope_type": ("default",)})
        fields[here] = rotary.get("rope_theta", settings.get(there, theta))
    return fields


def _read_modernbert(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the fields of transformers 4.48 and of version 5."""
    layers = settings["num_hidden_layers"]
    whole = range(0, layers, settings.get("global_attn_every_n_layers", 3))
    fields = _windows(
        settings,
        [_GLOBAL if layer in whole else _LOCAL for layer in range(layers)],
        rotary_base=("global_rope_theta", 160_000.0),
        local_rotary_base=("local_rope_theta", 10_000.0),
    )
    theta = float(fields["rotary_base"])
    # Null means the theta of the other layers.
    local_theta = float(fields["local_rotary_base"] or theta)
    return {
        **fields,
        "rotary_base": theta,
        "local_rotary_base": local_theta,
        "window": settings.get("local_attention", 128) // 2 * 2 + 1,
    }


MODERNBERT = Family(
    title="ModernBERT",
    fields=(
        *BERT.fields,
        Field("pad_id", "pad_token_id", 50283),
        Field("dropout", "mlp_dropout", 0.0),
        Field("activation", "hidden_activation", "gelu"),
        Field("norm_epsilon", "norm_eps", 1e-5),
        Field("norm_bias", "norm_bias", False),
        # Biases in all linear layers or in none; others are missing or unexpected.
        Field("biases", "attention_bias", False),
    ),
    fixed={
        **_BLOCKS,
        "first_norm": False,
        "embedding_norm": True,
        "scaled_embedding": False,
    },
    read=_read_modernbert,
    names={
        "embedding/table": "embeddings.tok_embeddings.weight",
        "source_input/norm": "embeddings.norm",
        **block_names(
            "encoder_#/",
            "layers.#.",
            GATED,
            "attn.{Wqkv.query,Wqkv.key,Wqkv.value,Wo} attn_norm "
            "mlp.{Wi.input,Wi.gate,Wo} mlp_norm",
        ),
        "encoder_norm": "final_norm",
    },
    prefix="model.",
    ignored=r"(head|decoder|classifier)\.",
    joined={"Wqkv": ("query", "key", "value"), "Wi": ("input", "gate")},
)


def _read_llama(settings: Mapping[str, Any]) -> dict[str, Any]:
    positions = settings.get("max_position_embeddings", 2048)
    rotary = _rotary(settings)
    has_biases = bool(settings.get("attention_bias"))
    other_layers = {*(settings.get("layer_types") or ())} - {_GLOBAL}
    known = {
        "rope_type": ("default", "llama3"),
        "partial_rotary_factor": (1,),
        "use_sliding_window": (False,),
        "mlp_bias": sorted({False, has_biases}),
        "layer_types": (_GLOBAL,),
    }
    layers = {"layer_types": min(other_layers, default=None)}
    check_known({**settings, **rotary, **layers}, known, _SERVED)
    scaling: tuple[float, ...] = ()
    if rotary["rope_type"] == "llama3":
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


LLAMA = Family(
    title="Llama",
    class_name="LlamaForCausalLM",
    config=DecoderOnlyConfig,
    is_general=True,
    fields=(
        *HIDDEN,
        Field("layers", "num_hidden_layers"),
        Field("kv_heads", "num_key_value_heads", None),
        Field("head_width", "head_dim", None),
        Field("activation", "hidden_act", "silu"),
        Field("norm_epsilon", "rms_norm_eps", 1e-6),
        Field("tied_output", "tie_word_embeddings", False),
    ),
    fixed={**_RMS_BLOCKS, "scaled_embedding": False, "continues_source": True},
    read=_read_llama,
    names={
        "embedding/table": "embed_tokens.weight",
        "output_layer/kernel": "lm_head.weight",
        "output_layer/bias": "lm_head.bias",
        **block_names(
            "block_#/",
            "layers.#.",
            _QK_GATED,
            _STORED % ("input_layernorm", "post_attention_layernorm"),
        ),
        "last_norm": "norm",
    },
    prefix="model.",
    without_prefix=("lm_head.weight",),
    embedding=("embed_tokens.weight", "lm_head.weight"),
    # Here either all linear layers have biases or none; missing biases are zero.
    omitted=r"(layers\.\d+\.(mlp\.\w+|self_attn\.o_proj)|lm_head)\.bias",
    ignored=r"layers\.\d+\.self_attn\.rotary_emb\.",
)
QWEN2 = dataclasses.replace(
    LLAMA,
    title="Qwen2",
    class_name="Qwen2ForCausalLM",
    read=lambda settings: _read_llama({**settings, "attention_bias": True}),
)
QWEN3 = dataclasses.replace(
    LLAMA,
    title="Qwen3",
    class_name="Qwen3ForCausalLM",
    fixed={**LLAMA.fixed, "qk_norm": True},
    fields=(*LLAMA.fields, Field("head_width", "head_dim", 128)),
)
# The fields of a side of T5Gemma 2.
_SIDE_FIELDS = (
    *HIDDEN,
    Field("kv_heads", "num_key_value_heads"),
    Field("head_width", "head_dim"),
    Field("score_width", "query_pre_attn_scalar", 256),
    Field("activation", "hidden_activation", "gelu_pytorch_tanh"),
    Field("norm_epsilon", "rms_norm_eps", 1e-6),
)


def _read_side(side: Mapping[str, Any], vocabulary_size: int) -> dict[str, Any]:
    check_known(side, {"attention_bias": (False,), "final_logit_softcapping": (None,)})
    pattern = side.get("sliding_window_pattern", 6)
    layers = range(1, side["num_hidden_layers"] + 1)
    return {
        **read_fields(_SIDE_FIELDS, {**side, "vocab_size": vocabulary_size}),
        **_windows(
            side,
            [_LOCAL if layer % pattern else _GLOBAL for layer in layers],
            rotary_base=("rope_theta", 1e6),
            local_rotary_base=("rope_local_base_freq", 1e4),
        ),
        "window": side.get("sliding_window") or 4096,
    }


def _read_t5gemma2(settings: Mapping[str, Any]) -> dict[str, Any]:
    encoder, decoder = settings["encoder"]["text_config"], settings["decoder"]
    of_decoder = _read_side(decoder, settings["vocab_size"])
    positions = encoder.get("max_position_embeddings", 131_072)
    return {
        **_read_side(encoder, settings["vocab_size"]),
        **{f"decoder.{name}": value for name, value in of_decoder.items()},
        "pad_id": settings.get("pad_token_id") or 0,
        "encoder_layers": encoder["num_hidden_layers"],
        "decoder_layers": decoder["num_hidden_layers"],
        "max_source_tokens": min(positions, _SOURCE_TOKENS),
        "max_target_tokens": min(positions, _TARGET_TOKENS),
    }


T5GEMMA2 = Family(
    title="T5Gemma 2",
    class_name="T5Gemma2ForConditionalGeneration",
    is_general=True,
    fields=(),
    fixed={
        **_RMS_BLOCKS,
        "qk_norm": True,
        "both_norms": True,
        "biases": False,
        "merged_attention": True,
    },
    read=_read_t5gemma2,
    names={
        "embedding/table": "shared.weight",  # not in the files, which have copies
        "output_layer/kernel": "lm_head.weight",
        **block_names(
            "{encoder,decoder}_#/",
            "{encoder,decoder}.layers.#.",
            _QK_GATED.replace("/norm", "/{norm,update_norm}"),
            _STORED % tuple(f"{{pre,post}}_{part}_layernorm" for part in _SUBLAYERS),
        ),
        "encoder_norm": "encoder.norm",
        "decoder_norm": "decoder.norm",
    },
    prefix="model.",
    ignored=(
        r"encoder\.(vision_tower|multi_modal_projector)\."
        r"|(en|de)coder\.embed_tokens\.eoi_embedding"
    ),
    norm_offset=1.0,
    older={"lm_head.out_proj.weight": "lm_head.weight"},  # in all checkpoints
)


def read_chat(folder: str) -> dict[str, Any]:
    """Reads the special tokens of a checkpoint by name, and its chat template, if any,
    as `chat_template`.

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
    way_out = (
        "remove that part of the template, or the whole template to use a plain prompt"
    )
    with files.naming_damage(folder, way_out=way_out):
        if isinstance(template, list):  # some checkpoints have several
            template = {each["name"]: each["template"] for each in template}["default"]
        if files.exists(path):
            template = files.read_bytes(path).decode()
        if template:
            chat[TEMPLATE] = template
            prompt_parts(chat, "")
    return chat
