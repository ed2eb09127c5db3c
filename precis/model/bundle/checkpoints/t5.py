"""T5 (Raffel et al. 2020), Flan-T5 (Chung et al. 2022) and mT5 (Xue et al. 2021).

Pre-norm Transformers without biases. Norms only scale and attention scores are not
scaled. Relative positions add a bias to the scores, which all blocks of the encoder
share, and likewise all blocks of the decoder.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.bundle.checkpoints.family import (
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

# The source length of the published checkpoints in training. Positions are relative, so
# longer sources are possible.
_TRAINED_TOKENS = 512
_RELATIVE = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
_NAMES = (
    "0.SelfAttention.{q,k,v,o} 0.layer_norm "
    "LAST.DenseReluDense.{wi_0,wi_1,wo} LAST.layer_norm "
    "1.EncDecAttention.{q,k,v,o} 1.layer_norm"
)


def _read(settings: Mapping[str, Any]) -> dict[str, Any]:
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
    tokens = settings.get("n_positions") or _TRAINED_TOKENS
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
    return _read(
        {"feed_forward_proj": "gated-gelu", **settings, "scale_decoder_outputs": False}
    )


def _write(config: TransformerConfig) -> dict[str, Any]:
    name = activation_name(config.activation)
    # With a gate, "gelu" stands for its approximation.
    gated = "gated-gelu" if name == "gelu_new" else f"gated-{name}"
    return {
        "d_kv": config.head_width or config.width // config.heads,
        "num_decoder_layers": config.decoder_layers,
        "feed_forward_proj": gated if config.gated_feed_forward else name,
        "n_positions": config.max_source_tokens,
        # In T5 this says whether the output is scaled. The exporter writes the output
        # layer where it is not.
        "tie_word_embeddings": config.scaled_output,
        # The cache of T5 in transformers has as many layers as its encoder.
        "use_cache": config.decoder_layers <= config.encoder_layers,
    }


def _names(side: str, last: str) -> dict[str, str]:
    """Those of a side; `last` is the number of the feed-forward network in a block."""
    blocks, stored = f"{side}.block.#.layer.", _NAMES.replace("LAST", last)
    return {
        f"{side}_positions/table": f"{side}.{_RELATIVE}",
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
    read=_read,
    write=_write,
    names={
        "embedding/table": "shared.weight",
        "output_layer/kernel": "lm_head.weight",
        **_names("encoder", "1"),
        **_names("decoder", "2"),
    },
    # All blocks of a side share the table of the first. Older files repeat it for each
    # block, and hold tables of the cross-attention that no network reads.
    ignored=(
        r"(en|de)coder\.block\.([1-9]\d*\.layer\.0\.Self|\d+\.layer\.1\.EncDec)"
        r"Attention\.relative_attention_bias"
    ),
    older={"DenseReluDense.wi.weight": "DenseReluDense.wi_0.weight"},
)

MT5 = dataclasses.replace(
    T5, title="mT5", class_name="MT5ForConditionalGeneration", read=_read_mt5
)
