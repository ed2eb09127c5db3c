"""The files of a bundle: a trained model of any kind as a folder.

A bundle loads without a network connection and without pickle:

    config.json           the kind of the bundle and the configuration of its model
    tokenizer/            the tokenizer of summaries: vocab.txt and tokenizer.json,
                          or tokenizers.json if it was imported
    source_tokenizer/     the tokenizer of sources, if they have a different tokenizer
    weights.safetensors   one tensor per weight, named by its path in the network
    README.md             the model card; not part of the model_id
    manifest.json         checksums, the model_id computed from them, and provenance;
                          written last

The kind says which model a bundle holds and which command takes it. A summarizer is two
bundles in one folder, and has no weights itself (`summarizer_bundle`).
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from precis.model import files
from precis.model.bundle.card import CARD_FILE, card_text
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
    TokenizerPair,
    open_tokenizers,
)

FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
MANIFEST_FILE = "manifest.json"
# The training state in the folder of a bundle; not part of the bundle.
TRAINING_FOLDER = "training"
# Files of the folders that `precis import` takes.
_OF_CHECKPOINTS = ("model.safetensors", "pytorch_model.bin", "adapter_config.json")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")  # such as facebook/bart-large-cnn
BUNDLE_WAY_OUT = "copy the bundle again or train it again"
# The required fields of a manifest.
_FIELDS = {"kind": str, "model_id": str, "sha256": dict, "provenance": dict}
_MOST_OPEN = 16  # bundles cached in a process, without their weights

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
    ENCODER: "`encoder=` of `precis train` or `precis train-selector`",
    EXTRACTIVE: "`extractive_bundle=` of `precis summarize`",
    KEYPHRASES: "`keyphrase_bundle=` of `precis summarize`",
    SUMMARIZER: "`bundle=` of `precis summarize`",
}


@dataclasses.dataclass(frozen=True, eq=False)
class StoredBundle:
    """A bundle of any kind, which compares each file with the manifest when it reads
    the file.

    Attributes:
      folder: the folder of the bundle.
      manifest: the content of manifest.json.
    """

    folder: str
    manifest: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """One of TAKEN_BY."""
        return str(self.manifest["kind"])

    @property
    def model_id(self) -> str:
        """The first 16 hexadecimal digits of the sha256 of the checksums of the files.
        Every row that the model writes has it.
        """
        return str(self.manifest["model_id"])

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json.

        Raises:
          DataError: the file differs from the manifest.
        """
        self.check(CONFIG_FILE)
        path = files.join(self.folder, CONFIG_FILE)
        return files.read_object(path, way_out=BUNDLE_WAY_OUT)

    @functools.cached_property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizers of sources and summaries.

        Raises:
          DataError: as for `open_tokenizers`.
        """
        way_out = "copy the bundle again"
        return open_tokenizers(self.folder, self.manifest, way_out=way_out)

    def read_weights(self) -> dict[str, np.ndarray]:
        """Reads the weights, by name.

        Raises:
          DataError: the weights differ from the manifest, are damaged or not finite.
        """
        import safetensors
        import safetensors.numpy

        self.check(WEIGHTS_FILE)
        path = files.join(self.folder, WEIGHTS_FILE)
        try:
            weights = safetensors.numpy.load(files.read_bytes(path))
        except safetensors.SafetensorError as error:
            raise DataError(f"{path}: damaged ({error}); {BUNDLE_WAY_OUT}") from error
        check_finite(path, weights.items(), way_out=BUNDLE_WAY_OUT)
        return weights

    def check(self, name: str) -> None:
        """Compares the checksum of a file with the manifest.

        Raises:
          DataError: the file is missing, or its checksum differs.
        """
        path = files.join(self.folder, name)
        stamp = files.stamp(path)
        if not stamp or _sha256(path, stamp) != self.manifest["sha256"].get(name):
            raise DataError(
                f"{path}: missing, or its checksum differs from {MANIFEST_FILE}'s; "
                f"{BUNDLE_WAY_OUT}"
            )

    def naming_config(self) -> AbstractContextManager[None]:
        """`files.naming_damage` for a block that reads the values of config.json."""
        path = files.join(self.folder, CONFIG_FILE)
        return files.naming_damage(path, way_out=BUNDLE_WAY_OUT)


@functools.lru_cache
def _sha256(path: str, stamp: str) -> str:
    """The checksum of a file, cached until its stamp changes."""
    return files.sha256_file(path)


def open_stored(folder: str, *kinds: str) -> StoredBundle:
    """Opens a bundle. A process caches it until another bundle is written there.

    Args:
      folder: the folder of the bundle.
      *kinds: the kinds that are allowed; none means any kind.

    Raises:
      UsageError: the folder is not a complete bundle, or has another kind or another
        format version.
      DataError: the manifest is damaged.
    """
    stamp = files.stamp(files.join(folder, MANIFEST_FILE))
    if not stamp:
        way_out = (
            "name the `output=` of `precis train`, or run that command again to finish "
            "it"
        )
        if _HUB_NAME.fullmatch(folder) and not files.exists(folder):
            way_out = f"to use the model from the Hugging Face hub write hf://{folder}"
        elif any(files.exists(files.join(folder, name)) for name in _OF_CHECKPOINTS):
            way_out = "`precis import` makes a bundle of a checkpoint"
        raise UsageError(
            f"{folder}: not a complete bundle (no {MANIFEST_FILE}); {way_out}"
        )
    stored = _read_manifest(folder, stamp)
    kind = stored.kind
    if kinds and kind not in kinds:
        way_out = f"use it as {TAKEN_BY.get(kind, 'input of a newer precis')}"
        parts = [SUMMARIZER_PARTS[name] for name in kinds if name in SUMMARIZER_PARTS]
        if kind == SUMMARIZER and parts:
            way_out = f"name {files.join(folder, parts[0])}"
        raise UsageError(
            f"{folder}: a bundle of kind {kind}, but kind {' or '.join(kinds)} is "
            f"needed here; {way_out}"
        )
    return stored


@functools.lru_cache(maxsize=_MOST_OPEN)
def _read_manifest(folder: str, stamp: str) -> StoredBundle:
    """Reads and checks the manifest of a bundle, cached until its stamp changes."""
    path = files.join(folder, MANIFEST_FILE)
    manifest = files.read_object(path, way_out=BUNDLE_WAY_OUT)
    version = manifest.get("format_version")
    if not _is_bundle(manifest) or version != FORMAT_VERSION:
        raise UsageError(
            f"{folder}: this precis cannot read it: {MANIFEST_FILE} has kind "
            f"{manifest.get('kind')} and format_version {version}; name the `output=` "
            "of a `precis train` command or of `precis import`"
        )
    with files.naming_damage(path, way_out=BUNDLE_WAY_OUT):
        files.check_fields(manifest, _FIELDS)
    computed = content_model_id(manifest)
    # A keyphrase bundle computes its model_id from the values in its files;
    # `KeyphraseModel` checks it.
    if manifest["kind"] != KEYPHRASES and manifest["model_id"] != computed:
        raise DataError(
            f"{path}: model_id is {manifest['model_id']}, but its files give "
            f"{computed}; {BUNDLE_WAY_OUT}"
        )
    return StoredBundle(folder, manifest)


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
      folder: the folder of the bundle; files of the same names are replaced.
      kind: one of TAKEN_BY.
      config: the other fields of config.json.
      weights: the tensors by name; None if the bundle consists of other bundles.
      provenance: what the model was made from and how, for the manifest.
      tokenizer: the tokenizer of summaries; None if this kind has no tokenizer.
      source_tokenizer: the tokenizer of sources; None if it is the same.
      parts: the names of folders in `folder` that hold the bundles of a summarizer.

    Returns:
      The model_id.

    Raises:
      DataError: a weight is not finite; nothing is written.
    """
    import safetensors.numpy

    path = files.join(folder, WEIGHTS_FILE)
    way_out = "the bundle is not written; train from finite weights"
    check_finite(path, (weights or {}).items(), way_out=way_out)
    # While its files are replaced, the folder has no manifest and is not a bundle.
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
    """Writes the model card, then the manifest, which makes the folder a bundle.

    Args:
      folder: the folder of the bundle.
      manifest, config: as for `card_text`.
      parts: as for `save_bundle_files`.
    """
    of_parts = {name: open_stored(files.join(folder, name)).manifest for name in parts}
    card = card_text(manifest, config, parts=of_parts)
    files.write_bytes(files.join(folder, CARD_FILE), card.encode())
    files.write_json(files.join(folder, MANIFEST_FILE), manifest)


