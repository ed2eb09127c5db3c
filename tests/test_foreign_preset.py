"""Presets of keras-hub, written here by hand: the tensors find their places, and what
cannot be read is refused by name.
"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from small_checkpoint import VOCABULARY as PAIRS
from small_checkpoint import write_tokenizer
from small_encoder_checkpoint import (
    INNER,
    LAYERS,
    PIECES,
    POSITIONS,
    VOCABULARY,
    WIDTH,
    tensors,
    write_encoder,
)

from precis.model.bundle.converters.checkpoint import (
    ENCODERS,
    load_encoder,
    read_settings,
)
from precis.model.bundle.converters.keras_preset import preset_settings
from precis.model.bundle.converters.preset_tensors import preset_tensors
from precis.model.bundle.converters.tensors import Tensor, read_tensors, weight_files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.model.tokenization.definitions import preset_tokenizer_settings

SHAPE = {
    "vocabulary_size": VOCABULARY,
    "num_layers": LAYERS,
    "num_heads": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": INNER,
}
CONFIG = {**SHAPE, "dropout": 0.3, "max_sequence_length": POSITIONS}
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
BACKBONES = {"bert": "BertBackbone", "roberta": "RobertaBackbone"}
# The parts of a layer there and in a checkpoint, and whether there it has heads.
PARTS = {
    **{
        f"_self_attention_layer/{part}_dense": (f"attention.self.{part}", "in")
        for part in ("query", "key", "value")
    },
    "_self_attention_layer/output_dense": ("attention.output.dense", "out"),
    "_self_attention_layer_norm": ("attention.output.LayerNorm", None),
    "_feedforward_intermediate_dense": ("intermediate.dense", ""),
    "_feedforward_output_dense": ("output.dense", ""),
    "_feedforward_layer_norm": ("output.LayerNorm", None),
}


def arrays(kind: str = "bert") -> dict[str, np.ndarray]:
    """What a preset holds of the encoder that `small_encoder_checkpoint` writes."""
    theirs = tensors(kind)
    words, positions = (
        theirs["embeddings.word_embeddings.weight"],
        theirs["embeddings.position_embeddings.weight"],
    )
    both = "layers/token_and_position_embedding"
    made = {
        f"layers/layer_normalization/vars/{i}": theirs[f"embeddings.LayerNorm.{leaf}"]
        for i, leaf in enumerate(("weight", "bias"))
    }
    if kind == "bert":
        made |= {
            "layers/reversible_embedding/vars/0": words,
            "layers/position_embedding/vars/0": positions,
        }
        made |= {
            "layers/embedding/vars/0": theirs["embeddings.token_type_embeddings.weight"]
        }
        made |= {
            "layers/dense/vars/0": np.ones((WIDTH, WIDTH), "float32"),
            "layers/dense/vars/1": np.ones(WIDTH, "float32"),
        }
    else:
        made |= {
            f"{both}/token_embedding/vars/0": words,
            f"{both}/position_embedding/vars/0": positions[2:],
        }
    for layer in range(LAYERS):
        name = "layers/transformer_encoder" + (f"_{layer}" if layer else "")
        for part, (other, heads) in PARTS.items():
            weight, bias = (
                theirs[f"encoder.layer.{layer}.{other}.{leaf}"]
                for leaf in ("weight", "bias")
            )
            if heads is not None:
                weight = weight.T
            if heads == "in":
                weight, bias = weight.reshape(WIDTH, 2, -1), bias.reshape(2, -1)
            elif heads == "out":
                weight = weight.reshape(2, -1, WIDTH)
            made |= {f"{name}/{part}/vars/0": weight, f"{name}/{part}/vars/1": bias}
    return made


def write_hdf5(path: Path, content: dict[str, np.ndarray]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in content.items():
            file[name] = array


def write_preset(
    folder: Path,
    kind: str = "bert",
    content: dict[str, np.ndarray] | None = None,
    **config: Any,
) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    described = {
        "registered_name": f"keras_hub>{BACKBONES[kind]}",
        "config": {**CONFIG, **config},
    }
    (folder / "config.json").write_text(json.dumps(described))
    write_hdf5(
        folder / "model.weights.h5", arrays(kind) if content is None else content
    )
    return str(folder)


@pytest.mark.parametrize("kind", BACKBONES)
def test_a_preset_is_read_as_the_checkpoint_of_the_same_weights(kind, tmp_path):
    theirs = tensors(kind)
    if kind == "roberta":  # a preset has no vector for the first of two texts
        theirs["embeddings.token_type_embeddings.weight"][:] = 0
    act = "gelu_new" if kind == "bert" else "gelu"
    expected = load_encoder(
        write_encoder(tmp_path / "checkpoint", kind, theirs, {"hidden_act": act})
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
    found = preset_tensors(
        read_tensors(str(folder)), load_config(folder), ENCODERS["bert"]
    )
    assert {
        "encoder.layer.1.attention.self.key.weight",
        "embeddings.token_type_embeddings.weight",
        "pooler.dense.bias",
    } < found.keys()


def load_config(folder: Path) -> Any:
    return ENCODERS["bert"].network(read_settings(str(folder)))


def test_weights_in_several_files(tmp_path):
    content = arrays()
    folder = Path(write_preset(tmp_path))
    (folder / "model.weights.h5").unlink()
    names = sorted(content)
    shards = {
        "model_00000.weights.h5": names[::2],
        "model_00001.weights.h5": names[1::2],
    }
    for name, part in shards.items():
        write_hdf5(folder / name, {path: content[path] for path in part})
    # The kernel and the bias of a layer may lie in two files.
    places = {f"/{path.rpartition('/')[0]}": list(shards) for path in names[:-1]} | {
        "/layers/embedding/vars": "model_00000.weights.h5"
    }
    (folder / "model.weights.json").write_text(json.dumps({"weight_map": places}))
    assert weight_files(str(folder)) == list(shards)
    assert {
        name: tensor.numbers().tolist()
        for name, tensor in read_tensors(str(folder)).items()
    } == {name: array.tolist() for name, array in content.items()}
    (folder / "model_00001.weights.h5").unlink()
    with pytest.raises(
        DataError,
        match="model_00001.weights.h5: missing, and model.weights.json names it; download the checkpoint again",
    ):
        weight_files(str(folder))
    (folder / "model.weights.json").write_text('{"weight_map": {"/layers": 3}}')
    with pytest.raises(
        DataError,
        match=r"model.weights.json: no index of weights \(TypeError.*\); download the checkpoint again",
    ):
        weight_files(str(folder))


@pytest.mark.parametrize(
    ("array", "number_format"),
    [
        (np.array([1.5, -2.0], "float16"), "F16"),
        (np.array([1.5, -2.0], "float64"), "F64"),
        (np.array([1.5, -2.0], ">f4"), ">f4"),
        (np.array([1, -2], "int8"), "int8"),
    ],
)
def test_number_formats(array, number_format, tmp_path):
    write_hdf5(tmp_path / "model.weights.h5", {"layers/a/vars/0": array})
    (tensor,) = read_tensors(str(tmp_path)).values()
    assert (tensor.format, tensor.shape) == (number_format, (2,))
    if number_format.startswith("F"):
        assert tensor.numbers().tolist() == [1.5, -2.0]


def test_numbers_of_bfloat16(tmp_path):
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file["layers/a/vars/0"] = np.array([0x3FC0, 0xC000], "<u2").view("V2")
        file["layers/a/vars/0"].attrs["dtype"] = "bfloat16"
    (tensor,) = read_tensors(str(tmp_path)).values()
    assert tensor.numbers().tolist() == [1.5, -2.0]


def test_what_lies_in_another_file_is_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(8))
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file.create_dataset(
            "layers/a/vars/0",
            (2,),
            "float32",
            external=[(str(tmp_path / "secret"), 0, 8)],
        )
    with pytest.raises(
        DataError,
        match="model.weights.h5: layers/a/vars/0 lies in another file, which is not read; save the preset again",
    ):
        read_tensors(str(tmp_path))
    write_hdf5(tmp_path / "other.h5", {"a": np.ones(2)})
    layout = h5py.VirtualLayout((2,), "float64")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "a", (2,))
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file.create_virtual_dataset("layers/a/vars/0", layout)
    with pytest.raises(DataError, match="layers/a/vars/0 lies in another file"):
        read_tensors(str(tmp_path))


def test_damaged_weights_are_refused(tmp_path):
    path = Path(write_preset(tmp_path)) / "model.weights.h5"
    content = path.read_bytes()
    for damaged in (b"no HDF5", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(
            DataError, match=rf"{path}: damaged \(.*\); download the preset again"
        ):
            read_tensors(str(tmp_path))


def test_whatever_is_damaged_is_said_to_be(tmp_path):
    path = Path(write_preset(tmp_path)) / "model.weights.h5"
    content, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 6):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            read_tensors(str(tmp_path))
        except DataError as error:
            refused += str(error).startswith(f"{path}: damaged (")
    assert refused > 50  # in the others a number was hit, or what nobody reads


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
            "holds layers/layer_normalization_1/vars/0, which no network of this kind has",
        ),
        (
            {"layers/layer_normalization/vars/2": 1},
            "holds layers/layer_normalization/vars/2, which no network of this kind has",
        ),
        ({"vars/0": 1}, "holds vars/0, which no network of this kind has"),
        (
            {"layers/reversible_embedding/vars/0": 2},
            "layers/reversible_embedding/vars/0: its number format is int8, and only floating-point",
        ),
        (
            {"layers/position_embedding/vars/0": 3},
            r"position_embeddings.weight has the shape \[3, 8\], and config.json asks for \[24, 8\]",
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


def test_settings_of_a_network_that_writes():
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
            r"no settings of a BertBackbone \(KeyError\('config'\)\); save the preset again",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(config, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=rf"^{tmp_path}: .*{message}"):
        read_settings(str(tmp_path))


def test_a_backbone_that_is_not_known_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"registered_name": "keras_hub>GemmaBackbone", "config": {}})
    )
    with pytest.raises(
        UsageError,
        match="model_type is 'keras_hub>GemmaBackbone', and what can be imported is bart",
    ):
        read_settings(str(tmp_path))


def write_assets(folder: Path, content: dict[str, bytes], **config: Any) -> None:
    assets = folder / "assets" / "tokenizer"
    assets.mkdir(parents=True, exist_ok=True)
    for name, part in content.items():
        (assets / name).write_bytes(part)
    if config:
        (folder / "tokenizer.json").write_text(
            json.dumps({"registered_name": "keras_hub>Tokenizer", "config": config})
        )


def test_the_word_pieces_of_a_preset(tmp_path):
    settings = {"model_type": "bert", "vocab_size": len(PIECES) + 2}
    vocabulary = {
        "vocabulary.txt": "".join(
            f"{piece}\n" for piece in [*PIECES, "##ss", "##σ"]
        ).encode()
    }
    write_assets(tmp_path, vocabulary)
    assert tokenizer_files(str(tmp_path)) == ["assets/tokenizer/vocabulary.txt"]
    texts = ["Rain fell", "aß café 東京", "rains!", "ｆａｌｌ aς"]

    def cut() -> list[str]:
        found = read_tokenizer(str(tmp_path), settings).encode(texts)
        return [
            " ".join([*PIECES, "##ss", "##σ"][token] for token in ids) for ids in found
        ]

    # Without a word about it, as keras-hub has it by default: letters as they are.
    assert cut() == [
        "[CLS] [UNK] fell [SEP]",
        "[CLS] [UNK] [UNK] 東 京 [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] [UNK] [UNK] [SEP]",
    ]
    write_assets(
        tmp_path, vocabulary, lowercase=True, strip_accents=True, split_on_cjk=False
    )
    assert tokenizer_files(str(tmp_path)) == [
        "assets/tokenizer/vocabulary.txt",
        "tokenizer.json",
    ]
    assert cut() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss cafe [UNK] [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    write_assets(tmp_path, vocabulary, lowercase=True, oov_token="nobody")
    assert cut() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss nobody 東 京 [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    assert preset_tokenizer_settings({}) == preset_tokenizer_settings({"config": {}})


def test_the_byte_pairs_of_a_preset(tmp_path):
    folder = Path(write_tokenizer(tmp_path / "checkpoint", as_definition=False))
    names = {"vocab.json": "vocabulary.json", "merges.txt": "merges.txt"}
    write_assets(
        tmp_path,
        {there: (folder / here).read_bytes() for here, there in names.items()},
        add_prefix_space=False,
    )
    settings = {
        "model_type": "bart",
        "vocab_size": PAIRS,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 1,
    }
    tokenizer, expected = (
        read_tokenizer(str(tmp_path), settings),
        read_tokenizer(str(folder), settings),
    )
    assert tokenizer_files(str(tmp_path)) == [
        "assets/tokenizer/vocabulary.json",
        "assets/tokenizer/merges.txt",
    ]
    assert tokenizer.fingerprint == expected.fingerprint and tokenizer.around == (
        (0,),
        (2,),
    )


def test_the_sentencepiece_model_of_a_preset(tmp_path):
    from test_sentencepiece import IDS, spiece

    write_assets(tmp_path, {"vocabulary.spm": spiece()}, add_eos=False)
    tokenizer = read_tokenizer(
        str(tmp_path), {"model_type": "t5", "vocab_size": len(IDS)}
    )
    assert tokenizer.encode(["rain"])[0].tolist() == [
        IDS["▁rain"],
        1,
    ] and tokenizer.vocabulary_size == len(IDS)


def test_a_tensor_that_is_not_known_keeps_its_path():
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
