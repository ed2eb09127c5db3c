"""The files of presets: several files, number formats, damaged ones, and tokenizers."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.small_checkpoint import VOCABULARY as PAIRS
from support.small_checkpoint import write_tokenizer
from support.small_encoder_checkpoint import PIECES
from support.small_preset import arrays, write_assets, write_hdf5, write_preset

from precis.model.bundle.converters.tensors import read_tensors, weight_files
from precis.model.errors import DataError
from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.model.tokenization.definitions import preset_tokenizer_settings


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
        match=(
            "model_00001.weights.h5: missing, and model.weights.json names it; "
            "download the checkpoint again"
        ),
    ):
        weight_files(str(folder))
    (folder / "model.weights.json").write_text('{"weight_map": {"/layers": 3}}')
    with pytest.raises(
        DataError,
        match=(
            r"model.weights.json: damaged \('int' object is not iterable\); "
            r"download the checkpoint again"
        ),
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


def test_values_in_another_file_are_not_read(tmp_path):
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
        match=(
            "model.weights.h5: layers/a/vars/0 lies in another file, "
            "which is not read; save the preset again"
        ),
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


def test_random_damage_is_reported_as_damage(tmp_path):
    path = Path(write_preset(tmp_path)) / "model.weights.h5"
    content, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(60):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 6):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            read_tensors(str(tmp_path))
        except DataError as error:
            refused += str(error).startswith(f"{path}: damaged (")
    assert refused > 15  # Elsewhere a value was changed, or bytes that are not read.


def test_the_word_pieces_of_a_preset(tmp_path):
    settings = {"model_type": "bert", "vocab_size": len(PIECES) + 2}
    pieces = [*PIECES, "##ss", "##σ"]
    vocabulary = {"vocabulary.txt": "".join(f"{piece}\n" for piece in pieces).encode()}
    write_assets(tmp_path, vocabulary)
    assert tokenizer_files(str(tmp_path)) == ["assets/tokenizer/vocabulary.txt"]
    texts = ["Rain fell", "aß café 東京", "rains!", "ｆａｌｌ aς"]

    def encode() -> list[str]:
        rows = read_tokenizer(str(tmp_path), settings).encode(texts)
        return [" ".join(pieces[token] for token in ids) for ids in rows]

    # The default of keras-hub leaves letters as they are.
    assert encode() == [
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
    assert encode() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss cafe [UNK] [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    write_assets(tmp_path, vocabulary, lowercase=True, oov_token="nobody")
    assert encode() == [
        "[CLS] rain fell [SEP]",
        "[CLS] a ##ss nobody 東 京 [SEP]",
        "[CLS] rain ##s ! [SEP]",
        "[CLS] fall a ##σ [SEP]",
    ]
    assert preset_tokenizer_settings({}) == preset_tokenizer_settings({"config": {}})


def test_the_byte_pairs_of_a_preset(tmp_path):
    folder = Path(write_tokenizer(tmp_path / "checkpoint", as_definition=False))
    content = {
        "vocabulary.json": (folder / "vocab.json").read_bytes(),
        "merges.txt": (folder / "merges.txt").read_bytes(),
    }
    write_assets(tmp_path, content, add_prefix_space=False)
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
    assert (
        tokenizer.fingerprint == expected.fingerprint
        and tokenizer.surrounding_ids
        == (
            (0,),
            (2,),
        )
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
