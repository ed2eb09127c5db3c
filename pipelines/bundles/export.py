"""`precis export`: bundle -> checkpoint of transformers.

    config.json, model.safetensors            the network
    tokenizer.json, tokenizer_config.json     its tokenizer
    generation_config.json                    the search
    README.md                                 the model card
    manifest.json                             of this export; transformers skips it

The parts are made in `precis.model.bundle.checkpoints`. Nothing here needs Beam,
TensorFlow or transformers.
"""

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from precis.model import files
from precis.model.bundle.card import CARD_FILE, card_text
from precis.model.bundle.checkpoints.exporter import (
    checkpoint_settings,
    checkpoint_tensors,
)
from precis.model.bundle.checkpoints.generation import DEFAULTS, generation_settings
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    MANIFEST_FILE,
    open_bundle_config,
    open_weights,
    read_manifest,
)
from precis.model.bundle.network_bundle import (
    check_prefix,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.model.search.special import special_tokens
from precis.model.tokenization.exported import save_for_transformers
from precis.pipelines.bundles.options import EXPORT
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.summarize.options import decode_id

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


def export(**flags: Any) -> dict[str, Any]:
    """Writes a bundle as a checkpoint that transformers loads.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`. Where neither they nor
        the bundle state a search, it is what transformers has in place of the defaults
        of `precis summarize`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: no bundle, a network or a search that transformers does not have, or
        a folder that holds something else.
      DataError: a damaged bundle.
    """
    concerns = read_flags(EXPORT, {**DEFAULTS, **with_decoding_of_bundle(flags)})
    options, decoding = concerns
    contents = open_bundle(options.bundle)
    if contents.source_tokenizer is not contents.tokenizer:
        raise UsageError(
            f"{options.bundle}: its sources have a tokenizer of their own, and a "
            "checkpoint of transformers has one; use `precis summarize`"
        )
    bundle_manifest = read_manifest(options.bundle)
    special = special_tokens(contents.tokenizer, contents.special)
    came_from = str(bundle_manifest["provenance"].get("model_type", ""))
    try:
        settings = checkpoint_settings(contents.config, special, came_from=came_from)
    except UsageError as error:
        raise UsageError(f"{options.bundle}: {error}") from error
    check_prefix(options.task_prefix, contents)
    if options.task_prefix:
        task = {"summarization": {"prefix": options.task_prefix}}
        settings["task_specific_params"] = task
    search = generation_settings(
        decoding.limited_to(contents.config.max_target_tokens), special
    )
    description = {
        "kind": "huggingface",
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, "float32"),
        "decoding": dataclasses.asdict(decoding),
        "model_type": settings["model_type"],
        "task_prefix": options.task_prefix,
        "max_source_tokens": contents.config.max_source_tokens,
    }
    finished = _read_finished(options.output, description)
    if finished:
        return finished
    manifest = {
        **description,
        "provenance": {"command": "export", "flags": recorded_flags(concerns)},
    }
    import safetensors.numpy

    with stage("export"), _folder_aside(options.output) as folder:
        weights = open_weights(options.bundle)
        network: Any = contents.config
        tensors = checkpoint_tensors(weights, network, settings)
        files.write_json(os.path.join(folder, "config.json"), settings)
        search["use_cache"] = settings["use_cache"]
        files.write_json(os.path.join(folder, "generation_config.json"), search)
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
        manifest["sha256"] = {
            name: files.sha256_file(os.path.join(folder, name))
            for name in sorted(os.listdir(folder))
        }
        card = _card(options.bundle, bundle_manifest, options.task_prefix)
        files.write_bytes(os.path.join(folder, CARD_FILE), card.encode())
        files.write_json(os.path.join(folder, MANIFEST_FILE), manifest)
    return manifest


def _card(bundle: str, manifest: dict[str, Any], task_prefix: str) -> str:
    """The model card of the bundle."""
    text = f"{task_prefix!r} + article" if task_prefix else "article"
    return card_text(
        manifest,
        open_bundle_config(bundle, ABSTRACTIVE).config,
        library="transformers",
        use=_USE.strip().replace("TEXT", text),
    )


def _read_finished(output: str, description: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of an earlier export with the same description; None if the folder
    is empty or missing.

    Raises:
      UsageError: the folder holds anything else.
    """
    path = files.join(output, MANIFEST_FILE)
    if files.exists(path):
        manifest = files.read_object(
            path, way_out="name another --output, or remove that folder"
        )
        # The bundle may lie elsewhere since; its model_id is part of the description.
        if description.items() <= manifest.items() and all(
            files.exists(files.path_within(output, name, listed_in=path))
            and files.sha256_file(files.join(output, name)) == sha256
            for name, sha256 in dict(manifest.get("sha256", {})).items()
        ):
            return manifest
    fs, name = files.filesystem(output)
    is_empty_folder = fs.isdir(name) and not fs.ls(name)
    if fs.exists(name) and not is_empty_folder:
        raise UsageError(
            f"{output} holds something else than this export; name another --output, "
            "or remove that folder"
        )
    return None


@contextlib.contextmanager
def _folder_aside(output: str) -> Iterator[str]:
    """A local folder that becomes `output` if the block ends without an error.

    The folder that a killed process left aside is removed first. An object store cannot
    rename a folder: there the manifest comes last and says that the export is complete.
    """
    if not files.is_local(output):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
            manifest = os.path.join(folder, MANIFEST_FILE)
            content = files.read_bytes(manifest)
            os.remove(manifest)
            files.copy_tree(folder, output)
            files.write_bytes(files.join(output, MANIFEST_FILE), content)
        return
    _, name = files.filesystem(output)
    aside = name + files.ASIDE
    files.remove(aside)
    os.makedirs(aside)
    try:
        yield aside
        os.replace(aside, name)
    finally:
        files.remove(aside)
