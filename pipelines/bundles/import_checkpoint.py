"""`precis import`: turns a checkpoint into a bundle.

The work is in `precis.model.bundle.converters`. Nothing here needs Beam.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.converters.checkpoint import (
    CONFIG_FILE,
    ENCODERS,
    GENERATION_FILE,
    load_checkpoint,
    load_encoder,
    read_settings,
)
from precis.model.bundle.converters.tensors import weight_files
from precis.model.bundle.encoder_bundle import save_encoder_bundle
from precis.model.bundle.manifest import ABSTRACTIVE, ENCODER, refuse_other_kind
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.bundles import IMPORT, ImportOptions


def import_checkpoint(**flags: Any) -> str:
    """Turns a checkpoint in the layout of Hugging Face into a bundle.

    The result is the bundle of a network that writes, or of an encoder.

    Args:
      **flags: the fields of `ImportOptions`.

    Returns:
      The model_id.

    Raises:
      UsageError: the folder is no checkpoint, lacks a file, or has an unknown
          architecture.
      DataError: a file is damaged, a tensor does not fit, or a setting is not
          supported.
    """
    concerns = read_flags(IMPORT, flags)
    (options,) = concerns
    folder = options.checkpoint
    if os.path.realpath(folder) == os.path.realpath(options.output):
        raise UsageError(
            f"--output {options.output} is the checkpoint itself, whose files the "
            "bundle would replace; name another folder"
        )
    settings = read_settings(folder)
    kind = ENCODER if settings["model_type"] in ENCODERS else ABSTRACTIVE
    refuse_other_kind(options.output, kind)
    request = {"command": "import", "flags": recorded_flags(concerns)}
    with stage("import"):
        return _convert(options, settings, kind, request)


def _convert(
    options: ImportOptions,
    settings: Mapping[str, Any],
    kind: str,
    request: Mapping[str, Any],
) -> str:
    """Writes the bundle of a checkpoint; returns the model_id.

    Args:
      options: where the checkpoint lies, and the bundle shall.
      settings: of the checkpoint, its config.json.
      kind: of the bundle.
      request: the command and its flags, for the manifest.
    """
    folder = options.checkpoint
    names = [CONFIG_FILE, *weight_files(folder), *tokenizer_files(folder)]
    if kind == ENCODER:
        return save_encoder_bundle(
            options.output,
            encoder=load_encoder(folder, max_source_tokens=options.max_source_tokens),
            tokenizer=read_tokenizer(folder, settings),
            provenance={**request, **_provenance(folder, settings, names)},
        )
    if files.exists(files.join(folder, GENERATION_FILE)):
        names.append(GENERATION_FILE)
    checkpoint = load_checkpoint(folder, max_source_tokens=options.max_source_tokens)
    return save_bundle(
        options.output,
        network=checkpoint.network,
        tokenizer=read_tokenizer(folder, settings),
        provenance={**request, **_provenance(folder, settings, names)},
        decoding=checkpoint.decoding,
        special=checkpoint.special,
        task_prefixes=[checkpoint.task_prefix],
    )


def _provenance(
    folder: str, settings: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """The provenance of a bundle: architecture, folder and files of the checkpoint.

    Args:
      folder: the checkpoint.
      settings: its config.json.
      names: the files that were read; the result holds the sha256 of each.
    """
    checksums = {
        name: files.sha256_file(files.join(folder, name)) for name in sorted(names)
    }
    return {
        "model_type": settings["model_type"],
        "checkpoint": folder,
        "checkpoint_sha256": checksums,
    }
