"""A trained network as a folder: configuration, tokenizer, weights, manifest; loads without a network connection and holds no pickle.

config.json            the network's configuration; of an imported one also how it wants to be searched
tokenizer/             vocab.txt and tokenizer.json; of an imported network tokenizers.json
weights.safetensors    one tensor per weight, named by its path in the network
manifest.json          checksums of the files, model_id, what it was trained on or imported from; written last
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from model import files
from model.config import DecodingConfig, DecodingTokens, NetworkConfig
from model.errors import DataError, UsageError
from model.foreign.tokenizer import DEFINITION_FILE, ForeignTokenizer
from model.tokenizer import Tokenizer

if TYPE_CHECKING:  # TensorFlow takes seconds to import: reading a manifest does without it.
    from model.network.transformer import Transformer

FORMAT_VERSION = 1
CONFIG_FILE, TOKENIZER_FOLDER, WEIGHTS_FILE, MANIFEST_FILE = "config.json", "tokenizer", "weights.safetensors", "manifest.json"


class Bundle(NamedTuple):
    """A network that is ready to summarize.

    Attributes:
      network, tokenizer: what they say.
      model_id: the first 16 hexadecimal digits of the sha256 of its files' checksums: names the model in every row it writes.
      special: the special tokens of an imported network; None where the tokenizer knows them.
    """

    network: "Transformer"
    tokenizer: Tokenizer | ForeignTokenizer
    model_id: str
    special: DecodingTokens | None


class Contents(NamedTuple):
    """All of a bundle but its weights.

    Attributes:
      config: the network's.
      tokenizer, model_id, special: as in `Bundle`.
    """

    config: NetworkConfig
    tokenizer: Tokenizer | ForeignTokenizer
    model_id: str
    special: DecodingTokens | None


def save_bundle(
    folder: str,
    *,
    network: "Transformer",
    tokenizer: Tokenizer | ForeignTokenizer,
    provenance: dict[str, Any],
    decoding: DecodingConfig | None = None,
    special: DecodingTokens | None = None,
) -> str:
    """Writes a bundle.

    Args:
      folder: where to; files of the same names are replaced.
      network, tokenizer: what to write.
      provenance: what the network was trained on and how, for the manifest.
      decoding, special: how an imported network wants to be searched.

    Returns:
      The model_id.
    """
    import safetensors.numpy

    files.remove(files.join(folder, MANIFEST_FILE))
    config = {"network": network.config, "decoding": decoding, "special": special}
    content = {name: dataclasses.asdict(part) for name, part in config.items() if part is not None}
    files.write_json(files.join(folder, CONFIG_FILE), {"format_version": FORMAT_VERSION, **content})
    tokenizer.save(files.join(folder, TOKENIZER_FOLDER))
    weights = {weight.path: weight.numpy() for weight in network.weights}
    files.write_bytes(files.join(folder, WEIGHTS_FILE), safetensors.numpy.save(weights))
    names = [CONFIG_FILE, WEIGHTS_FILE]
    checksums = {name: files.sha256_file(files.join(folder, name)) for name in names}
    model_id = _model_id(checksums, tokenizer)
    manifest = {"format_version": FORMAT_VERSION, "model_id": model_id, "sha256": checksums, "tokenizer_fingerprint": tokenizer.fingerprint}
    files.write_json(files.join(folder, MANIFEST_FILE), {**manifest, "provenance": provenance})
    return model_id


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a bundle, without reading its weights.

    Raises:
      UsageError: the folder is no complete bundle, or one of another format version.
      DataError: the manifest is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: this is no complete bundle (no {MANIFEST_FILE}); name the --output of `precis train`, or train again to finish it"
        )
    try:
        manifest = files.read_json(path)
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); copy the bundle again or train it again") from error
    if manifest.get("format_version") != FORMAT_VERSION:
        raise UsageError(
            f"{path}: format_version is {manifest.get('format_version')} and this precis reads {FORMAT_VERSION}; train it again"
        )
    return manifest


def read_decoding(folder: str) -> dict[str, Any]:
    """The fields of `DecodingConfig` that a bundle sets itself, without reading its weights; none where it was trained here.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: config.json differs from the manifest.
    """
    _check_file(folder, CONFIG_FILE, read_manifest(folder))
    return files.read_json(files.join(folder, CONFIG_FILE)).get("decoding", {})


def open_bundle(folder: str) -> Contents:
    """Reads all of a bundle but its weights.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: a file differs from the manifest.
    """
    manifest = read_manifest(folder)
    _check_file(folder, CONFIG_FILE, manifest)
    tokenizer = load_tokenizer(files.join(folder, TOKENIZER_FOLDER))
    if tokenizer.fingerprint != manifest["tokenizer_fingerprint"]:
        raise DataError(f"{files.join(folder, TOKENIZER_FOLDER)}: not the tokenizer that {MANIFEST_FILE} names; copy the bundle again")
    config = files.read_json(files.join(folder, CONFIG_FILE))
    special: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.get("special", {}).items()
    }
    ids = DecodingTokens(**special) if special else None
    return Contents(NetworkConfig(**config["network"]), tokenizer, manifest["model_id"], ids)


def load_bundle(folder: str, *, precision: str = "float32") -> Bundle:
    """Reads a bundle and checks it against its manifest.

    Args:
      folder: the bundle.
      precision: what the layers compute in, as in `build_network`.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: a file differs from the manifest.
    """
    contents = open_bundle(folder)
    _check_file(folder, WEIGHTS_FILE, read_manifest(folder))
    import safetensors.numpy

    from model.network.build import build_network

    network = build_network(contents.config, precision=precision)
    weights = safetensors.numpy.load(files.read_bytes(files.join(folder, WEIGHTS_FILE)))
    for weight in network.weights:
        weight.assign(weights[weight.path])
    return Bundle(network, contents.tokenizer, contents.model_id, contents.special)


def load_tokenizer(folder: str) -> Tokenizer | ForeignTokenizer:
    """The tokenizer of a folder, whichever kind its files are.

    Raises:
      DataError: a file is missing or damaged.
    """
    if files.exists(files.join(folder, DEFINITION_FILE)):
        return ForeignTokenizer.load(folder)
    return Tokenizer.load(folder)


def _check_file(folder: str, name: str, manifest: dict[str, Any]) -> None:
    path = files.join(folder, name)
    if not files.exists(path) or files.sha256_file(path) != manifest["sha256"][name]:
        raise DataError(f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; copy the bundle again or train it again")


def _model_id(checksums: dict[str, str], tokenizer: Tokenizer | ForeignTokenizer) -> str:
    return files.sha256_json({**checksums, "tokenizer": tokenizer.fingerprint})[:16]
