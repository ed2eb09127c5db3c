"""The tensors of a checkpoint: model.safetensors, or the HDF5 of a keras-hub preset,
each in one file or in several.
"""

from typing import NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError

WEIGHTS_FILE, INDEX_FILE = "model.safetensors", "model.safetensors.index.json"
PRESET_FILE, PRESET_INDEX_FILE = "model.weights.h5", "model.weights.json"

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
            return (
                (np.frombuffer(self.content, "<u2").astype("<u4") << 16)
                .view("<f4")
                .reshape(self.shape)
            )
        if self.format not in _FORMATS:
            raise ValueError(f"its number format is {self.format}")
        return (
            np.frombuffer(self.content, _FORMATS[self.format])
            .astype("float32")
            .reshape(self.shape)
        )


def weight_files(folder: str) -> list[str]:
    """The names of the files that hold a checkpoint's weights.

    Raises:
      UsageError: there are none, or only a pickle.
      DataError: a file that the index names is missing.
    """
    for name, index in ((WEIGHTS_FILE, INDEX_FILE), (PRESET_FILE, PRESET_INDEX_FILE)):
        if files.exists(files.join(folder, name)):
            return [name]
        if files.exists(files.join(folder, index)):
            return _indexed_files(folder, index)
    if files.glob(files.join(folder, "pytorch_model*.bin")):
        raise UsageError(
            f"{folder}: the weights are a pickle (pytorch_model.bin), which may run any program and is not read; convert it once where you "
            "trust it: transformers' AutoModelForSeq2SeqLM, or AutoModel for an encoder, .from_pretrained(DIR).save_pretrained(NEW, "
            "safe_serialization=True)"
        )
    raise UsageError(
        f"{folder}: there is neither {WEIGHTS_FILE} nor {INDEX_FILE}; name a folder that a checkpoint was downloaded to, or a preset with "
        f"{PRESET_FILE}"
    )


def _indexed_files(folder: str, index: str) -> list[str]:
    """The files that an index names, each of which may hold a part of one tensor's
    layer.
    """
    path = files.join(folder, index)
    try:
        places = files.read_json(path)["weight_map"].values()
        names = sorted(
            {
                name
                for place in places
                for name in ([place] if isinstance(place, str) else place)
            }
        )
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"{path}: no index of weights ({error!r}); download the checkpoint again"
        ) from error
    for name in names:
        if not files.exists(files.join(folder, name)):
            raise DataError(
                f"{files.join(folder, name)}: missing, and {index} names it; download the checkpoint again"
            )
    return names


def read_tensors(folder: str) -> dict[str, Tensor]:
    """All tensors of a checkpoint by name, of a preset by path.

    Raises:
      UsageError: there is no file of weights that may be read.
      DataError: a file is missing or damaged.
    """
    tensors: dict[str, Tensor] = {}
    for name in weight_files(folder):
        tensors.update(
            (_read_hdf5 if name.endswith(".h5") else _read_safetensors)(
                files.join(folder, name)
            )
        )
    return tensors


def _read_safetensors(path: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError, deserialize

    try:
        found = deserialize(files.read_bytes(path))
    except SafetensorError as error:
        raise DataError(
            f"{path}: damaged ({error}); download the checkpoint again"
        ) from error
    return {
        key: Tensor(value["dtype"], tuple(value["shape"]), value["data"])
        for key, value in found
    }


def _read_hdf5(path: str) -> dict[str, Tensor]:
    import h5py

    tensors: dict[str, Tensor] = {}

    def keep(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if (
            item.external or item.is_virtual
        ):  # the file would say what else to read on this machine
            raise DataError(
                f"{path}: {name} lies in another file, which is not read; save the preset again"
            )
        values = np.asarray(item)
        if item.attrs.get("dtype") == "bfloat16":  # HDF5 knows no such numbers
            number_format = "BF16"
        else:
            number_format = next(
                (key for key, dtype in _FORMATS.items() if values.dtype == dtype),
                str(values.dtype),
            )
        tensors[name] = Tensor(number_format, values.shape, values.tobytes())

    try:
        with files.open_read(path) as file, h5py.File(file, "r") as store:
            store.visititems(keep)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise DataError(
            f"{path}: damaged ({error}); download the preset again"
        ) from error
    return tensors
