"""BART checkpoints: every tensor and every setting in its place."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from support.imported_networks import weights_of
from support.small_checkpoint import (
    SETTINGS,
    VOCABULARY,
    changed_tensors,
    tensors,
    write_checkpoint,
)

from precis.model.bundle.converters.bart import bart_config
from precis.model.bundle.converters.checkpoint import load_checkpoint
from precis.model.bundle.converters.tensors import read_tensors
from precis.model.errors import DataError

# One tensor of each kind: the path of the weight, the name of the tensor, and whether
# the tensor is stored transposed.
PLACES = [
    ("embedding/table", "model.shared.weight", False),
    ("source_input/norm/beta", "model.encoder.layernorm_embedding.bias", False),
    ("target_input/norm/gamma", "model.decoder.layernorm_embedding.weight", False),
    (
        "encoder_1/attention/query/kernel",
        "model.encoder.layers.1.self_attn.q_proj.weight",
        True,
    ),
    (
        "encoder_0/attention/output/bias",
        "model.encoder.layers.0.self_attn.out_proj.bias",
        False,
    ),
    (
        "encoder_1/attention_residual/norm/gamma",
        "model.encoder.layers.1.self_attn_layer_norm.weight",
        False,
    ),
    ("encoder_0/feed_forward/inner/kernel", "model.encoder.layers.0.fc1.weight", True),
    (
        "encoder_0/feed_forward_residual/norm/beta",
        "model.encoder.layers.0.final_layer_norm.bias",
        False,
    ),
    (
        "decoder_0/self_attention/key/kernel",
        "model.decoder.layers.0.self_attn.k_proj.weight",
        True,
    ),
    (
        "decoder_0/self_residual/norm/gamma",
        "model.decoder.layers.0.self_attn_layer_norm.weight",
        False,
    ),
    (
        "decoder_0/cross_attention/value/kernel",
        "model.decoder.layers.0.encoder_attn.v_proj.weight",
        True,
    ),
    (
        "decoder_0/cross_residual/norm/beta",
        "model.decoder.layers.0.encoder_attn_layer_norm.bias",
        False,
    ),
    ("decoder_0/feed_forward/outer/kernel", "model.decoder.layers.0.fc2.weight", True),
    (
        "decoder_0/feed_forward_residual/norm/gamma",
        "model.decoder.layers.0.final_layer_norm.weight",
        False,
    ),
]


def read_weights(folder: str | Path) -> dict[str, np.ndarray]:
    return weights_of(load_checkpoint(str(folder)))


def without_prefix(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("model."): tensor for name, tensor in weights.items()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def weights(checkpoint) -> dict[str, np.ndarray]:
    return read_weights(checkpoint)


def test_every_tensor_is_assigned_to_its_weight(weights):
    stored = tensors()
    for path, name, is_transposed in PLACES:
        np.testing.assert_array_equal(
            weights[path],
            stored[name].T if is_transposed else stored[name],
            err_msg=path,
        )
    np.testing.assert_array_equal(
        weights["embedding/logits_bias"], stored["final_logits_bias"][0]
    )
    for side, name in (
        ("source", "encoder"),
        ("target", "decoder"),
    ):  # the first two rows belong to no position
        np.testing.assert_array_equal(
            weights[f"{side}_input/positions"],
            stored[f"model.{name}.embed_positions.weight"][2:],
        )
    # Each tensor is assigned once: all of them have different sums.
    imported = sorted(
        float(weight.sum(dtype="float64"))
        for path, weight in weights.items()
        if "positions" not in path
    )
    expected = sorted(
        float(tensor.sum(dtype="float64"))
        for name, tensor in stored.items()
        if "positions" not in name
    )
    assert imported == pytest.approx(expected, abs=1e-6) and len(set(expected)) == len(
        expected
    )


def test_the_network_has_the_shape_of_config_json(checkpoint):
    config = load_checkpoint(checkpoint).network.config
    assert (
        config.heads,
        config.decoder.heads,
        config.feed_forward,
        config.decoder.feed_forward,
    ) == (2, 4, 12, 20)
    assert config.decoder_stack == dataclasses.replace(
        dataclasses.replace(config, decoder_stack=None).decoder,
        heads=4,
        feed_forward=20,
    )
    assert (config.max_source_tokens, config.max_target_tokens, config.pad_id) == (
        40,
        39,
        1,
    )
    assert (config.positions, config.activation, config.norm_epsilon) == (
        "learned",
        "gelu",
        1e-5,
    )
    assert (
        config.embedding_norm,
        config.scaled_embedding,
        config.tied_output,
        config.pointer,
    ) == (True, False, True, False)


@pytest.mark.parametrize(
    ("name", "activation"),
    [("gelu_new", "gelu_tanh"), ("relu", "relu"), ("swish", "silu")],
)
def test_activations_and_scaled_embeddings(name, activation, tmp_path):
    write_checkpoint(
        tmp_path, settings={"activation_function": name, "scale_embedding": True}
    )
    config = load_checkpoint(str(tmp_path)).network.config
    assert config.activation == activation and config.scaled_embedding


def test_names_without_their_prefix_and_several_files(tmp_path, weights):
    write_checkpoint(tmp_path, without_prefix(tensors()))
    np.testing.assert_equal(read_weights(tmp_path), weights)
    (tmp_path / "model.safetensors").unlink()
    parts: dict[str, dict[str, np.ndarray]] = {"a.safetensors": {}, "b.safetensors": {}}
    for index, (name, tensor) in enumerate(tensors().items()):
        parts["ab"[index % 2] + ".safetensors"][name] = tensor
    for name, part in parts.items():
        safetensors.numpy.save_file(part, tmp_path / name)
    index = {
        "weight_map": {name: file for file, part in parts.items() for name in part}
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    np.testing.assert_equal(read_weights(tmp_path), weights)
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(
        DataError,
        match=(
            r"b.safetensors: missing, and model.safetensors.index.json names it; "
            r"download"
        ),
    ):
        load_checkpoint(str(tmp_path))
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"no index of weights \(KeyError\('weight_map'\)\)"
    ):
        load_checkpoint(str(tmp_path))


def test_encoder_and_decoder_of_equal_sizes_need_one_stack(tmp_path):
    equal = {"decoder_attention_heads": 2, "decoder_ffn_dim": 12}
    config = bart_config({**SETTINGS, **equal})
    assert config.decoder_stack is None and (
        config.decoder.heads,
        config.decoder.feed_forward,
    ) == (2, 12)


def test_repeated_tensors_of_a_tied_network_must_be_equal(tmp_path, weights):
    table, other = (
        tensors()["model.shared.weight"],
        np.zeros((VOCABULARY, 8), "float32"),
    )
    write_checkpoint(
        tmp_path,
        changed_tensors(
            lm_head__weight=table,
            model__encoder__embed_tokens__weight=table,
            model__decoder__version=other,
        ),
    )
    np.testing.assert_equal(read_weights(tmp_path), weights)
    write_checkpoint(
        tmp_path, changed_tensors(model__encoder__embed_tokens__weight=other)
    )
    with pytest.raises(
        DataError,
        match=(
            r"shared.weight and encoder.embed_tokens.weight differ, "
            r"and a network here has one embedding"
        ),
    ):
        load_checkpoint(str(tmp_path))
    write_checkpoint(
        tmp_path, changed_tensors(lm_head__weight=table, model__shared__weight=None)
    )  # it may be there under this name alone
    np.testing.assert_equal(read_weights(tmp_path), weights)


def test_a_separate_tensor_makes_an_output_layer(tmp_path, weights):
    write_checkpoint(
        tmp_path,
        changed_tensors(lm_head__weight=np.full((VOCABULARY, 8), 3, "float32")),
    )
    imported = read_weights(tmp_path)
    assert (
        imported["output_layer/kernel"] == 3
    ).all() and "embedding/logits_bias" not in imported
    np.testing.assert_array_equal(
        imported["output_layer/bias"], weights["embedding/logits_bias"]
    )
    np.testing.assert_array_equal(
        imported["embedding/table"], weights["embedding/table"]
    )


def test_an_untied_network_has_an_output_layer(tmp_path):
    table, unused, output = (
        np.full((VOCABULARY, 8), value, "float32") for value in (1, 2, 3)
    )
    tables = {
        "model__encoder__embed_tokens__weight": table,
        "model__decoder__embed_tokens__weight": table,
        "model__shared__weight": unused,
    }
    write_checkpoint(
        tmp_path,
        changed_tensors(lm_head__weight=output, **tables),
        settings={"tie_word_embeddings": False},
    )
    imported = read_weights(tmp_path)
    assert (imported["embedding/table"] == 1).all() and (
        imported["output_layer/kernel"] == 3
    ).all()
    np.testing.assert_array_equal(
        imported["output_layer/bias"], tensors()["final_logits_bias"][0]
    )
    write_checkpoint(
        tmp_path,
        changed_tensors(lm_head__weight=output),
        settings={"tie_word_embeddings": False},
    )
    np.testing.assert_array_equal(
        read_weights(tmp_path)["embedding/table"], tensors()["model.shared.weight"]
    )
    tables["model__decoder__embed_tokens__weight"] = unused
    write_checkpoint(
        tmp_path,
        changed_tensors(lm_head__weight=output, **tables),
        settings={"tie_word_embeddings": False},
    )
    with pytest.raises(
        DataError,
        match=(
            r"encoder.embed_tokens.weight and decoder.embed_tokens.weight differ, "
            r"and a network here has one"
        ),
    ):
        load_checkpoint(str(tmp_path))


def test_a_missing_bias_of_the_logits_is_zero(tmp_path):
    write_checkpoint(tmp_path, changed_tensors(final_logits_bias=None))
    assert not read_weights(tmp_path)["embedding/logits_bias"].any()


def test_weights_of_16_bits_become_float32(tmp_path):
    values = np.array([[1.5, -2.25, 3.0e-3, 65504.0]], "float32")
    halves = (values.view("<u4") >> 16).astype(
        "<u2"
    )  # the upper half of a float32 is a bfloat16, rounded towards zero
    spec = safetensors.TensorSpec(
        dtype="bfloat16",
        shape=[2, 2],
        data_ptr=halves.ctypes.data,
        data_len=halves.nbytes,
    )
    (tmp_path / "model.safetensors").write_bytes(
        safetensors.serialize({"x": spec}, None)
    )
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert numbers.dtype == np.float32 and numbers.tolist() == [
        [1.5, -2.25],
        [0.00299072265625, 65280.0],
    ]
    safetensors.numpy.save_file(
        {"x": values.astype("float16")}, tmp_path / "model.safetensors"
    )
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert (
        numbers.dtype == np.float32
        and numbers.tolist() == values.astype("float16").tolist()
    )
