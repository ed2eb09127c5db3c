"""BART (Lewis et al. 2020) and PEGASUS (Zhang et al. 2020).

BART is a post-norm Transformer with learned positions and a norm after the embeddings,
PEGASUS a pre-norm Transformer with sinusoidal positions, all sines before all cosines.
Their tensors have the same names.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import (
    BLOCK,
    CROSS,
    Family,
    Field,
    block_names,
    token_ids,
)
from precis.model.network.architectures import LAYOUTS
from precis.model.network.config import TransformerConfig


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        # A separate output layer has its own bias.
        "logits_bias": settings.get("tie_word_embeddings", True),
        # The start token takes a position.
        "max_target_tokens": settings["max_position_embeddings"] - 1,
    }


def _write(config: TransformerConfig) -> dict[str, Any]:
    return {
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        # Not read by transformers: its converter for CTranslate2 asks for them.
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
    read=_read,
    write=_write,
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
