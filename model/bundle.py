"""A trained network as a folder: configuration, tokenizer, weights, manifest; loads without a network connection and holds no pickle.

config.json            the network's configuration; of an imported one also how it wants to be searched
tokenizer/             vocab.txt and tokenizer.json; of an imported network tokenizers.json
weights.safetensors    one tensor per weight, named by its path in the network
manifest.json          its kind, checksums of the files, model_id, what it was trained on or imported from; written last

The kind of a bundle says what is in it and what takes it. Bundles of every kind are written by `save_files` and checked by `open_files`,
`open_tokenizer` and `open_weights`.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from model import files
from model.config import DecodingConfig, DecodingTokens, NetworkConfig
from model.errors import DataError, UsageError
from model.foreign.tokenizer import DEFINITION_FILE, ForeignTokenizer
from model.tokenizer import Tokenizer

if TYPE_CHECKING:  # TensorFlow takes seconds to import: reading a manifest does without it.
    from model.network.transformer import Transformer

FORMAT_VERSION = 1
CONFIG_FILE, TOKENIZER_FOLDER, WEIGHTS_FILE, MANIFEST_FILE = "config.json", "tokenizer", "weights.safetensors", "manifest.json"
ABSTRACTIVE, ENCODER, EXTRACTIVE, KEYPHRASES = "abstractive", "encoder", "extractive", "keyphrases"
# What takes a bundle of each kind.
TAKEN_BY: Mapping[str, str] = {
    ABSTRACTIVE: "`precis summarize --bundle`",
    ENCODER: "`precis train --task extractive --encoder`",
    EXTRACTIVE: "`precis summarize --extractive_bundle`",
    KEYPHRASES: "`precis summarize --keyphrase_bundle`",
}


class Files(NamedTuple):
    """The configuration of a bundle, as it was saved.

    Attributes:
      kind: one of TAKEN_BY.
      config: config.json.
      model_id: the first 16 hexadecimal digits of the sha256 of its files' checksums: names the model in every row it writes.
    """

    kind: str
    config: dict[str, Any]
    model_id: str


class Bundle(NamedTuple):
    """A network that is ready to summarize.

    Attributes:
      network, tokenizer: what they say.
      model_id: as in `Files`.
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


def save_files(
    folder: str,
    *,
    kind: str,
    config: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    provenance: Mapping[str, Any],
    tokenizer: Tokenizer | ForeignTokenizer | None = None,
) -> str:
    """Writes a bundle of any kind.

    Args:
      folder: where to; files of the same names are replaced.
      kind: one of TAKEN_BY.
      config: for config.json.
      weights: the tensors by name.
      provenance: what it was made from and how, for the manifest.
      tokenizer: where the kind has one.

    Returns:
      The model_id.
    """
    import safetensors.numpy

    files.remove(files.join(folder, MANIFEST_FILE))
    # The first bundles were abstractive and named no kind: those of today keep their bytes, and so their model_id.
    named = {} if kind == ABSTRACTIVE else {"kind": kind}
    files.write_json(files.join(folder, CONFIG_FILE), {"format_version": FORMAT_VERSION, **named, **config})
    files.write_bytes(files.join(folder, WEIGHTS_FILE), safetensors.numpy.save(dict(weights)))
    checksums = {name: files.sha256_file(files.join(folder, name)) for name in (CONFIG_FILE, WEIGHTS_FILE)}
    identity = dict(checksums)
    if tokenizer:
        tokenizer.save(files.join(folder, TOKENIZER_FOLDER))
        identity["tokenizer"] = tokenizer.fingerprint
    model_id = files.sha256_json(identity)[:16]
    manifest: dict[str, Any] = {"format_version": FORMAT_VERSION, "kind": kind, "model_id": model_id, "sha256": checksums}
    if tokenizer:
        manifest["tokenizer_fingerprint"] = tokenizer.fingerprint
    files.write_json(files.join(folder, MANIFEST_FILE), {**manifest, "provenance": provenance})
    return model_id


def open_files(folder: str, *kinds: str) -> Files:
    """Reads the configuration of a bundle of one of the given kinds.

    Raises:
      UsageError: the folder is no complete bundle, or one of another kind.
      DataError: config.json differs from the manifest.
    """
    manifest = read_manifest(folder)
    _check_file(folder, CONFIG_FILE, manifest)
    config = files.read_json(files.join(folder, CONFIG_FILE))
    if (kind := config.get("kind", ABSTRACTIVE)) not in kinds:
        taker = f"{TAKEN_BY[kind]} takes it" if kind in TAKEN_BY else "only a newer precis knows it"
        raise UsageError(f"{folder}: this bundle is of the kind {kind}, and {' or '.join(kinds)} is asked for here; {taker}")
    return Files(kind, config, manifest["model_id"])


def open_tokenizer(folder: str) -> Tokenizer | ForeignTokenizer:
    """Reads the tokenizer of a bundle.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the tokenizer is damaged, or another one than the manifest names.
    """
    tokenizer = load_tokenizer(files.join(folder, TOKENIZER_FOLDER))
    if tokenizer.fingerprint != read_manifest(folder).get("tokenizer_fingerprint"):
        raise DataError(f"{files.join(folder, TOKENIZER_FOLDER)}: not the tokenizer that {MANIFEST_FILE} names; copy the bundle again")
    return tokenizer


def open_weights(folder: str) -> dict[str, np.ndarray]:
    """Reads the weights of a bundle, by name.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: they differ from the manifest.
    """
    _check_file(folder, WEIGHTS_FILE, read_manifest(folder))
    import safetensors.numpy

    return safetensors.numpy.load(files.read_bytes(files.join(folder, WEIGHTS_FILE)))


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
    config = {"network": network.config, "decoding": decoding, "special": special}
    return save_files(
        folder,
        kind=ABSTRACTIVE,
        config={name: dataclasses.asdict(part) for name, part in config.items() if part is not None},
        weights={weight.path: weight.numpy() for weight in network.weights},
        provenance=provenance,
        tokenizer=tokenizer,
    )


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
      UsageError: the folder is no complete bundle of a network that writes.
      DataError: config.json differs from the manifest.
    """
    return open_files(folder, ABSTRACTIVE).config.get("decoding", {})


def open_bundle(folder: str) -> Contents:
    """Reads all of a bundle of a network that writes but its weights.

    Raises:
      UsageError: the folder is no complete bundle of one.
      DataError: a file differs from the manifest.
    """
    _, config, model_id = open_files(folder, ABSTRACTIVE)
    special: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.get("special", {}).items()
    }
    ids = DecodingTokens(**special) if special else None
    return Contents(NetworkConfig(**config["network"]), open_tokenizer(folder), model_id, ids)


def load_bundle(folder: str, *, precision: str = "float32") -> Bundle:
    """Reads a bundle of a network that writes and checks it against its manifest.

    Args:
      folder: the bundle.
      precision: what the layers compute in, as in `build_network`.

    Raises:
      UsageError: the folder is no complete bundle of one.
      DataError: a file differs from the manifest.
    """
    contents, weights = open_bundle(folder), open_weights(folder)
    from model.network.build import build_network

    network = build_network(contents.config, precision=precision)
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
