"""Tiny presets of keras-hub, in the layout that keras-hub wrote.

`frozen_reference` says how data/presets.json was made, which holds their configurations
and the paths and shapes of their weights.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

_DESCRIBED = Path(__file__).parent.parent / "data" / "presets.json"


def fill_weights(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Different random numbers for each weight, by path."""
    weights = {}
    for path, shape in shapes.items():
        seed = int.from_bytes(hashlib.sha256(path.encode()).digest()[:4])
        values = 0.5 * np.random.default_rng(seed).normal(size=shape)
        # Norms near the identity.
        if "norm" in path and path.endswith("vars/0"):
            values += 1
        weights[path] = values.astype("float32")
    return weights


def describe(kind: str = "bert") -> dict[str, Any]:
    """The config.json of a preset and the shapes of its weights."""
    return json.loads(_DESCRIBED.read_text())[kind]


def arrays(kind: str = "bert") -> dict[str, np.ndarray]:
    """The weights of a preset."""
    return fill_weights(describe(kind)["shapes"])


def write_hdf5(path: Path, content: dict[str, np.ndarray]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in content.items():
            file[name] = array


def write_preset(
    folder: Path, kind: str = "bert", content: dict[str, np.ndarray] | None = None
) -> str:
    """Writes a preset without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(describe(kind)["config"]))
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
