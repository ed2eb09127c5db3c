"""Checkpoints of other projects: the numbers of their networks, and the forms in which
files store their tensors.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from support import small_encoder_checkpoint
from support.encoder_states import states_of
from support.frozen_reference import DATA, LENGTHS, LOGITS
from support.small_checkpoint import (
    KINDS,
    POSITIONS,
    VOCABULARY,
    changed_tensors,
    tensors,
    write_checkpoint,
)
from support.small_encoder_checkpoint import write_encoder

from precis.model.bundle.converters.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_encoder,
)
from precis.model.bundle.converters.tensors import read_tensors
from precis.model.errors import DataError
from precis.model.network.config import SOURCE_PADDING

DISTANCES = "layer.0.SelfAttention.relative_attention_bias.weight"
OTHER = np.zeros((VOCABULARY, 8), "float32")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> dict[str, Checkpoint]:
    """A checkpoint of each kind, with the source lengths of the frozen numbers."""
    return {
        kind: load_checkpoint(
            write_checkpoint(tmp_path_factory.mktemp(kind), kind=kind),
            max_source_tokens=LENGTHS.get(kind, 31),
        )
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def frozen() -> dict[str, np.ndarray]:
    """What transformers computes, by name of the checkpoint and of the array."""
    return dict(np.load(DATA / "checkpoints.npz"))


def weights_of(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The weights by path, without the name of the network and the positions of BART,
    of which `checkpoints` has fewer.
    """
    return {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in checkpoint.network.weights
        if not weight.path.endswith("input/positions")
    }


