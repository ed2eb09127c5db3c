"""Encoder-decoders that write summaries; `rotary` has another.

- BART (Lewis et al. 2020): a post-norm Transformer with learned positions and a norm
  after the embeddings.
- PEGASUS (Zhang et al. 2020): a pre-norm Transformer with sinusoidal positions, all
  sines before all cosines. Its tensors have the same names as in BART.
- T5 (Raffel et al. 2020), Flan-T5 (Chung et al. 2022) and mT5 (Xue et al. 2021):
  pre-norm Transformers without biases. Norms only scale and attention scores are not
  scaled. Relative positions add a bias to the scores, which all blocks of the encoder
  share, and likewise all blocks of the decoder.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import (
    BLOCK,
    CROSS,
    GATED,
    Family,
    Field,
    activation,
    activation_name,
    block_names,
    token_ids,
)
from precis.model.errors import DataError
from precis.model.network.architectures import LAYOUTS
from precis.model.network.config import TransformerConfig

# The source length of published checkpoints in training. Positions are relative, so
# longer sources are possible.
_T5_TOKENS = 512
_T5_RELATIVE = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
_T5_NAMES = (
    "0.SelfAttention.{q,k,v,o} 0.layer_norm "
    "LAST.DenseReluDense.{wi_0,wi_1,wo} LAST.layer_norm "
    "1.EncDecAttention.{q,k,v,o} 1.layer_norm"
)


def _read_bart(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        # A separate output layer brings a bias.
        "logits_bias": settings.get("tie_word_embeddings", True),
        # The start token takes a position.
        "max_target_tokens": settings["max_position_embeddings"] - 1,
    }


def _write_bart(config: TransformerConfig) -> dict[str, Any]:
    return {
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        # Not read by transformers, but by its converter for CTranslate2.
        "normalize_before": config.norm_first,
        "normalize_embedding": config.embedding_norm,
        "max_position_embeddings": max(
            config.max_source_tokens, config.max_target_tokens + 1
        ),
    }


BART = Family(
    title="BART",
    class_name="BartForConditionalGeneration",
    defaults=token_ids(bos=0, pad=1, eos=2, decoder_start=2, forced_eos=2),
    fields=(
        Field("vocabulary_size", "vocab_size"),
        Field("pad_id", "pad_token_id", 1),
        Field("width", "d_model"),
        Field("encoder_layers", "encoder_layers"),
        Field("decoder_layers", "decoder_layers"),
        Field("feed_forward", "encoder_ffn_dim"),
        Field("decoder.feed_forward", "decoder_ffn_dim"),
        Field("heads", "encoder_attention_heads"),
        Field("decoder.heads", "decoder_attention_heads"),
        Field("dropout", "dropout", 0.1),
        Field("activation", "activation_function", "gelu"),
        Field("scaled_embedding", "scale_embedding", False),
        Field("max_source_tokens", "max_position_embeddings"),
        Field("tied_output", "tie_word_embeddings", True),
    ),
    fixed=LAYOUTS["bart"],
    read=_read_bart,
    write=_write_bart,
    names={
        "embedding/table": "shared.weight",
        "embedding/logits_bias": "final_logits_bias",
        "output_layer/kernel": "lm_head.weight",
        "output_layer/bias": "final_logits_bias",
        "source_input/positions": "encoder.embed_positions.weight",
        "source_input/norm": "encoder.layernorm_embedding",
        "target_input/positions": "decoder.embed_positions.weight",
        "target_input/norm": "decoder.layernorm_embedding",
        **block_names(
            "{encoder,decoder}_#/",
            "{encoder,decoder}.layers.#.",
            BLOCK + CROSS,
            "self_attn.{q,k,v,out}_proj self_attn_layer_norm {fc1,fc2} final_layer_norm"
            " encoder_attn.{q,k,v,out}_proj encoder_attn_layer_norm",
        ),
    },
    prefix="model.",
    without_prefix=("final_logits_bias", "lm_head.weight"),
    optional=("final_logits_bias",),
    ignored=r"(en|de)coder\.version",
    first_position=2,
)

PEGASUS = dataclasses.replace(
    BART,
    title="PEGASUS",
    class_name="PegasusForConditionalGeneration",
    defaults=token_ids(pad=0, eos=1, decoder_start=0, forced_eos=1),
    fields=(Field("pad_id", "pad_token_id", 0), *BART.fields[:1], *BART.fields[2:]),
    fixed=LAYOUTS["pegasus"],
    names={
        **BART.names,
        "encoder_norm": "encoder.layer_norm",
        "decoder_norm": "decoder.layer_norm",
    },
    # Sinusoidal positions are computed, not read.
    ignored=r"(en|de)coder\.embed_positions\.",
)


def _read_t5(settings: Mapping[str, Any]) -> dict[str, Any]:
    gating, _, name = settings.get("feed_forward_proj", "relu").rpartition("-")
    if gating not in ("", "gated"):
        raise DataError(
            f"config.json: feed_forward_proj is {settings['feed_forward_proj']!r}, "
            "but must be the name of an activation, or gated- and the name; it cannot "
            "be imported"
        )
    # Older files do not state whether the output is scaled. It is scaled if the output
    # layer is the embedding table.
    is_scaled = settings.get("scale_decoder_outputs")
    if is_scaled is None:
        is_scaled = settings.get("tie_word_embeddings") is not False
    tokens = settings.get("n_positions") or _T5_TOKENS
    return {
        "decoder_layers": settings.get("num_decoder_layers") or settings["num_layers"],
        "scaled_output": is_scaled,
        "max_source_tokens": tokens,
        "max_target_tokens": tokens,
        # Versions with a gate call the approximation of gelu "gelu".
        "activation": activation(
            "gelu_new" if gating and name == "gelu" else name, "feed_forward_proj"
        ),
        "gated_feed_forward": bool(gating),
    }


def _read_mt5(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The output of mT5 is never scaled."""
    return _read_t5(
        {"feed_forward_proj": "gated-gelu", **settings, "scale_decoder_outputs": False}
    )


