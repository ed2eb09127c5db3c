"""Tiny encoders of the BERT type in the layout of Hugging Face, written by hand.

Names and shapes of tensors are those that transformers writes.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from support import read_table

WIDTH, INNER, LAYERS, POSITIONS = 8, 20, 2, 24
# The pieces of a small uncased WordPiece vocabulary. Special tokens have their usual
# names and arbitrary ids.
PIECES = """
[PAD] the [UNK] [CLS] [SEP] [MASK]
rain fell ##s ##ing fall on mon ##day cafe ##e a b c d e f
. , ! ' - in town old it was cold nobody came 東 京 1 ##2 ##a
""".split()
VOCABULARY = len(PIECES) + 2  # tables are often padded
SETTINGS: dict[str, dict[str, Any]] = read_table("small_checkpoints")["encoders"]
BERT = SETTINGS["bert"]
# The linear layers and the norms of a layer by name, with the shapes of their weights.
_SQUARE, _NORM, _IN, _OUT = (WIDTH, WIDTH), (WIDTH,), (INNER, WIDTH), (WIDTH, INNER)
_BERT_LAYER: dict[str, tuple[int, ...]] = {
    **{f"attention.self.{name}": _SQUARE for name in ("query", "key", "value")},
    **{"attention.output.dense": _SQUARE, "attention.output.LayerNorm": _NORM},
    **{"intermediate.dense": _IN, "output.dense": _OUT, "output.LayerNorm": _NORM},
}
_DISTILBERT_LAYER: dict[str, tuple[int, ...]] = {
    **{f"attention.{name}_lin": _SQUARE for name in ("q", "k", "v", "out")},
    **{"sa_layer_norm": _NORM, "ffn.lin1": _IN, "ffn.lin2": _OUT},
    "output_layer_norm": _NORM,
}


def tensors(kind: str = "bert", seed: int = 3) -> dict[str, np.ndarray]:
    """The tensors of an encoder, without a prefix, with different random numbers."""
    rng = np.random.default_rng(seed)
    positions = SETTINGS[kind]["max_position_embeddings"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
        "embeddings.position_embeddings.weight": (positions, WIDTH),
        "embeddings.LayerNorm.weight": _NORM,
        "embeddings.LayerNorm.bias": _NORM,
    }
    layers, parts = "transformer.layer", _DISTILBERT_LAYER
    if kind != "distilbert":
        types = 1 if kind == "roberta" else 2
        shapes["embeddings.token_type_embeddings.weight"] = (types, WIDTH)
        layers, parts = "encoder.layer", _BERT_LAYER
    for layer in range(LAYERS):
        for name, shape in parts.items():
            shapes[f"{layers}.{layer}.{name}.weight"] = shape
            # The bias of a linear layer has one value for each output.
            shapes[f"{layers}.{layer}.{name}.bias"] = shape[:1]
    made = {
        name: (0.5 * rng.normal(size=shape)).astype("float32")
        for name, shape in shapes.items()
    }
    for name, tensor in made.items():
        if name.endswith(("LayerNorm.weight", "layer_norm.weight")):
            tensor += 1
    return made


def write_encoder(
    folder: Path,
    kind: str = "bert",
    weights: dict[str, np.ndarray] | None = None,
    settings: dict[str, Any] | None = None,
) -> str:
    """Writes a checkpoint without a tokenizer; `settings` change its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps({**SETTINGS[kind], **(settings or {})})
    )
    safetensors.numpy.save_file(
        tensors(kind) if weights is None else weights, folder / "model.safetensors"
    )
    return str(folder)


def write_pieces(folder: Path) -> str:
    """Writes the tokenizer.json of a BERT with `PIECES`."""
    from tokenizers import BertWordPieceTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {piece: token for token, piece in enumerate(PIECES)}
    BertWordPieceTokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return str(folder)
