"""A checkpoint in the layout of Hugging Face as a network or an encoder of ours: config.json, generation_config.json, model.safetensors."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from model import files
from model.config import DecodingConfig, DecodingTokens, EncoderConfig, NetworkConfig
from model.errors import DataError, UsageError
from model.foreign.architecture import Architecture, current_name, tensor_name
from model.foreign.bart import BART
from model.foreign.bert import BERT, DISTILBERT, ROBERTA
from model.foreign.generation import read_generation
from model.foreign.tensors import Tensor, read_tensors

if TYPE_CHECKING:  # TensorFlow takes seconds to import: a folder that cannot be read is refused without it.
    from model.network.encoder import Encoder
    from model.network.transformer import Transformer

CONFIG_FILE, GENERATION_FILE = "config.json", "generation_config.json"
# By model_type: what writes summaries, and what only reads.
ENCODER_DECODERS: Mapping[str, Architecture[NetworkConfig]] = {"bart": BART}
ENCODERS: Mapping[str, Architecture[EncoderConfig]] = {"bert": BERT, "distilbert": DISTILBERT, "roberta": ROBERTA}


class Checkpoint(NamedTuple):
    """What a checkpoint holds besides its tokenizer.

    Attributes:
      network: with the checkpoint's weights.
      decoding, special: how it wants to be searched.
    """

    network: "Transformer"
    decoding: DecodingConfig
    special: DecodingTokens


def read_settings(folder: str, *, among: Collection[str] = (*ENCODER_DECODERS, *ENCODERS)) -> dict[str, Any]:
    """The config.json of a checkpoint that can be imported.

    Args:
      folder: the checkpoint.
      among: the model_types that it may have.

    Raises:
      UsageError: the folder is no checkpoint, or one of another model_type.
      DataError: config.json is damaged.
    """
    if not files.exists(folder):
        raise UsageError(f"{folder}: there is no such folder; name one that a checkpoint was downloaded to")
    if not files.exists(files.join(folder, CONFIG_FILE)):
        raise UsageError(f"{folder}: this is no checkpoint (no {CONFIG_FILE}); name the folder that holds {CONFIG_FILE} and the weights")
    settings = _read_object(files.join(folder, CONFIG_FILE))
    if (kind := settings.get("model_type")) not in among:
        raise UsageError(f"{folder}: model_type is {kind!r}, and what can be imported is {', '.join(among)}; take such a checkpoint")
    return settings


def load_checkpoint(folder: str, *, precision: str = "float32") -> Checkpoint:
    """Reads the network of a checkpoint that writes, and its generation settings; its tokenizer is not needed.

    Args:
      folder: the checkpoint.
      precision: what the layers compute in; the weights are float32, whatever the checkpoint's are.

    Raises:
      UsageError: the folder is no checkpoint that can be imported.
      DataError: a file is damaged, a tensor missing, unexpected or of another shape, or a setting not supported.
    """
    settings = read_settings(folder, among=ENCODER_DECODERS)
    architecture, path = ENCODER_DECODERS[settings["model_type"]], files.join(folder, GENERATION_FILE)
    generation = _read_object(path) if files.exists(path) else None
    with _naming(folder):
        config = architecture.network(settings)
        decoding, special = read_generation(settings, generation)
    tensors = read_tensors(folder)
    from model.network.build import build_network

    network = build_network(config, precision=precision)
    _assign(network, folder, tensors, architecture)
    return Checkpoint(network, decoding, special)


def load_encoder(folder: str, *, precision: str = "float32") -> "Encoder":
    """Reads the encoder of a checkpoint of the BERT type; its tokenizer is not needed.

    Args:
      folder, precision: as in `load_checkpoint`.

    Raises:
      UsageError, DataError: as there.
    """
    settings = read_settings(folder, among=ENCODERS)
    architecture = ENCODERS[settings["model_type"]]
    with _naming(folder):
        config = architecture.network(settings)
    tensors = read_tensors(folder)
    from model.network.build import build_encoder

    encoder = build_encoder(config, precision=precision)
    _assign(encoder, folder, tensors, architecture)
    return encoder


@contextlib.contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Names the folder in what is wrong with its settings."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"{folder}/{CONFIG_FILE}: {error.args[0]} is missing; download the checkpoint again") from error
    except (DataError, UsageError) as error:
        raise DataError(f"{folder}: {error}") from error


def _assign(network: "Transformer | Encoder", folder: str, tensors: Mapping[str, Tensor], architecture: Architecture[Any]) -> None:
    """Puts every tensor of the folder in its place."""
    found = {current_name(name, architecture): tensor for name, tensor in tensors.items()}
    needed = {weight.path: tensor_name(weight.path.split("/", 1)[1], architecture) for weight in network.weights}
    try:
        _check_names(found, {*needed.values(), *architecture.added.values()}, network.config, architecture)
        for weight in network.weights:
            name = needed[weight.path]
            if name in found:
                weight.assign(_laid_out(weight, name, found, architecture))
            else:
                weight.assign(np.zeros(weight.shape, "float32"))
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error


def _check_names(
    found: dict[str, Tensor], needed: set[str], config: NetworkConfig | EncoderConfig, architecture: Architecture[Any]
) -> None:
    """Refuses a checkpoint with other tensors than a network needs; one that stands under another of its names is put under its first."""
    repeats = []
    if isinstance(config, NetworkConfig):
        table, *names = architecture.embedding
        repeats = [name for name in names if name in found and name not in needed]
        if repeats and not (config.tied_output and table in found):
            found[table] = found[repeats[0]]
        if not config.tied_output and any(found[name] != found[table] for name in repeats):
            raise DataError(
                f"{' and '.join(repeats)} differ, and a network here has one embedding for source and target; it cannot be imported"
            )
    if missing := needed - found.keys() - set(architecture.optional):
        raise DataError(f"the checkpoint lacks {_listed(missing)}, which config.json asks for; download both again")
    others = found.keys() - needed - {*repeats, *architecture.optional}
    if unexpected := [name for name in others if not name.startswith(architecture.ignored)]:
        raise DataError(
            f"the checkpoint holds {_listed(unexpected)}, which no network of this kind has; take one of the plain architecture"
        )


def _laid_out(weight: Any, name: str, found: Mapping[str, Tensor], architecture: Architecture[Any]) -> np.ndarray:
    """A tensor as its weight: linear layers are stored [out, in], some position tables begin with rows that are never read."""
    leaf, shape = weight.path.rsplit("/", 1)[1], tuple(weight.shape)
    expected, skipped = shape, 0
    if leaf == "kernel":
        expected = shape[::-1]
    elif leaf == "positions":
        skipped = architecture.first_position
        expected = (shape[0] + skipped, shape[1])
    elif name in architecture.optional:
        expected = (1, *shape)
    numbers = _numbers(name, found[name], expected)
    if name in architecture.added:
        other = architecture.added[name]
        numbers = numbers + _numbers(other, found[other], (found[other].shape[0], *expected[1:]))[0]
    return numbers.T if leaf == "kernel" else numbers[skipped:].reshape(shape)


def _numbers(name: str, tensor: Tensor, expected: tuple[int, ...]) -> np.ndarray:
    """A tensor's values, float32, if it has the shape that is expected."""
    if tensor.shape != expected:
        raise DataError(f"{name} has the shape {list(tensor.shape)}, and config.json asks for {list(expected)}; download both again")
    try:
        return tensor.numbers()
    except ValueError as error:
        raise DataError(
            f"{name}: {error}, and only floating-point weights of 16, 32 or 64 bits are read; take the checkpoint in one"
        ) from error


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