def _write_t5(config: TransformerConfig) -> dict[str, Any]:
    name = activation_name(config.activation)
    # With a gate, "gelu" means its approximation.
    gated = "gated-gelu" if name == "gelu_new" else f"gated-{name}"
    return {
        "d_kv": config.head_width or config.width // config.heads,
        "num_decoder_layers": config.decoder_layers,
        "feed_forward_proj": gated if config.gated_feed_forward else name,
        "n_positions": config.max_source_tokens,
        # In T5 this says whether the output is scaled. If it is not, the exporter
        # writes the output layer.
        "tie_word_embeddings": config.scaled_output,
        # The cache of T5 in transformers has as many layers as its encoder.
        "use_cache": config.decoder_layers <= config.encoder_layers,
    }


def _t5_names(side: str, last: str) -> dict[str, str]:
    """The names of a side; `last` is the number of the feed-forward network."""
    blocks, stored = f"{side}.block.#.layer.", _T5_NAMES.replace("LAST", last)
    return {
        f"{side}_positions/table": f"{side}.{_T5_RELATIVE}",
        **block_names(f"{side}_#/", blocks, GATED + CROSS, stored),
        f"{side}_norm": f"{side}.final_layer_norm",
    }


T5 = Family(
    title="T5",
    class_name="T5ForConditionalGeneration",
    defaults=token_ids(pad=0, eos=1),
    fields=(
        Field("vocabulary_size", "vocab_size"),
        Field("pad_id", "pad_token_id", 0),
        Field("encoder_layers", "num_layers"),
        Field("width", "d_model"),
        Field("feed_forward", "d_ff"),
        Field("heads", "num_heads"),
        Field("head_width", "d_kv"),
        Field("dropout", "dropout_rate", 0.1),
        Field("relative_buckets", "relative_attention_num_buckets", 32),
        Field("relative_distance", "relative_attention_max_distance", 128),
        Field("norm_epsilon", "layer_norm_epsilon", 1e-6),
    ),
    # The output layer is tied unless the checkpoint holds a separate one.
    fixed=LAYOUTS["t5"],
    read=_read_t5,
    write=_write_t5,
    names={
        "embedding/table": "shared.weight",
        "output_layer/kernel": "lm_head.weight",
        **_t5_names("encoder", "1"),
        **_t5_names("decoder", "2"),
    },
    # All blocks of a side share the table of the first block. Older files repeat it for
    # each block, and hold tables of the cross-attention that are not used.
    ignored=(
        r"(en|de)coder\.block\.([1-9]\d*\.layer\.0\.Self|\d+\.layer\.1\.EncDec)"
        r"Attention\.relative_attention_bias"
    ),
    older={"DenseReluDense.wi.weight": "DenseReluDense.wi_0.weight"},
)

MT5 = dataclasses.replace(
    T5, title="mT5", class_name="MT5ForConditionalGeneration", read=_read_mt5
)
