"""Encoders of the BERT type.

These are BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and DistilBERT (Sanh et
al. 2019): post-norm Transformers with learned positions and a norm after the
embeddings. BERT and RoBERTa add a vector to every token that says to which of two texts
it belongs. Here a row is always one text, so the converter adds the vector of the first
text to the position table.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    activation,
)
from precis.model.errors import DataError
from precis.model.network.config import EncoderConfig

_ROBERTA_PAD = 1


def bert_config(
    settings: Mapping[str, Any], *, activation_field: str = "hidden_act"
) -> EncoderConfig:
    """The encoder that a config.json describes."""
    positions = settings.get("position_embedding_type") or "absolute"
    if positions != "absolute":
        raise DataError(
            f"config.json: position_embedding_type is {positions!r}, "
            "and only absolute positions can be imported"
        )
    if settings.get("is_decoder"):
        raise DataError(
            "config.json: is_decoder is true, and only an encoder can be imported; "
            "take a checkpoint of one"
        )
    return EncoderConfig(
        vocabulary_size=settings["vocab_size"],
        pad_id=settings.get("pad_token_id", 0),
        encoder_layers=settings["num_hidden_layers"],
        width=settings["hidden_size"],
        feed_forward=settings["intermediate_size"],
        heads=settings["num_attention_heads"],
        dropout=settings.get("hidden_dropout_prob", 0.1),
        max_source_tokens=settings["max_position_embeddings"],
        positions="learned",
        activation=activation(settings, activation_field),
        scaled_embedding=False,
        embedding_norm=True,
        norm_epsilon=settings.get("layer_norm_eps", 1e-12),
    )


def roberta_config(settings: Mapping[str, Any]) -> EncoderConfig:
    """The encoder that a config.json of RoBERTa describes.

    The first position of RoBERTa is the id of the padding plus 1. The rows before it
    are never read.
    """
    pad = settings.get("pad_token_id", _ROBERTA_PAD)
    if pad != _ROBERTA_PAD:
        raise DataError(
            f"config.json: pad_token_id is {pad}, and of RoBERTa only checkpoints with "
            f"{_ROBERTA_PAD} can be imported"
        )
    rows = settings["max_position_embeddings"]
    return bert_config(
        {
            "pad_token_id": pad,
            **settings,
            "max_position_embeddings": rows - _ROBERTA_PAD - 1,
        }
    )


def distilbert_config(settings: Mapping[str, Any]) -> EncoderConfig:
    """The encoder that a config.json of DistilBERT describes."""
    bert_fields = {
        "hidden_size": settings["dim"],
        "num_hidden_layers": settings["n_layers"],
        "num_attention_heads": settings["n_heads"],
        "intermediate_size": settings["hidden_dim"],
        "hidden_dropout_prob": settings.get("dropout", 0.1),
        "layer_norm_eps": 1e-12,
    }
    return bert_config({**settings, **bert_fields}, activation_field="activation")


# Heads for tasks, and a table that is not trained.
_HEADS = (
    "pooler.",
    "cls.",
    "classifier.",
    "qa_outputs.",
    "lm_head.",
    "embeddings.position_ids",
)

_POSITIONS = "embeddings.position_embeddings.weight"

BERT = CheckpointArchitecture(
    network=bert_config,
    names={
        "embedding/table": "embeddings.word_embeddings.weight",
        "source_input/positions": _POSITIONS,
        "source_input/norm": "embeddings.LayerNorm",
        "encoder_#/attention/query": "encoder.layer.#.attention.self.query",
        "encoder_#/attention/key": "encoder.layer.#.attention.self.key",
        "encoder_#/attention/value": "encoder.layer.#.attention.self.value",
        "encoder_#/attention/output": "encoder.layer.#.attention.output.dense",
        "encoder_#/attention_residual/norm": (
            "encoder.layer.#.attention.output.LayerNorm"
        ),
        "encoder_#/feed_forward/inner": "encoder.layer.#.intermediate.dense",
        "encoder_#/feed_forward/outer": "encoder.layer.#.output.dense",
        "encoder_#/feed_forward_residual/norm": "encoder.layer.#.output.LayerNorm",
    },
    prefix="bert.",
    ignored=_HEADS,
    added={_POSITIONS: "embeddings.token_type_embeddings.weight"},
    older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
)

ROBERTA = BERT._replace(
    network=roberta_config, prefix="roberta.", first_position=_ROBERTA_PAD + 1
)

DISTILBERT = CheckpointArchitecture(
    network=distilbert_config,
    names={
        "embedding/table": "embeddings.word_embeddings.weight",
        "source_input/positions": _POSITIONS,
        "source_input/norm": "embeddings.LayerNorm",
        "encoder_#/attention/query": "transformer.layer.#.attention.q_lin",
        "encoder_#/attention/key": "transformer.layer.#.attention.k_lin",
        "encoder_#/attention/value": "transformer.layer.#.attention.v_lin",
        "encoder_#/attention/output": "transformer.layer.#.attention.out_lin",
        "encoder_#/attention_residual/norm": "transformer.layer.#.sa_layer_norm",
        "encoder_#/feed_forward/inner": "transformer.layer.#.ffn.lin1",
        "encoder_#/feed_forward/outer": "transformer.layer.#.ffn.lin2",
        "encoder_#/feed_forward_residual/norm": "transformer.layer.#.output_layer_norm",
    },
    prefix="distilbert.",
    ignored=(
        *_HEADS,
        "pre_classifier.",
        "vocab_transform.",
        "vocab_layer_norm.",
        "vocab_projector.",
    ),
)
