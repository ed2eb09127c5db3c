"""Presets of keras-hub: their tensors and settings, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_encoder_checkpoint import (
    INNER,
    LAYERS,
    POSITIONS,
    VOCABULARY,
    WIDTH,
    tensors,
    write_encoder,
)
from support.small_preset import BACKBONES, CONFIG, SHAPE, arrays, write_preset

from precis.model.bundle.converters.checkpoint import (
    ENCODERS,
    load_encoder,
    read_settings,
)
from precis.model.bundle.converters.keras_preset import preset_settings
from precis.model.bundle.converters.preset_tensors import preset_tensors
from precis.model.bundle.converters.tensors import Tensor, read_tensors
from precis.model.errors import DataError, UsageError

T5 = {
    **SHAPE,
    "dropout": 0.1,
    "activation": "relu",
    "use_gated_activation": True,
    "key_value_dim": None,
} | {
    "layer_norm_epsilon": 1e-6,
    "tie_embedding_weights": True,
}


@pytest.mark.parametrize("kind", BACKBONES)
def test_a_preset_is_read_as_the_checkpoint_of_the_same_weights(kind, tmp_path):
    stored = tensors(kind)
    if kind == "roberta":  # a preset has no vector for the first of two texts
        stored["embeddings.token_type_embeddings.weight"][:] = 0
    act = "gelu_new" if kind == "bert" else "gelu"
    expected = load_encoder(
        write_encoder(tmp_path / "checkpoint", kind, stored, {"hidden_act": act})
    )
    encoder = load_encoder(write_preset(tmp_path / "preset", kind))
    assert (
        encoder.config == expected.config
        and len(encoder.weights) == 5 + 16 * LAYERS - 1
    )
    for weight, other in zip(encoder.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(
            weight.numpy(), other.numpy(), err_msg=weight.path
        )


def test_a_preset_of_keras_nlp_and_of_older_keras(tmp_path):
    older = {
        path.replace("layers/", "_layer_checkpoint_dependencies/"): array
        for path, array in arrays().items()
    }
    folder = Path(write_preset(tmp_path, content=older))
    (folder / "config.json").write_text(
        json.dumps({"registered_name": "keras_nlp>BertBackbone", "config": CONFIG})
    )
    assert read_settings(str(folder))["model_type"] == "bert"
    renamed = preset_tensors(
        read_tensors(str(folder)), load_config(folder), ENCODERS["bert"]
    )
    assert {
        "encoder.layer.1.attention.self.key.weight",
        "embeddings.token_type_embeddings.weight",
        "pooler.dense.bias",
    } < renamed.keys()


def load_config(folder: Path) -> Any:
    return ENCODERS["bert"].network(read_settings(str(folder)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"layers/transformer_encoder_1/_feedforward_output_dense/vars/1": None},
            "lacks encoder.layer.1.output.dense.bias, which config",
        ),
        (
            {"layers/transformer_encoder_2/_feedforward_layer_norm/vars/0": 1},
            "holds layers/transformer_encoder_2/_feedforward_layer_norm",
        ),
        (
            {"layers/layer_normalization_1/vars/0": 1},
            (
                "holds layers/layer_normalization_1/vars/0, "
                "which no network of this kind has"
            ),
        ),
        (
            {"layers/layer_normalization/vars/2": 1},
            (
                "holds layers/layer_normalization/vars/2, "
                "which no network of this kind has"
            ),
        ),
        ({"vars/0": 1}, "holds vars/0, which no network of this kind has"),
        (
            {"layers/reversible_embedding/vars/0": 2},
            (
                "layers/reversible_embedding/vars/0: its number format is int8, "
                "and only floating-point"
            ),
        ),
        (
            {"layers/position_embedding/vars/0": 3},
            (
                r"position_embeddings.weight has the shape \[3, 8\], "
                r"and config.json asks for \[24, 8\]"
            ),
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(change, message, tmp_path):
    new = {
        1: np.ones(WIDTH, "float32"),
        2: np.ones((VOCABULARY, WIDTH), "int8"),
        3: np.ones((3, WIDTH), "float32"),
    }
    content = {**arrays(), **{path: new.get(value) for path, value in change.items()}}
    folder = write_preset(
        tmp_path,
        content={path: array for path, array in content.items() if array is not None},
    )
    with pytest.raises(DataError, match=rf"^{tmp_path}: .*{message}"):
        load_encoder(folder)


def test_settings_of_an_encoder_decoder():
    bart = preset_settings(
        {"registered_name": "keras_hub>BartBackbone", "config": CONFIG}
    )
    assert (
        bart["encoder_layers"],
        bart["decoder_ffn_dim"],
        bart["max_position_embeddings"],
        bart["dropout"],
    ) == (2, INNER, POSITIONS, 0.3)
    assert (bart["num_beams"], bart["max_new_tokens"]) == (4, POSITIONS - 1)
    t5 = preset_settings({"registered_name": "keras_hub>T5Backbone", "config": T5})
    assert (
        t5["feed_forward_proj"],
        t5["d_kv"],
        t5["scale_decoder_outputs"],
        t5["max_new_tokens"],
    ) == ("gated-relu", 4, True, 128)
    described = {
        "module": "builtins",
        "class_name": "function",
        "config": "keras_hub>gelu_approximate",
        "registered_name": "function",
    }
    other = {
        "activation": described,
        "use_gated_activation": False,
        "key_value_dim": 6,
        "tie_embedding_weights": False,
    }
    t5 = preset_settings(
        {"registered_name": "keras_hub>T5Backbone", "config": {**T5, **other}}
    )
    assert (t5["feed_forward_proj"], t5["d_kv"], t5["scale_decoder_outputs"]) == (
        "gelu_new",
        6,
        False,
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {
                "registered_name": "keras_hub>T5Backbone",
                "config": {**T5, "activation": "gelu"},
            },
            "config.json: activation is 'gelu' with a gate",
        ),
        (
            {"registered_name": "keras_hub>BertBackbone", "config": SHAPE},
            r"no settings of a BertBackbone \(KeyError\('dropout'\)\); save the",
        ),
        (
            {"registered_name": "keras_hub>BertBackbone", "config": None},
            r"no settings of a BertBackbone \(TypeError.*\); save the preset",
        ),
        (
            {"registered_name": "keras_hub>BertBackbone"},
            (
                r"no settings of a BertBackbone \(KeyError\('config'\)\); "
                r"save the preset again"
            ),
        ),
    ],
)
def test_unsupported_settings_of_a_preset_are_refused(config, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=rf"^{tmp_path}: .*{message}"):
        read_settings(str(tmp_path))


def test_an_unknown_backbone_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"registered_name": "keras_hub>GemmaBackbone", "config": {}})
    )
    with pytest.raises(
        UsageError,
        match=(
            "model_type is 'keras_hub>GemmaBackbone', and what can be imported is bart"
        ),
    ):
        read_settings(str(tmp_path))


def test_an_unknown_tensor_keeps_its_path():
    tensor = Tensor("F32", (1, 2), np.ones(2, "float32").tobytes())
    assert preset_tensors(
        {"layers/unknown/vars/0": tensor}, load_shape(), ENCODERS["distilbert"]
    ) == {"layers/unknown/vars/0": tensor}


def load_shape() -> Any:
    return ENCODERS["distilbert"].network(
        preset_settings(
            {"registered_name": "keras_hub>DistilBertBackbone", "config": CONFIG}
        )
    )