def content_model_id(manifest: Mapping[str, Any]) -> str:
    """Computes the model_id from the checksums in a manifest."""
    fingerprints = {
        name: manifest[f"{name}_fingerprint"]
        for name in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER)
        if f"{name}_fingerprint" in manifest
    }
    return files.sha256_json({**manifest["sha256"], **fingerprints})[:16]


def _is_bundle(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest describes a bundle, and not a run or an export."""
    return {"sha256", "model_id"} <= set(manifest) and "decode_id" not in manifest


def refuse_other_kind(folder: str, kind: str) -> None:
    """Refuses an output folder that holds a bundle of another kind, because the files
    of both would be mixed.

    Raises:
      UsageError: the folder holds another kind, which the message names.
    """
    if not files.exists(files.join(folder, MANIFEST_FILE)):
        return
    manifest = files.read_object(
        files.join(folder, MANIFEST_FILE),
        way_out="name another `output=`, or remove that folder",
    )
    present = manifest.get("kind")
    if present != kind:
        what = "a bundle" if _is_bundle(manifest) else "something else"
        raise UsageError(
            f"{folder} holds {what} of the kind {present}; name another `output=`, or "
            "remove that folder"
        )


def check_features(folder: str, stored: Sequence[str], known: Sequence[str]) -> None:
    """Compares the features that a model was trained on with the features of precis.

    Raises:
      UsageError: the features differ.
    """
    if list(stored) != list(known):
        raise UsageError(
            f"{folder}: trained on other features ({', '.join(stored)}) than this "
            "precis computes; train it again"
        )


def check_finite(
    path: str, tensors: Iterable[tuple[str, np.ndarray]], *, way_out: str
) -> None:
    """Refuses weights with NaN or infinity, which would make every score NaN.

    Args:
      path: the file of the weights, for the message.
      tensors: names and values.
      way_out: what the user can do, for the message.

    Raises:
      DataError: a tensor is not finite; the message names the file and the tensor.
    """
    for name, values in tensors:
        if not np.isfinite(values).all():
            kind = "NaN" if np.isnan(values).any() else "infinity"
            raise DataError(f"{path}: the tensor {name} holds {kind}; {way_out}")
