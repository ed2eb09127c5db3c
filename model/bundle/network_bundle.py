"""A trained network as a folder: configuration, tokenizer, weights, manifest; loads
without a network connection and holds no pickle.

config.json            the network's architecture and configuration, the task prefixes it knows; of an imported one also how to search
tokenizer/             vocab.txt and tokenizer.json; of an imported network tokenizers.json
source_tokenizer/      the same for sources, where they have a vocabulary of their own
weights.safetensors    one tensor per weight, named by its path in the network
manifest.json          its kind, checksums of the files, model_id, what it was trained on or imported from; written last

The kind of a bundle says what is in it and what takes it. Bundles of every kind are
written by `save_files` and checked by `open_files`, `open_tokenizer` and
`open_weights`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.network.architectures import architecture_of, read_config
from precis.model.network.config import NetworkConfig
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
    load_tokenizer,
)

if (
    TYPE_CHECKING
):  # TensorFlow takes seconds to import: reading a manifest does without it.
    from precis.model.network.generator import Generator

FORMAT_VERSION = 1
CONFIG_FILE, WEIGHTS_FILE, MANIFEST_FILE = (
    "config.json",
    "weights.safetensors",
    "manifest.json",
)
ABSTRACTIVE, ENCODER, EXTRACTIVE, KEYPHRASES = (
    "abstractive",
    "encoder",
    "extractive",
    "keyphrases",
)
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
      model_id: the first 16 hexadecimal digits of the sha256 of its files' checksums:
          names the model in every row it writes.
    """

    kind: str
    config: dict[str, Any]
    model_id: str


class Bundle(NamedTuple):
    """A network that is ready to summarize.

    Attributes:
      network: what it says.
      tokenizer: of summaries.
      source_tokenizer: of sources; most often the same.
      model_id: as in `Files`.
      special: the special tokens of an imported network; None where the tokenizer knows
          them.
      task_prefixes: the texts that say what to write of a document, before which one of
          them stands; the first is the usual one.
    """

    network: "Generator"
    tokenizer: AnyTokenizer
    source_tokenizer: AnyTokenizer
    model_id: str
    special: SpecialTokens | None
    task_prefixes: tuple[str, ...] = ()


class Contents(NamedTuple):
    """All of a bundle but its weights.

    Attributes:
      config: the network's.
      tokenizer, source_tokenizer, model_id, special, task_prefixes: as in `Bundle`.
    """

    config: NetworkConfig
    tokenizer: AnyTokenizer
    source_tokenizer: AnyTokenizer
    model_id: str
    special: SpecialTokens | None
    task_prefixes: tuple[str, ...]


def save_files(
    folder: str,
    *,
    kind: str,
    config: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    provenance: Mapping[str, Any],
    tokenizer: AnyTokenizer | None = None,
    source_tokenizer: AnyTokenizer | None = None,
) -> str:
    """Writes a bundle of any kind.

    Args:
      folder: where to; files of the same names are replaced.
      kind: one of TAKEN_BY.
      config: for config.json.
      weights: the tensors by name.
      provenance: what it was made from and how, for the manifest.
      tokenizer: where the kind has one.
      source_tokenizer: where sources have one of their own.

    Returns:
      The model_id.
    """
    import safetensors.numpy

    files.remove(files.join(folder, MANIFEST_FILE))
    files.write_json(
        files.join(folder, CONFIG_FILE),
        {"format_version": FORMAT_VERSION, "kind": kind, **config},
    )
    files.write_bytes(
        files.join(folder, WEIGHTS_FILE), safetensors.numpy.save(dict(weights))
    )
    checksums = {
        name: files.sha256_file(files.join(folder, name))
        for name in (CONFIG_FILE, WEIGHTS_FILE)
    }
    identity, fingerprints = dict(checksums), {}
    for name, one in (
        (TOKENIZER_FOLDER, tokenizer),
        (SOURCE_TOKENIZER_FOLDER, source_tokenizer),
    ):
        files.remove(files.join(folder, name))
        if one:
            one.save(files.join(folder, name))
            identity[name] = fingerprints[f"{name}_fingerprint"] = one.fingerprint
    model_id = files.sha256_json(identity)[:16]
    manifest = {
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "model_id": model_id,
        "sha256": checksums,
        **fingerprints,
    }
    files.write_json(
        files.join(folder, MANIFEST_FILE), {**manifest, "provenance": provenance}
    )
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
        taker = (
            f"{TAKEN_BY[kind]} takes it"
            if kind in TAKEN_BY
            else "only a newer precis knows it"
        )
        raise UsageError(
            f"{folder}: this bundle is of the kind {kind}, and {' or '.join(kinds)} is asked for here; {taker}"
        )
    return Files(kind, config, manifest["model_id"])


