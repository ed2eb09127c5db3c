"""The tensors in the files of a checkpoint.

A checkpoint in the layout of Hugging Face has model.safetensors, a keras-hub preset has
an HDF5 file. Either may be split into several files that an index names.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.finite import check_finite
from precis.model.errors import DataError, UsageError

if TYPE_CHECKING:
    import h5py

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PRESET_FILE = "model.weights.h5"
PRESET_INDEX_FILE = "model.weights.json"

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
    for name, index in ((WEIGHTS_FILE, INDEX_FILE), (PRESET_FILE, PRESET_INDEX_FILE)):
        if files.exists(files.join(folder, name)):
            return [name]
        if files.exists(files.join(folder, index)):
            return _indexed_files(folder, index)
    if files.glob(files.join(folder, "pytorch_model*.bin")):
        raise UsageError(
            f"{folder}: the weights are a pickle (pytorch_model.bin), which may run "
            "any program and is not read; convert it once where you trust it: "
            "transformers' AutoModelForSeq2SeqLM, or AutoModel for an encoder, "
            ".from_pretrained(DIR).save_pretrained(NEW, safe_serialization=True)"
        )
    raise UsageError(
        f"{folder}: there is neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a folder "
        f"that a checkpoint was downloaded to, or a preset with {PRESET_FILE}"
    )


def _indexed_files(folder: str, index: str) -> list[str]:
    """The names of the files in an index.

    The index of a preset names several files for a layer whose weights they share.
    """
    path = files.join(folder, index)
    content = files.read_object(path, way_out=_WAY_OUT, fields={"weight_map": dict})
    names: set[str] = set()
    with files.naming_damage(path, way_out=_WAY_OUT):
        for place in content["weight_map"].values():
            names.update([place] if isinstance(place, str) else place)
        ordered = sorted(names)
    for name in ordered:
        if not files.exists(files.path_within(folder, name, listed_in=path)):
            raise DataError(
                f"{files.join(folder, name)}: missing, and {index} names it; "
                "download the checkpoint again"
            )
    return ordered


def read_tensors(folder: str) -> dict[str, Tensor]:
    """All tensors of a checkpoint by name; those of a preset by path.

    Raises:
      UsageError: there is no file of weights that may be read.
      DataError: a file is missing or damaged, or holds a weight that is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for name in weight_files(folder):
        read = _read_hdf5 if name.endswith(".h5") else _read_safetensors
        path = files.join(folder, name)
        stored = read(path)
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


def _read_hdf5(path: str) -> dict[str, Tensor]:
    import h5py

    tensors: dict[str, Tensor] = {}

    def add_tensor(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        # Such a file could name any other file of this machine.
        if item.external or item.is_virtual:
            raise DataError(
                f"{path}: {name} lies in another file, which is not read; "
                "save the preset again"
            )
        tensors[name] = _dataset_tensor(item)

    try:
        with files.open_read(path) as file, h5py.File(file, "r") as store:
            store.visititems(add_tensor)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise DataError(
            f"{path}: damaged ({error}); download the preset again"
        ) from error
    return tensors


def _dataset_tensor(dataset: "h5py.Dataset") -> Tensor:
    values = np.asarray(dataset)
    number_format = str(values.dtype)
    for name, dtype in _FORMATS.items():
        if values.dtype == dtype:
            number_format = name
    if dataset.attrs.get("dtype") == "bfloat16":  # HDF5 has no such format.
        number_format = "BF16"
    return Tensor(number_format, values.shape, values.tobytes())
