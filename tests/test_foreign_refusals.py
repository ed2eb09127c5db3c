"""PEGASUS, T5 and mT5 checkpoints that cannot be imported."""

import numpy as np
import pytest
from support.small_checkpoint import (
    VOCABULARY,
    tensors,
    write_checkpoint,
)

from precis.model.bundle.converters.checkpoint import (
    load_checkpoint,
)
from precis.model.errors import DataError, UsageError

SHARED, OUTPUT = "shared.weight", "lm_head.weight"


DISTANCES = "layer.0.SelfAttention.relative_attention_bias.weight"


def without(kind: str, name: str) -> dict[str, np.ndarray]:
    return {path: tensor for path, tensor in tensors(kind).items() if path != name}


@pytest.mark.parametrize(
    ("kind", "weights", "message"),
    [
        (
            "t5",
            without("t5", f"decoder.block.0.{DISTANCES}"),
            rf"lacks decoder.block.0.{DISTANCES}, which config.json asks for; download",
        ),
        (
            "flan",
            without("flan", "encoder.block.1.layer.1.DenseReluDense.wi_1.weight"),
            "lacks encoder.block.1.layer.1.DenseReluDense.wi_1",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                "encoder.block.0.layer.1.DenseReluDense.wi_1.weight": np.ones(
                    (12, 8), "f"
                ),
            },
            "holds encoder.block.0.layer",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                "decoder.block.0.layer.0.SelfAttention.q.bias": np.ones(10, "f"),
            },
            "holds decoder.block.0.layer.0.SelfAtt",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                f"encoder.block.0.{DISTANCES}": np.ones((9, 2), "float32"),
            },
            (
                rf"encoder.block.0.{DISTANCES} has the shape \[9, 2\], "
                rf"and config.json asks for \[8, 2\]"
            ),
        ),
        (
            "t5",
            {**tensors("t5"), OUTPUT: np.ones((VOCABULARY, 8), "float32")},
            "lm_head.weight differs from the embedding table, "
            "and config.json scales the output as where they are one; "
            "if it was trained "
            "apart, say so there: tie_word_embeddings false",
        ),
        (
            "flan",
            {
                **tensors("flan"),
                "encoder.embed_tokens.weight": np.ones((VOCABULARY, 8), "f"),
                "decoder.embed_tokens.weight": tensors()["model.shared.weight"],
            },
            (
                "encoder.embed_tokens.weight and decoder.embed_tokens.weight differ, "
                "and a network here has one embedding"
            ),
        ),
        (
            "pegasus",
            without("pegasus", "model.encoder.layer_norm.bias"),
            "lacks encoder.layer_norm.bias, which config.json asks for",
        ),
        (
            "pegasus",
            {
                **tensors("pegasus"),
                "model.encoder.layernorm_embedding.bias": np.ones(8, "f"),
            },
            "holds encoder.layernorm_embedding.bi",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(kind, weights, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(write_checkpoint(tmp_path, weights, kind=kind))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "t5",
            {"feed_forward_proj": "double-gated-gelu"},
            (
                "feed_forward_proj is 'double-gated-gelu', and only an activation, "
                "or gated- and"
            ),
        ),
        (
            "t5",
            {"feed_forward_proj": "gated-mish"},
            (
                "config.json: feed_forward_proj 'mish' is not one of gelu, .*; "
                "it cannot be imported"
            ),
        ),
        (
            "t5",
            {"is_encoder_decoder": False},
            (
                "config.json: is_encoder_decoder is false, "
                "and one side alone writes no summaries; take the"
            ),
        ),
        ("pegasus", {"is_encoder_decoder": False}, "is_encoder_decoder is false"),
        (
            "pegasus",
            {"d_model": 9, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
            "must be even for sinusoidal positions, not 9",
        ),
        (
            "t5",
            {"task_specific_params": {"summarization": "short"}},
            "task_specific_params.summarization is 'short', and must be settings by",
        ),
        (
            "t5",
            {"task_specific_params": {"summarization": {"prefix": 3}}},
            "task_specific_params.summarization is {'prefix': 3}, and must be",
        ),
    ],
)
def test_unsupported_configurations_are_refused(kind, settings, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(write_checkpoint(tmp_path, kind=kind, settings=settings))


@pytest.mark.parametrize("kind", ["umt5", "longt5", "bigbird_pegasus"])
def test_related_architectures_are_refused(kind, tmp_path):
    with pytest.raises(
        UsageError,
        match=(
            f"model_type is '{kind}', and what can be imported is bart, mt5, pegasus, "
            f"t5; take such"
        ),
    ):
        load_checkpoint(write_checkpoint(tmp_path, settings={"model_type": kind}))
