"""A checkpoint in the layout of Hugging Face as a network of ours: config.json, generation_config.json, model.safetensors."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from model import files
from model.config import DecodingConfig, DecodingTokens
from model.errors import DataError, UsageError
from model.foreign.architecture import Architecture, tensor_name
from model.foreign.bart import BART
from model.foreign.generation import read_generation
from model.foreign.tensors import Tensor, read_tensors

if TYPE_CHECKING:  # TensorFlow takes seconds to import: a folder that cannot be read is refused without it.
    from model.network.transformer import Transformer

CONFIG_FILE, GENERATION_FILE = "config.json", "generation_config.json"
ARCHITECTURES: Mapping[str, Architecture] = {"bart": BART}


class Checkpoint(NamedTuple):
    """What a checkpoint holds besides its tokenizer.

    Attributes:
      network: with the checkpoint's weights.
      decoding, special: how it wants to be searched.
    """

    network: "Transformer"
    decoding: DecodingConfig
    special: DecodingTokens


def read_settings(folder: str) -> dict[str, Any]:
    """The config.json of a checkpoint that can be imported.

    Raises:
      UsageError: the folder is no checkpoint, or one of an architecture that is not known.
      DataError: config.json is damaged.
    """
    if not files.exists(folder):
        raise UsageError(f"{folder}: there is no such folder; name one that a checkpoint was downloaded to")
    if not files.exists(files.join(folder, CONFIG_FILE)):
        raise UsageError(f"{folder}: this is no checkpoint (no {CONFIG_FILE}); name the folder that holds {CONFIG_FILE} and the weights")
    settings = _read_object(files.join(folder, CONFIG_FILE))
    if (kind := settings.get("model_type")) not in ARCHITECTURES:
        raise UsageError(
            f"{folder}: model_type is {kind!r}, and what can be imported is {', '.join(ARCHITECTURES)}; take such a checkpoint"
        )
    return settings


def load_checkpoint(folder: str, *, precision: str = "float32") -> Checkpoint:
    """Reads the network of a checkpoint and its generation settings; its tokenizer is not needed.

    Args:
      folder: the checkpoint.
      precision: what the layers compute in; the weights are float32, whatever the checkpoint's are.

    Raises:
      UsageError: the folder is no checkpoint that can be imported.
      DataError: a file is damaged, a tensor missing, unexpected or of another shape, or a setting not supported.
    """
    settings = read_settings(folder)
    architecture = ARCHITECTURES[settings["model_type"]]
    generation = files.join(folder, GENERATION_FILE)
    try:
        config = architecture.network(settings)
        decoding, special = read_generation(settings, _read_object(generation) if files.exists(generation) else None)
    except KeyError as error:
        raise DataError(f"{folder}/{CONFIG_FILE}: {error.args[0]} is missing; download the checkpoint again") from error
    except (DataError, UsageError) as error:
        raise DataError(f"{folder}: {error}") from error
    tensors = read_tensors(folder)
    from model.network.build import build_network

    network = build_network(config, precision=precision)
    try:
        _assign(network, tensors, architecture)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    return Checkpoint(network, decoding, special)


def _assign(network: "Transformer", tensors: Mapping[str, Tensor], architecture: Architecture) -> None:
    """Puts every tensor in its place."""
    found = {name.removeprefix(architecture.prefix): tensor for name, tensor in tensors.items()}
    needed = {weight.path: tensor_name(weight.path.split("/", 1)[1], architecture) for weight in network.weights}
    table, *repeats = architecture.embedding
    others = [name for name in repeats if name in found and name not in needed.values()]
    if others and not (network.config.tied_output and table in found):
        found[table] = found[others[0]]
    if not network.config.tied_output and any(found[name] != found[table] for name in others):
        raise DataError(f"{' and '.join(others)} differ, and a network here has one embedding for source and target; it cannot be imported")
    missing = set(needed.values()) - found.keys() - set(architecture.optional)
    if missing:
        raise DataError(f"the checkpoint lacks {_listed(missing)}, which config.json asks for; download both again")
    if unexpected := found.keys() - set(needed.values()) - {*others, *architecture.optional, *architecture.ignored}:
        raise DataError(f"the checkpoint holds {_listed(unexpected)}, which no network of this kind has; take one for text generation")
    for weight in network.weights:
        name = needed[weight.path]
        if name in found:
            _assign_one(weight, name, found[name], architecture)
        else:
            weight.assign(np.zeros(weight.shape, "float32"))


def _assign_one(weight: Any, name: str, tensor: Tensor, architecture: Architecture) -> None:
    """Lays a tensor out as its weight: linear layers are stored [out, in], some position tables begin with rows that are never read."""
    leaf, shape = weight.path.rsplit("/", 1)[1], tuple(weight.shape)
    expected, skipped = shape, 0
    if leaf == "kernel":
        expected = shape[::-1]
    elif leaf == "positions":
        skipped = architecture.first_position
        expected = (shape[0] + skipped, shape[1])
    elif name in architecture.optional:
        expected = (1, *shape)
    if tensor.shape != expected:
        raise DataError(f"{name} has the shape {list(tensor.shape)}, and config.json asks for {list(expected)}; download both again")
    try:
        numbers = tensor.numbers()
    except ValueError as error:
        raise DataError(
            f"{name}: {error}, and only floating-point weights of 16, 32 or 64 bits are read; take the checkpoint in one"
        ) from error
    weight.assign(numbers.T if leaf == "kernel" else numbers[skipped:].reshape(shape))


def _listed(names: Iterable[str]) -> str:
    """Some names and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:5])
    return f"{shown} and {len(ordered) - 5} more" if len(ordered) > 5 else shown


def _read_object(path: str) -> dict[str, Any]:
    try:
        content = files.read_json(path)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); download the checkpoint again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: no JSON object; download the checkpoint again")
    return content
