"""A trained network as a folder: configuration, tokenizer, weights, manifest; loads without a network connection and holds no pickle.

config.json            the network's configuration
tokenizer/             vocab.txt, tokenizer.json
weights.safetensors    one tensor per weight, named by its path in the network
manifest.json          checksums of the files, model_id, what it was trained on; written last
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from model import files
from model.config import NetworkConfig
from model.errors import DataError, UsageError
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
    """

    network: "Transformer"
    tokenizer: Tokenizer
    model_id: str


def save_bundle(folder: str, *, network: "Transformer", tokenizer: Tokenizer, provenance: dict[str, Any]) -> str:
    """Writes a bundle.

    Args:
      folder: where to; files of the same names are replaced.
      network, tokenizer: what to write.
      provenance: what the network was trained on and how, for the manifest.

    Returns:
      The model_id.
    """
    import safetensors.numpy

    files.remove(files.join(folder, MANIFEST_FILE))
    files.write_json(files.join(folder, CONFIG_FILE), {"format_version": FORMAT_VERSION, "network": dataclasses.asdict(network.config)})
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


def load_bundle(folder: str) -> Bundle:
    """Reads a bundle and checks it against its manifest.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: a file differs from the manifest.
    """
    manifest = read_manifest(folder)
    for name, expected in manifest["sha256"].items():
        path = files.join(folder, name)
        if not files.exists(path) or files.sha256_file(path) != expected:
            raise DataError(f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; copy the bundle again or train it again")
    tokenizer = Tokenizer.load(files.join(folder, TOKENIZER_FOLDER))
    if tokenizer.fingerprint != manifest["tokenizer_fingerprint"]:
        raise DataError(f"{files.join(folder, TOKENIZER_FOLDER)}: not the tokenizer that {MANIFEST_FILE} names; copy the bundle again")
    import safetensors.numpy

    from model.network.build import build_network

    network = build_network(NetworkConfig(**files.read_json(files.join(folder, CONFIG_FILE))["network"]))
    weights = safetensors.numpy.load(files.read_bytes(files.join(folder, WEIGHTS_FILE)))
    for weight in network.weights:
        weight.assign(weights[weight.path])
    return Bundle(network, tokenizer, manifest["model_id"])


def _model_id(checksums: dict[str, str], tokenizer: Tokenizer) -> str:
    return files.sha256_json({**checksums, "tokenizer": tokenizer.fingerprint})[:16]