def read_weights(folder: Path, weights=None, **settings) -> dict[str, np.ndarray]:
    """The weights of the checkpoint that is written to the folder."""
    return weights_of(load_checkpoint(write_checkpoint(folder, weights, **settings)))


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_logits_are_those_of_transformers(kind, checkpoints, frozen):
    """Sources of PEGASUS and T5 are longer than in config.json, those of BART cut."""
    network = checkpoints[kind].network
    source, target = frozen[f"{kind}/source"], frozen[f"{kind}/target"]
    assert network.config.max_source_tokens == source.shape[1] != POSITIONS
    readable = source != SOURCE_PADDING
    states, logits = frozen[f"{kind}/states"], frozen[f"{kind}/logits"]
    assert 0.7 < readable.mean() < 0.8 and logits.std() > 0.5
    assert source[0, 3] == network.config.pad_id
    np.testing.assert_allclose(
        np.asarray(network.encode(source).states)[readable],
        states[readable],
        rtol=1e-4,
        atol=1e-4,
    )
    np.testing.assert_allclose(
        np.asarray(network(source, target))[..., LOGITS], logits, rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("kind", small_encoder_checkpoint.SETTINGS)
def test_every_hidden_state_of_an_encoder_is_that_of_transformers(
    kind, frozen, tmp_path
):
    encoder = load_encoder(write_encoder(tmp_path, kind))
    source, expected = frozen[f"{kind}/source"], frozen[f"{kind}/states"]
    readable = source != SOURCE_PADDING
    states = states_of(encoder, source)
    assert len(states) == len(expected) == 3 and readable.mean() == 0.75
    for state, expected_state in zip(states, expected, strict=True):
        np.testing.assert_allclose(state[readable], expected_state[readable], atol=1e-5)


def test_names_without_their_prefix_and_several_files(checkpoints, tmp_path):
    weights = weights_of(checkpoints["bart"])
    plain = {name.removeprefix("model."): value for name, value in tensors().items()}
    np.testing.assert_equal(read_weights(tmp_path, plain), weights)
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
    np.testing.assert_equal(weights_of(load_checkpoint(str(tmp_path))), weights)
    (tmp_path / "b.safetensors").unlink()
    message = (
        "b.safetensors: missing, and model.safetensors.index.json names it; download"
    )
    with pytest.raises(DataError, match=message):
        load_checkpoint(str(tmp_path))
    for name in ("../b.safetensors", f"{tmp_path}/a.safetensors"):
        index["weight_map"]["x"] = name
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
        message = f"index.json: it names the file '{name}', which does not lie within"
        with pytest.raises(DataError, match=message):
            load_checkpoint(str(tmp_path))
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    message = r"index.json: damaged \(weight_map is missing\); download the checkpoint"
    with pytest.raises(DataError, match=message):
        load_checkpoint(str(tmp_path))


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
@pytest.mark.parametrize("number_format", ["float16", "float32"])
def test_tensors_that_are_not_finite_are_refused(value, word, number_format, tmp_path):
    name = "model.encoder.layers.0.fc1.bias"
    values = tensors()[name].astype(number_format)
    values[-1] = value
    with pytest.raises(
        DataError,
        match=rf"model.safetensors: the tensor {name} holds {word}; download",
    ):
        read_weights(tmp_path, {**tensors(), name: values})


def test_repeated_tensors_of_a_tied_network_must_be_equal(checkpoints, tmp_path):
    weights, table = weights_of(checkpoints["bart"]), tensors()["model.shared.weight"]
    repeated = changed_tensors(
        lm_head__weight=table,
        model__encoder__embed_tokens__weight=table,
        model__decoder__version=OTHER,
    )
    np.testing.assert_equal(read_weights(tmp_path, repeated), weights)
    # It may be there under this name alone.
    alone = changed_tensors(lm_head__weight=table, model__shared__weight=None)
    np.testing.assert_equal(read_weights(tmp_path, alone), weights)
    message = (
        "shared.weight and encoder.embed_tokens.weight differ, "
        "and a network here has one embedding"
    )
    with pytest.raises(DataError, match=message):
        read_weights(
            tmp_path, changed_tensors(model__encoder__embed_tokens__weight=OTHER)
        )


@pytest.mark.parametrize("settings", [{}, {"tie_word_embeddings": False}])
def test_a_separate_tensor_makes_an_output_layer(settings, checkpoints, tmp_path):
    weights = weights_of(checkpoints["bart"])
    output = np.full((VOCABULARY, 8), 3, "float32")
    imported = read_weights(
        tmp_path, changed_tensors(lm_head__weight=output), settings=settings
    )
    assert (imported["output_layer/kernel"] == 3).all()
    bias = weights.pop("embedding/logits_bias")
    np.testing.assert_array_equal(imported["output_layer/bias"], bias)
    np.testing.assert_equal({path: imported[path] for path in weights}, weights)
    assert len(imported) == len(weights) + 2


def test_the_table_of_an_untied_network_may_be_stored_for_each_side(tmp_path):
    table, output = (np.full((VOCABULARY, 8), value, "float32") for value in (1, 3))
    tables = {
        "lm_head__weight": output,
        "model__encoder__embed_tokens__weight": table,
        "model__decoder__embed_tokens__weight": table,
    }
    untied = {"tie_word_embeddings": False}
    imported = read_weights(tmp_path, changed_tensors(**tables), settings=untied)
    assert (imported["embedding/table"] == 1).all()
    assert (imported["output_layer/kernel"] == 3).all()
    tables["model__decoder__embed_tokens__weight"] = OTHER
    message = (
        "encoder.embed_tokens.weight and decoder.embed_tokens.weight differ, "
        "and a network here has one"
    )
    with pytest.raises(DataError, match=message):
        read_weights(tmp_path, changed_tensors(**tables), settings=untied)


def test_a_missing_bias_of_the_logits_is_zero(tmp_path):
    imported = read_weights(tmp_path, changed_tensors(final_logits_bias=None))
    assert not imported["embedding/logits_bias"].any()


def test_the_table_of_a_tied_t5_may_have_the_name_of_the_output(checkpoints, tmp_path):
    made = tensors("t5")
    made["lm_head.weight"] = made.pop("shared.weight")
    np.testing.assert_equal(
        read_weights(tmp_path, made, kind="t5"), weights_of(checkpoints["t5"])
    )


def test_positions_that_files_hold_without_need_are_not_read(checkpoints, tmp_path):
    computed = {
        f"model.{side}.embed_positions.weight": np.ones((POSITIONS, 8), "float32")
        for side in ("encoder", "decoder")
    }
    # Older files of T5 repeat the table of the first block.
    repeated = dict.fromkeys(
        (
            f"encoder.block.1.{DISTANCES}",
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
        ),
        np.ones((8, 2), "float32"),
    )
    for kind, more in (("pegasus", computed), ("t5", repeated)):
        imported = read_weights(tmp_path / kind, {**tensors(kind), **more}, kind=kind)
        np.testing.assert_equal(imported, weights_of(checkpoints[kind]))


def encoder_weights(folder: Path, kind: str, weights=None) -> dict[str, np.ndarray]:
    encoder = load_encoder(write_encoder(folder, kind, weights))
    return {weight.path.split("/", 1)[1]: weight.numpy() for weight in encoder.weights}


@pytest.mark.parametrize("kind", small_encoder_checkpoint.SETTINGS)
def test_a_prefix_and_the_heads_of_tasks_change_nothing(kind, tmp_path):
    stored = small_encoder_checkpoint.tensors(kind)
    other = np.ones((3, 8), "float32")
    heads = {
        f"{kind}.pooler.dense.weight": other,
        f"{kind}.embeddings.position_ids": np.arange(24)[None],
        "cls.predictions.decoder.weight": other,
        "classifier.bias": other,
        "lm_head.bias": other,
    }
    prefixed = {f"{kind}.{name}": tensor for name, tensor in stored.items()}
    if kind == "bert":  # Norms may have their older names.
        for new, old in (("weight", "gamma"), ("bias", "beta")):
            prefixed = {
                name.replace(f"LayerNorm.{new}", f"LayerNorm.{old}"): tensor
                for name, tensor in prefixed.items()
            }
        assert sum("gamma" in name for name in prefixed) == 5
    np.testing.assert_equal(
        encoder_weights(tmp_path / "prefixed", kind, {**prefixed, **heads}),
        encoder_weights(tmp_path / "plain", kind),
    )


def test_weights_of_16_bits_become_float32(tmp_path):
    values = np.array([[1.5, -2.25, 3.0e-3, 65504.0]], "float32")
    # The upper half of a float32 is a bfloat16, rounded towards zero.
    halves = (values.view("<u4") >> 16).astype("<u2")
    spec = safetensors.TensorSpec(
        dtype="bfloat16",
        shape=[2, 2],
        data_ptr=halves.ctypes.data,
        data_len=halves.nbytes,
    )
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors.serialize({"x": spec}, None))
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert numbers.dtype == np.float32
    assert numbers.tolist() == [[1.5, -2.25], [0.00299072265625, 65280.0]]
    safetensors.numpy.save_file({"x": values.astype("float16")}, path)
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert numbers.dtype == np.float32
    assert numbers.tolist() == values.astype("float16").tolist()
