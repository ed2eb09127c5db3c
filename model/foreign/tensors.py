"""The tensors of a checkpoint: model.safetensors, in one file or in several."""

from typing import NamedTuple

import numpy as np

from model import files
from model.errors import DataError, UsageError

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

_FORMATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


class Tensor(NamedTuple):
    """A tensor as it stands in a file.

    Attributes:
      format: safetensors' name of its number format.
      shape: its shape.
      content: the bytes.
    """

    format: str
    shape: tuple[int, ...]
    content: bytes

    def numbers(self) -> np.ndarray:
        """The values as float32.

        Raises:
          ValueError: they are no floating-point numbers of 16, 32 or 64 bits.
        """
        if self.format == "BF16":  # the upper half of a float32
            return (np.frombuffer(self.content, "<u2").astype("<u4") << 16).view("<f4").reshape(self.shape)
        if self.format not in _FORMATS:
            raise ValueError(f"its number format is {self.format}")
        return np.frombuffer(self.content, _FORMATS[self.format]).astype("float32").reshape(self.shape)


def weight_files(folder: str) -> list[str]:
    """The names of the files that hold a checkpoint's weights.

    Raises:
      UsageError: there are none, or only a pickle.
      DataError: a file that the index names is missing.
    """
    if files.exists(files.join(folder, WEIGHTS_FILE)):
        return [WEIGHTS_FILE]
    index = files.join(folder, INDEX_FILE)
    if files.exists(index):
        try:
            names = sorted(set(files.read_json(index)["weight_map"].values()))
        except (ValueError, KeyError, AttributeError) as error:
            raise DataError(f"{index}: no index of weights ({error!r}); download the checkpoint again") from error
        for name in names:
            if not files.exists(files.join(folder, name)):
                raise DataError(f"{files.join(folder, name)}: missing, and {INDEX_FILE} names it; download the checkpoint again")
        return names
    if files.glob(files.join(folder, "pytorch_model*.bin")):
        raise UsageError(
            f"{folder}: the weights are a pickle (pytorch_model.bin), which may run any program and is not read; convert it once where you "
            "trust it: transformers' AutoModelForSeq2SeqLM, or AutoModel for an encoder, .from_pretrained(DIR).save_pretrained(NEW, "
            "safe_serialization=True)"
        )
    raise UsageError(f"{folder}: there is neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a folder that a checkpoint was downloaded to")


def read_tensors(folder: str) -> dict[str, Tensor]:
    """All tensors of a checkpoint by name.

    Raises:
      UsageError: there is no file of weights that may be read.
      DataError: a file is missing or damaged.
    """
    from safetensors import SafetensorError, deserialize

    tensors: dict[str, Tensor] = {}
    for name in weight_files(folder):
        path = files.join(folder, name)
        try:
            found = deserialize(files.read_bytes(path))
        except SafetensorError as error:
            raise DataError(f"{path}: damaged ({error}); download the checkpoint again") from error
        tensors.update({key: Tensor(value["dtype"], tuple(value["shape"]), value["data"]) for key, value in found})
    return tensors
