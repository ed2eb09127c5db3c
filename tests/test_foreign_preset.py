"""Presets of keras-hub: their numbers, their settings, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.frozen_reference import BACKBONES, DATA
from support.small_preset import arrays, describe, write_preset

from precis.model.bundle.converters.checkpoint import (
    ENCODER_DECODERS,
    ENCODERS,
    load_checkpoint,
    load_encoder,
    read_settings,
)
from precis.model.bundle.converters.keras_preset import preset_settings
from precis.model.bundle.converters.preset_tensors import preset_tensors
from precis.model.bundle.converters.tensors import Tensor, read_tensors
from precis.model.errors import DataError, UsageError
from precis.model.network.config import SOURCE_PADDING
from precis.model.search.config import SpecialTokens

T5 = describe("t5")["config"]["config"]
BART = describe("bart")["config"]
BERT = describe("bert")["config"]
ENCODER_NAMES = [name for name in BACKBONES if name in ENCODERS]
WRITER_NAMES = [name for name in BACKBONES if name in ENCODER_DECODERS]


@pytest.fixture(scope="module")
def frozen() -> dict[str, np.ndarray]:
    """What keras-hub computes, by name of the preset and of the array."""
    return dict(np.load(DATA / "presets.npz"))


@pytest.mark.parametrize("name", ENCODER_NAMES)
def test_states_are_those_of_keras_hub(name, frozen, tmp_path):
    encoder = load_encoder(write_preset(tmp_path, name))
    source = frozen[f"{name}/source"]
    readable = source != encoder.config.pad_id
    source = np.where(readable, source, SOURCE_PADDING)
    assert readable.mean() == 0.75
    np.testing.assert_allclose(
        np.asarray(encoder(source))[readable],
        frozen[f"{name}/states"][readable],
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", WRITER_NAMES)
def test_states_and_logits_are_those_of_keras_hub(name, frozen, tmp_path):
    checkpoint = load_checkpoint(write_preset(tmp_path, name))
    network = checkpoint.network
    assert checkpoint.special == (
        SpecialTokens(start_id=2, end_id=2, pad_id=1, prefix=(0,))
        if name == "bart"
        else SpecialTokens(start_id=0, end_id=1, pad_id=0)
    )
    source, target = frozen[f"{name}/source"], frozen[f"{name}/target"]
    readable = source != network.config.pad_id
    source = np.where(readable, source, SOURCE_PADDING)
    np.testing.assert_allclose(
        np.asarray(network.encode(source).states)[readable],
        frozen[f"{name}/states"][readable],
        rtol=1e-4,
        atol=1e-4,
    )
    np.testing.assert_allclose(
        np.asarray(network(source, target)),
        frozen[f"{name}/logits"],
        rtol=1e-4,
        atol=1e-4,
    )


def test_a_preset_of_keras_nlp_and_of_older_keras(tmp_path):
    older = {
        path.replace("layers/", "_layer_checkpoint_dependencies/"): array
        for path, array in arrays().items()
    }
    folder = Path(write_preset(tmp_path, content=older))
    described = {**BERT, "registered_name": "keras_nlp>BertBackbone"}
    (folder / "config.json").write_text(json.dumps(described))
    settings = read_settings(str(folder))
    assert settings["model_type"] == "bert"
    renamed = preset_tensors(
        read_tensors(str(folder)), ENCODERS["bert"].network(settings), ENCODERS["bert"]
    )
    assert {
        "encoder.layer.1.attention.self.key.weight",
        "embeddings.token_type_embeddings.weight",
        "pooler.dense.bias",
    } < renamed.keys()


@pytest.mark.parametrize(
    ("path", "array", "message"),
    [
        (
            "layers/transformer_encoder_1/_feedforward_output_dense/vars/1",
            None,
            "lacks encoder.layer.1.output.dense.bias, which config",
        ),
        (
            "layers/transformer_encoder_2/_feedforward_layer_norm/vars/0",
            np.ones(8, "float32"),
            "holds layers/transformer_encoder_2/_feedforward_layer_norm",
        ),
        (
            "layers/layer_normalization_1/vars/0",
            np.ones(8, "float32"),
            "holds layers/layer_normalization_1/vars/0, which no network of this kind",
        ),
        (
            "layers/layer_normalization/vars/2",
            np.ones(8, "float32"),
            "holds layers/layer_normalization/vars/2, which no network of this kind",
        ),
        (
            "layers/reversible_embedding/vars/0",
            np.ones((30, 8), "int8"),
            "layers/reversible_embedding/vars/0: its number format is int8, "
            "and only floating-point",
        ),
        (
            "layers/position_embedding/vars/0",
            np.ones((3, 8), "float32"),
            r"position_embeddings.weight has the shape \[3, 8\], "
            r"and config.json asks for \[24, 8\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(path, array, message, tmp_path):
    content = {**arrays(), path: array}
    if array is None:
        del content[path]
    folder = write_preset(tmp_path, content=content)
    with pytest.raises(DataError, match=rf"^{tmp_path}: .*{message}"):
        load_encoder(folder)


def test_settings_of_an_encoder_decoder():
    bart = preset_settings(BART)
    names = ("encoder_layers", "decoder_ffn_dim", "max_position_embeddings", "dropout")
    assert [bart[name] for name in names] == [2, 12, 24, 0.1]
    assert (bart["num_beams"], bart["max_new_tokens"]) == (4, 23)


def t5_settings(**changes):
    return preset_settings(
        {"registered_name": "keras_hub>T5Backbone", "config": {**T5, **changes}}
    )


def test_settings_of_t5():
    names = ("feed_forward_proj", "d_kv", "scale_decoder_outputs", "max_new_tokens")
    t5 = t5_settings(key_value_dim=None)
    assert [t5[name] for name in names] == ["gated-relu", 4, True, 128]
    described = {"class_name": "function", "config": "keras_hub>gelu_approximate"}
    t5 = t5_settings(
        activation=described, use_gated_activation=False, tie_embedding_weights=False
    )
    assert [t5[name] for name in names] == ["gelu_new", 5, False, 128]
    with pytest.raises(
        DataError, match="config.json: activation is 'gelu' with a gate"
    ):
        t5_settings(activation="gelu")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"config": {"num_layers": 2}}, r"KeyError\('vocabulary_size'\)"),
        ({"config": None}, "TypeError.*"),
        ({}, r"KeyError\('config'\)"),
    ],
)
def test_damaged_settings_of_a_preset_are_refused(config, reason, tmp_path):
    described = {"registered_name": "keras_hub>BertBackbone", **config}
    (tmp_path / "config.json").write_text(json.dumps(described))
    message = rf"^{tmp_path}: .*no settings of a BertBackbone \({reason}\); save the"
    with pytest.raises(DataError, match=message):
        read_settings(str(tmp_path))


def test_an_unknown_backbone_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"registered_name": "keras_hub>GemmaBackbone", "config": {}})
    )
    message = (
        "model_type is 'keras_hub>GemmaBackbone', and what can be imported is bart"
    )
    with pytest.raises(UsageError, match=message):
        read_settings(str(tmp_path))


def test_an_unknown_tensor_keeps_its_path():
    settings = preset_settings(describe("distilbert")["config"])
    unknown = {
        path: Tensor("F32", (1, 2), np.ones(2, "float32").tobytes())
        for path in ("layers/unknown/vars/0", "vars/0")
    }
    config = ENCODERS["distilbert"].network(settings)
    assert preset_tensors(unknown, config, ENCODERS["distilbert"]) == unknown
