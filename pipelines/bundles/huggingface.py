"""`precis export --format huggingface`: bundle -> checkpoint of transformers.

    config.json, model.safetensors            the network
    tokenizer.json, tokenizer_config.json     its tokenizer
    generation_config.json                    the search
    README.md                                 the model card
    manifest.json                             of this export; transformers skips it

The parts are made in `precis.model.bundle.exporters`. Neither TensorFlow nor
transformers is needed to write them.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.card import CARD_FILE, card_text, stated_choices
from precis.model.bundle.exporters.architecture import (
    CheckpointConfig,
    checkpoint_config,
)
from precis.model.bundle.exporters.generation import DEFAULTS, generation_settings
from precis.model.bundle.exporters.weights import checkpoint_tensors
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    open_bundle_config,
    open_weights,
    read_manifest,
)
from precis.model.bundle.network_bundle import (
    BundleWithoutWeights,
    check_prefix,
    open_bundle,
)
from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.tokenization.exported import save_for_transformers
from precis.pipelines.bundles.export_folder import (
    MANIFEST_FILE,
    folder_aside,
    folder_checksums,
)
from precis.pipelines.options.bundles import HUGGINGFACE, ExportOptions
from precis.pipelines.options.summarize import decode_id

# How the card says that the folder is used; FOLDER is where it lies.
_USE = """
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
network = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
inputs = tokenizer([TEXT], truncation=True, padding=True, return_tensors="pt")
summaries = network.generate(**inputs)  # the search of generation_config.json
print(tokenizer.batch_decode(summaries, skip_special_tokens=True))
```

The tokenizer brings a text into its normal form. Boilerplate before a story, which
`precis summarize` leaves out, is for the caller to remove.
"""
# Flags of the graph of a SavedModel.
_GRAPH_FLAGS = ("clean", "strip_boilerplate", "precision")


def check_flags(flags: Mapping[str, Any]) -> None:
    """Refuses flags of a SavedModel.

    Raises:
      UsageError: one of them is given.
    """
    for name in _GRAPH_FLAGS:
        if name in flags:
            raise UsageError(
                f"--{name} is of the graph in a SavedModel, and --format {HUGGINGFACE} "
                "writes a float32 network and its tokenizer; leave it out"
            )


def with_search_of_transformers(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags, and where neither they nor the bundle state a search, what
    transformers has in place of the defaults of `precis summarize`.

    Args:
      flags: those that are given, and the search of the bundle.
    """
    return {**DEFAULTS, **flags}


def describe_checkpoint(
    options: ExportOptions, decoding: SearchConfig
) -> dict[str, Any]:
    """Checks the bundle and the flags before anything is written.

    Returns:
      The manifest of the export, except provenance and checksums.

    Raises:
      UsageError: transformers has no such network or no such search.
      DataError: a damaged bundle.
    """
    contents = open_bundle(options.bundle)
    checkpoint = _checkpoint_config(options.bundle, contents)
    check_prefix(options.task_prefix, contents)
    special = special_tokens(contents.tokenizer, contents.special)
    generation_settings(decoding, special)
    return {
        "kind": HUGGINGFACE,
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, options.precision),
        "decoding": dataclasses.asdict(decoding),
        "model_type": checkpoint.model_type,
        "task_prefix": options.task_prefix,
        "max_source_tokens": contents.config.max_source_tokens,
    }


def _checkpoint_config(folder: str, contents: BundleWithoutWeights) -> CheckpointConfig:
    """The config.json of a bundle.

    Raises:
      UsageError: transformers has no such network.
    """
    if contents.source_tokenizer is not contents.tokenizer:
        raise UsageError(
            f"{folder}: its sources have a tokenizer of their own, and a checkpoint of "
            "transformers has one; use `precis summarize`"
        )
    provenance = read_manifest(folder)["provenance"]
    special = special_tokens(contents.tokenizer, contents.special)
    try:
        return checkpoint_config(
            contents.config, special, came_from=str(provenance.get("model_type", ""))
        )
    except UsageError as error:
        raise UsageError(f"{folder}: {error}") from error


def write_checkpoint(
    options: ExportOptions, decoding: SearchConfig, description: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes the checkpoint, its manifest last.

    Returns:
      The content of the manifest.
    """
    import safetensors.numpy

    contents = open_bundle(options.bundle)
    model_type, settings, network = _checkpoint_config(options.bundle, contents)
    special = special_tokens(contents.tokenizer, contents.special)
    if options.task_prefix:
        task = {"summarization": {"prefix": options.task_prefix}}
        settings["task_specific_params"] = task
    tensors = checkpoint_tensors(open_weights(options.bundle), network, model_type)
    with folder_aside(options.output) as folder:
        files.write_json(os.path.join(folder, "config.json"), settings)
        files.write_json(
            os.path.join(folder, "generation_config.json"),
            {
                **generation_settings(
                    decoding.limited_to(contents.config.max_target_tokens), special
                ),
                "use_cache": settings["use_cache"],
            },
        )
        files.write_bytes(
            os.path.join(folder, "model.safetensors"),
            safetensors.numpy.save(tensors, metadata={"format": "pt"}),
        )
        save_for_transformers(
            folder,
            contents.tokenizer,
            pad_id=special.pad_id,
            end_id=special.end_id,
            max_source_tokens=contents.config.max_source_tokens,
        )
        # The card may be edited, so it comes behind the checksums.
        manifest = {**description, "sha256": folder_checksums(folder)}
        card = _card(options.bundle, task_prefix=options.task_prefix)
        files.write_bytes(os.path.join(folder, CARD_FILE), card.encode())
        files.write_json(os.path.join(folder, MANIFEST_FILE), manifest)
    return manifest


def _card(bundle: str, *, task_prefix: str) -> str:
    """The model card of a bundle, as that of a checkpoint of transformers, with the
    licence and the language that the bundle's card states.
    """
    text = f"{task_prefix!r} + article" if task_prefix else "article"
    choices = stated_choices(bundle)._replace(
        library="transformers", use=_USE.strip().replace("TEXT", text)
    )
    config = open_bundle_config(bundle, ABSTRACTIVE).config
    return card_text(read_manifest(bundle), config, choices)
