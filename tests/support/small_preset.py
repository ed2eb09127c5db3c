"""Tiny presets of keras-hub, written by hand.

They hold the encoders of `small_encoder_checkpoint`.
"""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from support.small_encoder_checkpoint import (
    INNER,
    LAYERS,
    POSITIONS,
    VOCABULARY,
    WIDTH,
    tensors,
)

SHAPE = {
    "vocabulary_size": VOCABULARY,
    "num_layers": LAYERS,
    "num_heads": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": INNER,
}
CONFIG = {**SHAPE, "dropout": 0.3, "max_sequence_length": POSITIONS}
BACKBONES = {"bert": "BertBackbone", "roberta": "RobertaBackbone"}
# Part of a layer in a preset -> (its name in a checkpoint, its kind). The shape of a
# kernel is [D, H, D / H] for "in", [H, D / H, D] for "out", [in, out] for "dense".
PARTS = {
    **{
        f"_self_attention_layer/{part}_dense": (f"attention.self.{part}", "in")
        for part in ("query", "key", "value")
    },
    "_self_attention_layer/output_dense": ("attention.output.dense", "out"),
    "_self_attention_layer_norm": ("attention.output.LayerNorm", "norm"),
    "_feedforward_intermediate_dense": ("intermediate.dense", "dense"),
    "_feedforward_output_dense": ("output.dense", "dense"),
    "_feedforward_layer_norm": ("output.LayerNorm", "norm"),
}


def arrays(kind: str = "bert") -> dict[str, np.ndarray]:
    """The weights of the encoder of `small_encoder_checkpoint` as a preset has them."""
    stored = tensors(kind)
    positions = stored["embeddings.position_embeddings.weight"]
    weights = {
        "layer_normalization/vars/0": stored["embeddings.LayerNorm.weight"],
        "layer_normalization/vars/1": stored["embeddings.LayerNorm.bias"],
    }
    if kind == "bert":
        weights |= {
            "reversible_embedding/vars/0": stored["embeddings.word_embeddings.weight"],
            "position_embedding/vars/0": positions,
            "embedding/vars/0": stored["embeddings.token_type_embeddings.weight"],
            "dense/vars/0": np.ones((WIDTH, WIDTH), "float32"),
            "dense/vars/1": np.ones(WIDTH, "float32"),
        }
    else:
        embedding = "token_and_position_embedding"
        weights |= {
            f"{embedding}/token_embedding/vars/0": stored[
                "embeddings.word_embeddings.weight"
            ],
            f"{embedding}/position_embedding/vars/0": positions[2:],
        }
    for layer in range(LAYERS):
        name = "transformer_encoder" + (f"_{layer}" if layer else "")
        for part, (checkpoint_part, part_kind) in PARTS.items():
            weight = stored[f"encoder.layer.{layer}.{checkpoint_part}.weight"]
            bias = stored[f"encoder.layer.{layer}.{checkpoint_part}.bias"]
            if part_kind == "in":
                weight = weight.T.reshape(WIDTH, 2, -1)
                bias = bias.reshape(2, -1)
            elif part_kind == "out":
                weight = weight.T.reshape(2, -1, WIDTH)
            elif part_kind == "dense":
                weight = weight.T
            weights[f"{name}/{part}/vars/0"] = weight
            weights[f"{name}/{part}/vars/1"] = bias
    return {f"layers/{path}": weight for path, weight in weights.items()}


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
    """Writes a preset without a tokenizer; `config` changes the arguments."""
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


def write_assets(folder: Path, content: dict[str, bytes], **config: Any) -> None:
    """Writes the files of a tokenizer and, with `config`, its tokenizer.json."""
    assets = folder / "assets" / "tokenizer"
    assets.mkdir(parents=True, exist_ok=True)
    for name, part in content.items():
        (assets / name).write_bytes(part)
    if config:
        (folder / "tokenizer.json").write_text(
            json.dumps({"registered_name": "keras_hub>Tokenizer", "config": config})
        )