def open_tokenizer(folder: str, name: str = TOKENIZER_FOLDER) -> AnyTokenizer:
    """Reads a tokenizer of a bundle, that of summaries unless another is named.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the tokenizer is damaged, or another one than the manifest names.
    """
    tokenizer = load_tokenizer(files.join(folder, name))
    if tokenizer.fingerprint != read_manifest(folder).get(f"{name}_fingerprint"):
        raise DataError(
            f"{files.join(folder, name)}: not the tokenizer that {MANIFEST_FILE} names; copy the bundle again"
        )
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
    network: "Generator",
    tokenizer: AnyTokenizer,
    provenance: dict[str, Any],
    source_tokenizer: AnyTokenizer | None = None,
    decoding: SearchConfig | None = None,
    special: SpecialTokens | None = None,
    task_prefixes: Sequence[str] = (),
) -> str:
    """Writes a bundle.

    Args:
      folder: where to; files of the same names are replaced.
      network, tokenizer: what to write.
      provenance: what the network was trained on and how, for the manifest.
      source_tokenizer: where sources have one of their own.
      decoding, special: how an imported network wants to be searched.
      task_prefixes: as in `Bundle`.

    Returns:
      The model_id.
    """
    parts = {"network": network.config, "decoding": decoding, "special": special}
    config = {
        name: dataclasses.asdict(part)
        for name, part in parts.items()
        if part is not None
    }
    prefixes = {"task_prefixes": list(task_prefixes)} if any(task_prefixes) else {}
    return save_files(
        folder,
        kind=ABSTRACTIVE,
        config={"architecture": architecture_of(network.config), **config, **prefixes},
        weights={weight.path: np.asarray(weight.numpy()) for weight in network.weights},
        provenance=provenance,
        tokenizer=tokenizer,
        source_tokenizer=source_tokenizer,
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
        raise DataError(
            f"{path}: damaged ({error}); copy the bundle again or train it again"
        ) from error
    if manifest.get("format_version") != FORMAT_VERSION:
        raise UsageError(
            f"{path}: format_version is {manifest.get('format_version')} and this precis reads {FORMAT_VERSION}; train it again"
        )
    return manifest


def read_decoding(folder: str) -> dict[str, Any]:
    """The flags that a bundle sets itself, without reading its weights: how an imported
    one is searched, and the usual task prefix.

    Raises:
      UsageError: the folder is no complete bundle of a network that writes.
      DataError: config.json differs from the manifest.
    """
    config = open_files(folder, ABSTRACTIVE).config
    prefix = (
        {"task_prefix": config["task_prefixes"][0]}
        if config.get("task_prefixes")
        else {}
    )
    return {**config.get("decoding", {}), **prefix}


def open_bundle(folder: str) -> Contents:
    """Reads all of a bundle of a network that writes but its weights.

    Raises:
      UsageError: the folder is no complete bundle of one.
      DataError: a file differs from the manifest.
    """
    _, config, model_id = open_files(folder, ABSTRACTIVE)
    special: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in config.get("special", {}).items()
    }
    ids = SpecialTokens(**special) if special else None
    network = read_config(config.get("architecture", "transformer"), config["network"])
    tokenizer = open_tokenizer(folder)
    source_tokenizer = (
        open_tokenizer(folder, SOURCE_TOKENIZER_FOLDER)
        if has_source_tokenizer(folder)
        else tokenizer
    )
    return Contents(
        network,
        tokenizer,
        source_tokenizer,
        model_id,
        ids,
        tuple(config.get("task_prefixes", ())),
    )


def check_prefix(prefix: str, contents: Contents) -> None:
    """Refuses a task prefix that a network trained here was never shown; an imported
    one may know more than its checkpoint says.

    Raises:
      UsageError: so it is.
    """
    if contents.special is None and prefix not in (contents.task_prefixes or ("",)):
        known = ", ".join(map(repr, contents.task_prefixes)) or "none"
        raise UsageError(
            f"--task_prefix {prefix!r} is not one that the network was trained with; it knows {known}"
        )


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
    from precis.model.network.build import build_network

    network = build_network(contents.config, precision=precision)
    for weight in network.weights:
        weight.assign(weights[weight.path])
    return Bundle(network, *contents[1:])


def has_source_tokenizer(folder: str) -> bool:
    """Whether the sources of a bundle have a tokenizer of their own."""
    return f"{SOURCE_TOKENIZER_FOLDER}_fingerprint" in read_manifest(folder)


def _check_file(folder: str, name: str, manifest: dict[str, Any]) -> None:
    path = files.join(folder, name)
    if not files.exists(path) or files.sha256_file(path) != manifest["sha256"][name]:
        raise DataError(
            f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; copy the bundle again or train it again"
        )
