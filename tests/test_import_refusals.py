"""Checkpoints that cannot be imported: the message names the cause."""

import json

import numpy as np
import pytest
from support.small_checkpoint import (
    SETTINGS,
    VOCABULARY,
    changed_tensors,
    write_checkpoint,
)

from precis.model.bundle.converters.checkpoint import load_checkpoint
from precis.model.errors import DataError, UsageError


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            changed_tensors(model__encoder__layers__1__fc1__bias=None),
            (
                r"lacks encoder.layers.1.fc1.bias, which config.json asks for; "
                r"download both"
            ),
        ),
        (
            {},
            (
                r"lacks decoder.embed_positions.weight, .* and \d+ more, "
                r"which config.json asks for"
            ),
        ),
        (
            changed_tensors(model__encoder__layers__2__fc1__bias=np.zeros(12, "f")),
            r"holds encoder.layers.2.fc1.bias, which no network of this kind",
        ),
        (
            changed_tensors(
                model__decoder__layers__0__fc1__weight=np.zeros((8, 20), "float32")
            ),
            (
                r"decoder.layers.0.fc1.weight has the shape \[8, 20\], "
                r"and config.json asks for \[20, 8\]"
            ),
        ),
        (
            changed_tensors(
                model__encoder__embed_positions__weight=np.zeros((40, 8), "float32")
            ),
            (
                r"encoder.embed_positions.weight has the shape \[40, 8\], "
                r"and config.json asks for \[42, 8\]"
            ),
        ),
        (
            changed_tensors(final_logits_bias=np.zeros((1, 299), "float32")),
            r"final_logits_bias has the shape \[1, 299\], .* asks for \[1, 300\]",
        ),
        (
            changed_tensors(model__shared__weight=np.zeros((VOCABULARY, 8), "int8")),
            r"shared.weight: its number format is I8, and only floating-point weights",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(weights, message, tmp_path):
    write_checkpoint(tmp_path, weights)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"model_type": "led"},
            UsageError,
            (
                r"model_type is 'led', and what can be imported is bart, mt5, pegasus, "
                r"t5; take such a"
            ),
        ),
        (
            {"activation_function": "quick_gelu"},
            DataError,
            (
                r"activation_function 'quick_gelu' is not one of gelu, .*; "
                r"it cannot be imported"
            ),
        ),
        (
            {"encoder_attention_heads": 3},
            DataError,
            (
                r"the width must be a multiple of the number of heads, "
                r"but 8 is not one of 3"
            ),
        ),
    ],
)
def test_unsupported_configurations_are_refused(settings, error, message, tmp_path):
    write_checkpoint(tmp_path, settings=settings)
    with pytest.raises(error, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


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
        (
            r"c: this is no checkpoint \(no config.json\); "
            r"name the folder that holds config.json and the weights"
        ),
    )
    config = tmp_path / "c" / "config.json"
    config.write_text("{")
    refused(DataError, r"config.json: not JSON \(.*\); download the checkpoint again")
    config.write_text("[]")
    refused(DataError, "config.json: no JSON object; download the checkpoint again")
    config.write_text(
        json.dumps(
            {name: value for name, value in SETTINGS.items() if name != "d_model"}
        )
    )
    refused(DataError, "config.json: d_model is missing; download the checkpoint again")
    config.write_text(json.dumps(SETTINGS))
    refused(
        UsageError,
        (
            "c: there is neither model.safetensors nor model.safetensors.index.json; "
            "name a folder"
        ),
    )
    (tmp_path / "c" / "pytorch_model.bin").write_bytes(b"pickle")
    refused(
        UsageError,
        (
            r"the weights are a pickle .* which may run any program and is not read; "
            r"convert .*safe_serialization=True"
        ),
    )
    (tmp_path / "c" / "model.safetensors").write_bytes(b"no header")
    refused(
        DataError, r"model.safetensors: damaged \(.*\); download the checkpoint again"
    )
