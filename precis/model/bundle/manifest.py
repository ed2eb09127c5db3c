"""The files of a bundle: a trained model of any kind as a folder.

A bundle loads without a network connection and holds no pickle:

    config.json           the kind of the bundle and the configuration of its model
    tokenizer/            the tokenizer of summaries: vocab.txt and tokenizer.json,
                          or tokenizers.json where it was imported
    source_tokenizer/     the tokenizer of sources, where it is a different one
    weights.safetensors   one tensor per weight, named by its path in the network
    README.md             the model card, which no model_id covers
    manifest.json         checksums, of which the model_id is computed, and provenance;
                          written last

The kind of a bundle says what kind of model it holds and which command takes it. A
summarizer is two bundles in one folder, without weights itself (`summarizer_bundle`).
`save_bundle_files` writes a bundle of any kind; `open_bundle_config`, `open_tokenizer`
and `open_weights` check each file against the manifest before they return its content.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.card import CARD_FILE, card_text
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
    TokenizerPair,
    load_tokenizer,
)

FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
MANIFEST_FILE = "manifest.json"
# The state of a training lies beside its bundle, and is no part of it.
TRAINING_FOLDER = "training"
# As facebook/bart-large-cnn.
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
BUNDLE_WAY_OUT = "copy the bundle again or train it again"
# What every manifest of a bundle holds.
_FIELDS = {"model_id": str, "sha256": dict, "provenance": dict}

ABSTRACTIVE = "abstractive"
ENCODER = "encoder"
EXTRACTIVE = "extractive"
KEYPHRASES = "keyphrases"
SUMMARIZER = "summarizer"
# The folders of a summarizer, by the kind of the bundle in them.
SUMMARIZER_PARTS: Mapping[str, str] = {EXTRACTIVE: "extractor", ABSTRACTIVE: "writer"}
# The command that takes a bundle, by the kind of the bundle.
TAKEN_BY: Mapping[str, str] = {
    ABSTRACTIVE: "`bundle=` of `precis summarize`",
    ENCODER: "`encoder=` of `precis train` or `precis train-extractor`",
    EXTRACTIVE: "`extractive_bundle=` of `precis summarize`",
    KEYPHRASES: "`keyphrase_bundle=` of `precis summarize`",
    SUMMARIZER: "`bundle=` of `precis summarize`",
}


class BundleConfig(NamedTuple):
    """The configuration of a bundle, as it was saved.

    Attributes:
      kind: one of TAKEN_BY.
      config: the content of config.json.
      model_id: the first 16 hexadecimal digits of the sha256 of the checksums of the
          files. Every row that the model writes carries it.
      manifest: the content of manifest.json.
    """

    kind: str
    config: dict[str, Any]
    model_id: str
    manifest: dict[str, Any]


def save_bundle_files(
    folder: str,
    *,
    kind: str,
    config: Mapping[str, Any],
    weights: Mapping[str, np.ndarray] | None = None,
    provenance: Mapping[str, Any],
    tokenizer: AnyTokenizer | None = None,
    source_tokenizer: AnyTokenizer | None = None,
    parts: Sequence[str] = (),
) -> str:
    """Writes a bundle of any kind.

    Args:
      folder: the bundle; files of the same names are replaced.
      kind: one of TAKEN_BY.
      config: the further fields of config.json.
      weights: the tensors by name; None where the bundle consists of others.
      provenance: what the model was made from and how, for the manifest.
      tokenizer: of summaries; None where models of this kind have no tokenizer.
      source_tokenizer: of sources, where it is a different one.
      parts: the folders of the bundles that it consists of, which are there already.

    Returns:
      The model_id.

    Raises:
      DataError: a weight is not finite; nothing is written.
    """
    import safetensors.numpy

    path = files.join(folder, WEIGHTS_FILE)
    way_out = "no bundle is written; train from weights that are finite"
    check_finite(path, (weights or {}).items(), way_out=way_out)
    # Without a manifest the folder is no bundle while its files are replaced.
    files.remove(files.join(folder, MANIFEST_FILE))
    content = {"format_version": FORMAT_VERSION, "kind": kind, **config}
    files.write_json(files.join(folder, CONFIG_FILE), content)
    manifest = {"format_version": FORMAT_VERSION, "kind": kind}
    names = [CONFIG_FILE, *(files.join(part, MANIFEST_FILE) for part in parts)]
    if weights is not None:
        files.write_bytes(path, safetensors.numpy.save(dict(weights)))
        manifest["parameters"] = sum(values.size for values in weights.values())
        names.append(WEIGHTS_FILE)
    for name, saved in (
        (TOKENIZER_FOLDER, tokenizer),
        (SOURCE_TOKENIZER_FOLDER, source_tokenizer),
    ):
        files.remove(files.join(folder, name))
        if saved is not None:
            saved.save(files.join(folder, name))
            manifest[f"{name}_fingerprint"] = saved.fingerprint
    manifest["sha256"] = {
        name: files.sha256_file(files.join(folder, name)) for name in names
    }
    manifest["provenance"] = provenance
    manifest["model_id"] = content_model_id(manifest)
    publish_manifest(folder, manifest, content, parts=parts)
    return str(manifest["model_id"])


def publish_manifest(
    folder: str,
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    parts: Sequence[str] = (),
) -> None:
    """Writes the card, and the manifest last, which makes a bundle of the folder.

    Args:
      folder: the bundle.
      manifest, config: as in `card_text`.
      parts: as in `save_bundle_files`.
    """
    of_parts = {name: read_manifest(files.join(folder, name)) for name in parts}
    card = card_text(manifest, config, parts=of_parts)
    files.write_bytes(files.join(folder, CARD_FILE), card.encode())
    files.write_json(files.join(folder, MANIFEST_FILE), manifest)


def read_manifest(folder: str) -> dict[str, Any]:
    """Reads the manifest of a bundle, without reading its weights.

    Raises:
      UsageError: the folder is no complete bundle, or has another format version.
      DataError: the manifest is damaged.
    """
    path = files.join(folder, MANIFEST_FILE)
    if not files.exists(path):
        way_out = "name the `output=` of `precis train`, or train again to finish it"
        if _HUB_NAME.fullmatch(folder) and not files.exists(folder):
            way_out = f"for the model of the Hugging Face hub write hf://{folder}"
        raise UsageError(
            f"{folder}: this is no complete bundle (no {MANIFEST_FILE}); {way_out}"
        )
    manifest = files.read_object(path, way_out=BUNDLE_WAY_OUT)
    version = manifest.get("format_version")
    if not _is_bundle(manifest) or version != FORMAT_VERSION:
        raise UsageError(
            f"{folder}: this precis reads no such bundle, its {MANIFEST_FILE} has the "
            f"kind {manifest.get('kind')} and the format_version {version}; "
            "name the `output=` of a `precis train` command or of `precis import`"
        )
    with files.naming_damage(path, way_out=BUNDLE_WAY_OUT):
        files.check_fields(manifest, _FIELDS)
    computed = content_model_id(manifest)
    # The id of a bundle of keyphrases is that of the values in its files, and
    # `KeyphraseModel` checks it.
    if manifest.get("kind") != KEYPHRASES and manifest["model_id"] != computed:
        raise DataError(
            f"{path}: its model_id is {manifest['model_id']}, and that of its files is "
            f"{computed}; {BUNDLE_WAY_OUT}"
        )
    return manifest


def content_model_id(manifest: Mapping[str, Any]) -> str:
    """The model_id of the files that a manifest describes."""
    fingerprints = {
        name: manifest[f"{name}_fingerprint"]
        for name in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER)
        if f"{name}_fingerprint" in manifest
    }
    return files.sha256_json({**manifest["sha256"], **fingerprints})[:16]


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
    manifest = files.read_object(
        files.join(folder, MANIFEST_FILE),
        way_out="name another `output=`, or remove that folder",
    )
    present = manifest.get("kind", ABSTRACTIVE)
    if present != kind:
        what = "a bundle" if _is_bundle(manifest) else "something else"
        raise UsageError(
            f"{folder} holds {what} of the kind {present}; name another `output=`, or "
            "remove that folder"
        )


def open_bundle_config(folder: str, *kinds: str) -> BundleConfig:
    """Reads the configuration of a bundle of one of the given kinds.

    Raises:
      UsageError: the folder is no complete bundle, or a bundle of another kind.
      DataError: config.json differs from the manifest.
    """
    manifest = read_manifest(folder)
    check_file(folder, CONFIG_FILE, manifest)
    path = files.join(folder, CONFIG_FILE)
    config = files.read_object(path, way_out=BUNDLE_WAY_OUT)
    kind = str(manifest.get("kind", ABSTRACTIVE))
    if kind not in kinds:
        way_out = f"{TAKEN_BY.get(kind, 'only a newer precis')} takes it"
        parts = [SUMMARIZER_PARTS[name] for name in kinds if name in SUMMARIZER_PARTS]
        if kind == SUMMARIZER and parts:
            way_out = f"name {files.join(folder, parts[0])}"
        raise UsageError(
            f"{folder}: this bundle is of the kind {kind}, and {' or '.join(kinds)} is "
            f"asked for here; {way_out}"
        )
    return BundleConfig(kind, config, manifest["model_id"], manifest)


def check_features(folder: str, stored: Sequence[str], known: Sequence[str]) -> None:
    """Compares the features that a model was trained on with those that are computed.

    Raises:
      UsageError: they are others.
    """
    if list(stored) != list(known):
        raise UsageError(
            f"{folder}: trained on other features ({', '.join(stored)}) than this "
            "precis computes; train it again"
        )


def naming_config(folder: str) -> AbstractContextManager[None]:
    """Turns the errors of a block that builds what config.json describes into one line,
    as `files.naming_damage` does.
    """
    return files.naming_damage(files.join(folder, CONFIG_FILE), way_out=BUNDLE_WAY_OUT)


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


def open_tokenizers(folder: str) -> TokenizerPair:
    """Reads the tokenizers of a bundle; raises as `open_tokenizer`."""
    source = target = open_tokenizer(folder)
    if f"{SOURCE_TOKENIZER_FOLDER}_fingerprint" in read_manifest(folder):
        source = open_tokenizer(folder, SOURCE_TOKENIZER_FOLDER)
    return TokenizerPair(source=source, target=target)


def open_weights(folder: str) -> dict[str, np.ndarray]:
    """Reads the weights of a bundle, by name.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the weights differ from the manifest, are damaged or not finite.
    """
    check_weights(folder)
    import safetensors
    import safetensors.numpy

    path = files.join(folder, WEIGHTS_FILE)
    try:
        weights = safetensors.numpy.load(files.read_bytes(path))
    except safetensors.SafetensorError as error:
        raise DataError(f"{path}: damaged ({error}); {BUNDLE_WAY_OUT}") from error
    check_finite(path, weights.items(), way_out=BUNDLE_WAY_OUT)
    return weights


def check_weights(folder: str) -> None:
    """Compares the checksum of a bundle's weights with the manifest, which the model_id
    is computed from.

    Raises:
      UsageError: the folder is no complete bundle.
      DataError: the weights differ from the manifest.
    """
    check_file(folder, WEIGHTS_FILE, read_manifest(folder))


def check_file(folder: str, name: str, manifest: Mapping[str, Any]) -> None:
    """Compares the checksum of a file with the manifest.

    Raises:
      DataError: the file is missing or another one.
    """
    path = files.join(folder, name)
    expected = manifest["sha256"].get(name)
    if not files.exists(path) or files.sha256_file(path) != expected:
        raise DataError(
            f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; "
            f"{BUNDLE_WAY_OUT}"
        )


def check_finite(
    path: str, tensors: Iterable[tuple[str, np.ndarray]], *, way_out: str
) -> None:
    """Refuses weights with NaN or infinity, which would end every search in NaN.

    Args:
      path: the file of the weights, for the message.
      tensors: names and values.
      way_out: what to do about the file.

    Raises:
      DataError: naming the file and the first such tensor.
    """
    for name, values in tensors:
        if not np.isfinite(values).all():
            kind = "NaN" if np.isnan(values).any() else "infinity"
            raise DataError(f"{path}: the tensor {name} holds {kind}; {way_out}")
