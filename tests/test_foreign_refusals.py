"""Checkpoints that cannot be imported: the message names the cause."""

import json

import numpy as np
import pytest
from support import small_encoder_checkpoint
from support.small_checkpoint import (
    GENERATION,
    SETTINGS,
    VOCABULARY,
    tensors,
    write_checkpoint,
)
from support.small_encoder_checkpoint import write_encoder

from precis.model.bundle.converters.checkpoint import load_checkpoint, load_encoder
from precis.model.errors import DataError, UsageError

DISTANCES = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
TYPES = "embeddings.token_type_embeddings.weight"
TABLE = np.ones((VOCABULARY, 8), "float32")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, "float32")


def changed(
    stored: dict[str, np.ndarray], changes: dict[str, np.ndarray | None]
) -> dict[str, np.ndarray]:
    """The tensors with some replaced, or left out where they are None."""
    both = {**stored, **changes}
    return {name: tensor for name, tensor in both.items() if tensor is not None}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (
            "bart",
            {"model.encoder.layers.1.fc1.bias": None},
            "lacks encoder.layers.1.fc1.bias, which config.json asks for; "
            "download both",
        ),
        (
            "bart",
            {"model.encoder.layers.2.fc1.bias": ones(12)},
            "holds encoder.layers.2.fc1.bias, which no network of this kind",
        ),
        (
            "bart",
            {"model.decoder.layers.0.fc1.weight": ones(8, 20)},
            r"decoder.layers.0.fc1.weight has the shape \[8, 20\], "
            r"and config.json asks for \[20, 8\]",
        ),
        (
            "bart",
            {"model.encoder.embed_positions.weight": ones(40, 8)},
            r"encoder.embed_positions.weight has the shape \[40, 8\], "
            r"and config.json asks for \[42, 8\]",
        ),
        (
            "bart",
            {"final_logits_bias": ones(1, 299)},
            r"final_logits_bias has the shape \[1, 299\], .* asks for \[1, 300\]",
        ),
        (
            "bart",
            {"model.shared.weight": TABLE.astype("int8")},
            "shared.weight: its number format is I8, and only floating-point weights",
        ),
        (
            "pegasus",
            {"model.encoder.layer_norm.bias": None},
            "lacks encoder.layer_norm.bias, which config.json asks for",
        ),
        (
            "t5",
            {f"decoder.{DISTANCES}": None},
            f"lacks decoder.{DISTANCES}, which config.json asks for; download",
        ),
        (
            "t5",
            {"encoder.block.0.layer.1.DenseReluDense.wi_1.weight": ones(12, 8)},
            "holds encoder.block.0.layer",
        ),
        (
            "t5",
            {f"encoder.{DISTANCES}": ones(9, 2)},
            rf"encoder.{DISTANCES} has the shape \[9, 2\], "
            r"and config.json asks for \[8, 2\]",
        ),
        (
            "t5",
            {"lm_head.weight": TABLE},
            "lm_head.weight differs from the embedding table, and config.json scales "
            "the output as where they are one; if it was trained apart, say so there: "
            "tie_word_embeddings false",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(kind, changes, message, tmp_path):
    write_checkpoint(tmp_path, changed(tensors(kind), changes), kind=kind)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


def test_many_missing_tensors_are_counted(tmp_path):
    message = (
        r"lacks decoder.embed_positions.weight, .* and \d+ more, which config.json asks"
    )
    with pytest.raises(DataError, match=message):
        load_checkpoint(write_checkpoint(tmp_path, {}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder.layer.1.output.dense.bias": None},
            "lacks encoder.layer.1.output.dense.bias, which config.json asks for",
        ),
        ({TYPES: None}, f"lacks {TYPES}, which config.json asks for; download both"),
        (
            {TYPES: ones(2, 7)},
            rf"{TYPES} has the shape \[2, 7\], and config.json asks for \[2, 8\]",
        ),
        (
            {"embeddings.position_embeddings.weight": ones(23, 8)},
            r"embeddings.position_embeddings.weight has the shape \[23, 8\], "
            r"and config.json asks for \[24, 8\]",
        ),
    ],
)
def test_tensors_of_an_encoder_that_do_not_fit_are_named(changes, message, tmp_path):
    weights = changed(small_encoder_checkpoint.tensors(), changes)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_encoder(write_encoder(tmp_path, weights=weights))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "bart",
            {"activation_function": "quick_gelu"},
            "activation_function 'quick_gelu' is not one of gelu, .*; "
            "it cannot be imported",
        ),
        (
            "bart",
            {"encoder_attention_heads": 3},
            "the width must be a multiple of the number of heads, "
            "but 8 is not one of 3",
        ),
        (
            "bart",
            {"eos_token_id": None},
            "eos_token_id is missing; add it to config.json",
        ),
        (
            "pegasus",
            {"d_model": 9, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
            "must be even for sinusoidal positions, not 9",
        ),
        (
            "t5",
            {"feed_forward_proj": "double-gated-gelu"},
            "feed_forward_proj is 'double-gated-gelu', and only an activation, "
            "or gated- and",
        ),
        (
            "t5",
            {"feed_forward_proj": "gated-mish"},
            "config.json: feed_forward_proj 'mish' is not one of gelu, .*; "
            "it cannot be imported",
        ),
        (
            "t5",
            {"is_encoder_decoder": False},
            "config.json: is_encoder_decoder is false, "
            "and one side alone writes no summaries; take the",
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
    generation = {**GENERATION, "eos_token_id": None}
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(
            write_checkpoint(
                tmp_path, kind=kind, settings=settings, generation=generation
            )
        )


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type is 'relative_key', and only absolute positions",
        ),
        (
            "bert",
            {"is_decoder": True},
            "is_decoder is true, and only an encoder can be imported; "
            "take a checkpoint of one",
        ),
        (
            "bert",
            {"hidden_act": "quick_gelu"},
            "config.json: hidden_act 'quick_gelu' is not one of gelu, .*; "
            "it cannot be imported",
        ),
        (
            "roberta",
            {"pad_token_id": 0},
            "pad_token_id is 0, and of RoBERTa only checkpoints with 1 can be imported",
        ),
        (
            "distilbert",
            {"activation": "mish"},
            "config.json: activation 'mish' is not one of gelu, .*; "
            "it cannot be imported",
        ),
    ],
)
def test_unsupported_encoders_are_refused(kind, settings, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_encoder(write_encoder(tmp_path, kind, settings=settings))


def test_other_architectures_are_refused(tmp_path):
    writers, encoders = "bart, mt5, pegasus, t5", "bert, distilbert, roberta"
    for load, kind, known in (
        (load_checkpoint, "longt5", writers),
        (load_checkpoint, "bert", writers),
        (load_encoder, "bart", encoders),
    ):
        write_checkpoint(tmp_path, settings={"model_type": kind})
        message = (
            f"{tmp_path}: model_type is '{kind}', "
            f"and what can be imported is {known}; take such a checkpoint"
        )
        with pytest.raises(UsageError, match=message):
            load(str(tmp_path))


def test_folders_that_are_no_checkpoint_are_refused(tmp_path):
    def refused(error, message):
        with pytest.raises(error, match=message):
            load_checkpoint(str(tmp_path / "c"))

    refused(
        UsageError,
        "c: there is no such folder; name one that a checkpoint was downloaded to",
    )
    (tmp_path / "c").mkdir()
    refused(
        UsageError,
        r"c: this is no checkpoint \(no config.json\); "
        "name the folder that holds config.json and the weights",
    )
    config = tmp_path / "c" / "config.json"
    config.write_text("{")
    refused(
        DataError, r"config.json: damaged \(not JSON: .*\); download the checkpoint"
    )
    config.write_text("[]")
    refused(
        DataError,
        r"config.json: damaged \(the value must be of the type object, not array\); ",
    )
    config.write_text(json.dumps({**SETTINGS, "model_type": ["bart"]}))
    refused(UsageError, r"model_type is \['bart'\], and what can be imported is")
    config.write_text(json.dumps({**SETTINGS, "d_model": "8"}))
    refused(DataError, r"config.json: damaged \(.*\); download the checkpoint again")
    generation = tmp_path / "c" / "generation_config.json"
    for content in ('{"max_length": "x"}', '{"early_stopping": []}', "[1]"):
        config.write_text(json.dumps(SETTINGS))
        generation.write_text(content)
        refused(DataError, r"generation_config.json: damaged \(.*\); download the")
    generation.unlink()
    config.write_text(json.dumps({**SETTINGS, "d_model": 8} | {"model_type": "t5"}))
    refused(
        DataError, "config.json: num_layers is missing; download the checkpoint again"
    )
    config.write_text(json.dumps(SETTINGS))
    refused(
        UsageError,
        "c: there is neither model.safetensors nor model.safetensors.index.json; "
        "name a folder",
    )
    (tmp_path / "c" / "pytorch_model.bin").write_bytes(b"pickle")
    refused(
        UsageError,
        "the weights are a pickle .* which may run any program and is not read; "
        "convert .*safe_serialization=True",
    )
    (tmp_path / "c" / "model.safetensors").write_bytes(b"no header")
    refused(
        DataError, r"model.safetensors: damaged \(.*\); download the checkpoint again"
    )
