"""The tensors in the files of a checkpoint.

They lie in model.safetensors, or in several files that an index names.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.finite import check_finite
from precis.model.errors import DataError, UsageError

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

# The number formats of safetensors that NumPy has.
_FORMATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
_WAY_OUT = "download the checkpoint again"


class Tensor(NamedTuple):
    """A tensor as a file stores it.

    Attributes:
      format: the name of its number format in safetensors, as in F32.
      shape: its shape.
      content: its bytes, little-endian.
    """

    format: str
    shape: tuple[int, ...]
    content: bytes

    def numbers(self) -> np.ndarray:
        """The values as float32.

        Raises:
          ValueError: the format is not floating-point of 16, 32 or 64 bits.
        """
        if self.format == "BF16":  # The upper half of a float32.
            upper = np.frombuffer(self.content, "<u2").astype("<u4") << 16
            return upper.view("<f4").reshape(self.shape)
        if self.format not in _FORMATS:
            raise ValueError(f"its number format is {self.format}")
        values = np.frombuffer(self.content, _FORMATS[self.format])
        return values.astype("float32").reshape(self.shape)


def weight_files(folder: str) -> list[str]:
    """The names of the files that hold the weights of a checkpoint.

    Raises:
      UsageError: there are none, or only a pickle.
      DataError: a file that the index names is missing or lies elsewhere.
    """
    if files.exists(files.join(folder, WEIGHTS_FILE)):
        return [WEIGHTS_FILE]
    if files.exists(files.join(folder, INDEX_FILE)):
        return _indexed_files(folder)
    if files.glob(files.join(folder, "pytorch_model*.bin")):
        raise UsageError(
            f"{folder}: the weights are a pickle (pytorch_model.bin), which may run "
            "any program and is not read; convert it once where you trust it: "
            "transformers' AutoModelForSeq2SeqLM, or AutoModel for an encoder, "
            ".from_pretrained(DIR).save_pretrained(NEW, safe_serialization=True)"
        )
    raise UsageError(
        f"{folder}: there is neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a folder "
        "that a checkpoint was downloaded to"
    )


def _indexed_files(folder: str) -> list[str]:
    """The names of the files in the index."""
    path = files.join(folder, INDEX_FILE)
    content = files.read_object(path, way_out=_WAY_OUT, fields={"weight_map": dict})
    with files.naming_damage(path, way_out=_WAY_OUT):
        ordered = sorted(set(content["weight_map"].values()))
    for name in ordered:
        if not files.exists(files.path_within(folder, name, listed_in=path)):
            raise DataError(
                f"{files.join(folder, name)}: missing, and {INDEX_FILE} names it; "
                "download the checkpoint again"
            )
    return ordered


def read_tensors(folder: str) -> dict[str, Tensor]:
    """All tensors of a checkpoint by name.

    Raises:
      UsageError: there is no file of weights that may be read.
      DataError: a file is missing or damaged, or holds a weight that is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for name in weight_files(folder):
        path = files.join(folder, name)
        stored = _read_safetensors(path)
        check_finite(path, _floats(stored), way_out=_WAY_OUT)
        tensors.update(stored)
    return tensors


def _floats(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, np.ndarray]]:
    """The values of those tensors that can become weights, one after the other."""
    for name, tensor in tensors.items():
        if tensor.format == "BF16" or tensor.format in _FORMATS:
            yield name, tensor.numbers()


def _read_safetensors(path: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError, deserialize

    try:
        entries = deserialize(files.read_bytes(path))
    except SafetensorError as error:
        raise DataError(
            f"{path}: damaged ({error}); download the checkpoint again"
        ) from error
    return {
        name: Tensor(entry["dtype"], tuple(entry["shape"]), entry["data"])
        for name, entry in entries
    }
