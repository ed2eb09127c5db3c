"""The files of a bundle: a trained model of any kind as a folder.

A bundle loads without a network connection and holds no pickle:

    config.json           the kind of the bundle and the configuration of its model
    tokenizer/            the tokenizer of summaries: vocab.txt and tokenizer.json,
                          or tokenizers.json where it was imported
    source_tokenizer/     the tokenizer of sources, where it is a different one
    weights.safetensors   one tensor per weight, named by its path in the network
    manifest.json         checksums of the files, model_id, provenance; written last

The kind of a bundle says what kind of model it holds and which command takes it.
`save_bundle_files` writes a bundle of any kind; `open_bundle_config`, `open_tokenizer`
and `open_weights` check each file against the manifest before they return its content.
`network_bundle` and `encoder_bundle` build on these functions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
    load_tokenizer,
)

FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
MANIFEST_FILE = "manifest.json"

ABSTRACTIVE = "abstractive"
ENCODER = "encoder"
EXTRACTIVE = "extractive"
KEYPHRASES = "keyphrases"
# The command that takes a bundle, by the kind of the bundle.
TAKEN_BY: Mapping[str, str] = {
    ABSTRACTIVE: "`precis summarize --bundle`",
    ENCODER: "`precis train --encoder` or `precis train-extractor --encoder`",
    EXTRACTIVE: "`precis summarize --extractive_bundle`",
    KEYPHRASES: "`precis summarize --keyphrase_bundle`",
}


class BundleConfig(NamedTuple):
    """The configuration of a bundle, as it was saved.

    Attributes:
      kind: one of TAKEN_BY.
      config: the content of config.json.
      model_id: the first 16 hexadecimal digits of the sha256 of the checksums of the
          files. Every row that the model writes carries it.
    """

    kind: str
    config: dict[str, Any]
    model_id: str


def save_bundle_files(
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
      folder: the bundle; files of the same names are replaced.
      kind: one of TAKEN_BY.
      config: the further fields of config.json.
      weights: the tensors by name.
      provenance: what the model was made from and how, for the manifest.
      tokenizer: of summaries; None where models of this kind have no tokenizer.
      source_tokenizer: of sources, where it is a different one.

    Returns:
      The model_id.
    """
    import safetensors.numpy

    # Without a manifest the folder is no bundle while its files are replaced.
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
    fingerprints = _save_tokenizers(folder, tokenizer, source_tokenizer)
    model_id = files.sha256_json({**checksums, **fingerprints})[:16]
    manifest = {
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "model_id": model_id,
        "sha256": checksums,
        **{f"{name}_fingerprint": value for name, value in fingerprints.items()},
        "provenance": provenance,
    }
    files.write_json(files.join(folder, MANIFEST_FILE), manifest)
    return model_id


def _save_tokenizers(
    folder: str, tokenizer: AnyTokenizer | None, source_tokenizer: AnyTokenizer | None
) -> dict[str, str]:
    """Writes the tokenizers, removes old ones, and returns fingerprints by folder."""
    tokenizers = {
        TOKENIZER_FOLDER: tokenizer,
        SOURCE_TOKENIZER_FOLDER: source_tokenizer,
    }
    fingerprints = {}
    for name, saved in tokenizers.items():
        files.remove(files.join(folder, name))
        if saved is not None:
            saved.save(files.join(folder, name))
            fingerprints[name] = saved.fingerprint
    return fingerprints


