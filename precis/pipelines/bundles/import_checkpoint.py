"""`precis import`: turns a checkpoint into a bundle.

`precis.model.bundle.checkpoints` does the work. Nothing here needs Beam.
"""

import dataclasses
import os
from typing import Any

from filelock import FileLock

from precis.model import files
from precis.model.bundle.checkpoints.bert import read_checker
from precis.model.bundle.checkpoints.generation import DEFAULT_NEW_TOKENS
from precis.model.bundle.checkpoints.importer import (
    CONFIG_FILE,
    FAMILIES,
    GENERATION_FILE,
    load_checkpoint,
    read_checkpoint_settings,
    weight_files,
)
from precis.model.bundle.checkpoints.rotary import CHAT_FILES, read_chat
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    open_stored,
    refuse_other_kind,
)
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import UsageError
from precis.model.network.config import DecoderOnlyConfig
from precis.model.progress.stages import say, stage
from precis.model.tokenization.imported import TOKENIZER_FILE, read_tokenizer
from precis.pipelines.bundles.options import IMPORT, ImportOptions
from precis.pipelines.run import hub
from precis.pipelines.run.options import read_flags, recorded_flags


def import_checkpoint(**flags: Any) -> str:
    """Turns a checkpoint in the layout of Hugging Face into a bundle.

    The bundle holds a network that writes, or an encoder.

    Args:
      **flags: the fields of `ImportOptions`.

    Returns:
      The model_id of the bundle.

    Raises:
      UsageError: the folder is not a checkpoint, lacks a file, or has an unknown
          architecture.
      DataError: a file is damaged, or has an unsupported tensor or setting.
    """
    (options,) = read_flags(IMPORT, flags)
    if not hub.is_hub_name(options.checkpoint):
        return _import_folder(options.checkpoint, options.output, options)
    name = hub.resolve_model(options.checkpoint)
    folder = hub.download(name)
    options = dataclasses.replace(options, checkpoint=name)
    if options.output:
        return _import_folder(folder, options.output, options)
    output = hub.bundle_folder(name)
    os.makedirs(os.path.dirname(output), exist_ok=True)
    # One of several processes imports the model, and the others wait for it.
    with FileLock(f"{output}.lock"):
        if not hub.is_imported(output):
            files.remove(output)
            _import_folder(folder, output, options)
    return open_stored(output).model_id


def _import_folder(folder: str, output: str, options: ImportOptions) -> str:
    """Turns a folder into a bundle; `options` has the checkpoint's name."""
    if os.path.realpath(folder) == os.path.realpath(output):
        raise UsageError(
            f"--output {output} is the checkpoint itself, whose files would be "
            "overwritten; name another folder"
        )
    settings = read_checkpoint_settings(folder)
    family = FAMILIES[settings["model_type"]]
    is_writer = bool(family.class_name)
    refuse_other_kind(output, ABSTRACTIVE if is_writer else ENCODER)
    with stage("import"):
        names = [CONFIG_FILE, *weight_files(folder), TOKENIZER_FILE]
        optional = [GENERATION_FILE] if is_writer else []
        chat = None
        if family.config is DecoderOnlyConfig:
            chat = read_chat(folder)
            optional += CHAT_FILES
        names += [name for name in optional if files.exists(files.join(folder, name))]
        tokenizer = read_tokenizer(folder, settings)
        checkpoint = load_checkpoint(
            folder, max_source_tokens=options.max_source_tokens
        )
        search = checkpoint.decoding
        if search and search.max_summary_tokens <= DEFAULT_NEW_TOKENS:
            say(
                f"{options.checkpoint}: summaries have at most "
                f"{search.max_summary_tokens} tokens, as with `generate` of "
                "transformers; to allow more use --max_summary_tokens of `precis "
                "summarize`"
            )
        provenance = {
            "command": "import",
            "flags": recorded_flags([options]),
            "model_type": settings["model_type"],
            "bos_token_id": settings.get("bos_token_id"),
            "checkpoint": options.checkpoint,
            "checkpoint_sha256": {
                name: files.sha256_file(files.join(folder, name))
                for name in sorted(names)
            },
        }
        return save_bundle(
            output,
            network=checkpoint.network,
            tokenizer=tokenizer,
            provenance=provenance,
            decoding=checkpoint.decoding,
            special=checkpoint.special,
            task_prefixes=[checkpoint.task_prefix],
            checker=read_checker(settings),
            chat=chat,
        )