def read_manifest(folder: str) -> dict[str, Any]:
    """Reads the manifest of a bundle, without reading its weights.

    Raises:
      UsageError: the folder is no complete bundle, or has another format version.
      DataError: the manifest is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: this is no complete bundle (no {MANIFEST_FILE}); "
            "name the --output of `precis train`, or train again to finish it"
        )
    manifest = _read_manifest_file(folder)
    if not _is_bundle(manifest):
        kind = manifest.get("kind", "another kind")
        raise UsageError(
            f"{folder}: this is no bundle, its {MANIFEST_FILE} is that of {kind}; "
            "name the --output of a `precis train` command or of `precis import`"
        )
    if manifest.get("format_version") != FORMAT_VERSION:
        raise UsageError(
            f"{path}: format_version is {manifest.get('format_version')} "
            f"and this precis reads {FORMAT_VERSION}; train it again"
        )
    return manifest


def _read_manifest_file(folder: str) -> dict[str, Any]:
    """The content of manifest.json.

    Raises:
      DataError: it is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    try:
        content: dict[str, Any] = files.read_json(path)
    except ValueError as error:
        raise DataError(
            f"{path}: damaged ({error}); copy the bundle again or train it again"
        ) from error
    return content


def _is_bundle(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of a bundle, and not of a run or an export."""
    return {"sha256", "model_id"} <= set(manifest) and "decode_id" not in manifest


def refuse_other_kind(folder: str, kind: str) -> None:
    """Refuses an output that holds a bundle of another kind, whose files would be mixed
    with the new ones.

    Raises:
      UsageError: naming the kind that is there.
    """
    if not files.exists(files.join(folder, MANIFEST_FILE)):
        return
    manifest = _read_manifest_file(folder)
    present = manifest.get("kind", ABSTRACTIVE)
    if present != kind:
        what = "a bundle" if _is_bundle(manifest) else "something else"
        raise UsageError(
            f"{folder} holds {what} of the kind {present}; name another --output, or "
            "remove that folder"
        )


def open_bundle_config(folder: str, *kinds: str) -> BundleConfig:
    """Reads the configuration of a bundle of one of the given kinds.

    Raises:
      UsageError: the folder is no complete bundle, or a bundle of another kind.
      DataError: config.json differs from the manifest.
    """
    manifest = read_manifest(folder)
    _check_file(folder, CONFIG_FILE, manifest)
    config = files.read_json(files.join(folder, CONFIG_FILE))
    kind = config.get("kind", ABSTRACTIVE)
    if kind not in kinds:
        way_out = (
            f"{TAKEN_BY[kind]} takes it"
            if kind in TAKEN_BY
            else "only a newer precis knows it"
        )
        raise UsageError(
            f"{folder}: this bundle is of the kind {kind}, "
            f"and {' or '.join(kinds)} is asked for here; {way_out}"
        )
    return BundleConfig(kind, config, manifest["model_id"])


def open_tokenizer(folder: str, name: str = TOKENIZER_FOLDER) -> AnyTokenizer:
    """Reads a tokenizer of a bundle.

    Args:
      folder: the bundle.
      name: TOKENIZER_FOLDER for summaries or SOURCE_TOKENIZER_FOLDER for sources.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the tokenizer is damaged, or is not the one that the manifest names.
    """
    tokenizer = load_tokenizer(files.join(folder, name))
    if tokenizer.fingerprint != read_manifest(folder).get(f"{name}_fingerprint"):
        raise DataError(
            f"{files.join(folder, name)}: not the tokenizer that {MANIFEST_FILE} "
            "names; copy the bundle again"
        )
    return tokenizer


def has_source_tokenizer(folder: str) -> bool:
    """Whether a bundle has a separate tokenizer for sources."""
    return f"{SOURCE_TOKENIZER_FOLDER}_fingerprint" in read_manifest(folder)


def open_weights(folder: str) -> dict[str, np.ndarray]:
    """Reads the weights of a bundle, by name.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the weights differ from the manifest.
    """
    _check_file(folder, WEIGHTS_FILE, read_manifest(folder))
    import safetensors.numpy

    return safetensors.numpy.load(files.read_bytes(files.join(folder, WEIGHTS_FILE)))


def _check_file(folder: str, name: str, manifest: Mapping[str, Any]) -> None:
    path = files.join(folder, name)
    if not files.exists(path) or files.sha256_file(path) != manifest["sha256"][name]:
        raise DataError(
            f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; "
            "copy the bundle again or train it again"
        )
