"""`precis export`: writes a bundle as a transformers checkpoint.

    config.json, model.safetensors            the network
    tokenizer.json, tokenizer_config.json     its tokenizer
    generation_config.json                    the search settings
    README.md                                 the model card
    manifest.json                             the manifest; transformers ignores it

`precis.model.bundle.checkpoints` makes the parts. Nothing here needs Beam, TensorFlow
or transformers.
"""

import dataclasses
from typing import Any

from precis.model import files
from precis.model.bundle.card import CARD_FILE, card_text
from precis.model.bundle.checkpoints.exporter import (
    checkpoint_settings,
    checkpoint_tensors,
)
from precis.model.bundle.checkpoints.generation import DEFAULTS, generation_settings
from precis.model.bundle.manifest import (
    MANIFEST_FILE,
    open_stored,
    refuse_other_kind,
)
from precis.model.bundle.network_bundle import (
    Bundle,
    check_prefix,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.model.search.special import special_tokens
from precis.model.tokenization.exported import save_for_transformers
from precis.pipelines.bundles.options import EXPORT, ExportOptions
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.summarize.options import decode_id

_KIND = "huggingface"
# The files whose checksums are in the manifest.
_FILES = (
    "config.json generation_config.json model.safetensors tokenizer.json "
    "tokenizer_config.json"
).split()
# The section on use in the model card; FOLDER is replaced by its path.
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

    If neither the flags nor the bundle set a search value, transformers' equivalent of
    the default of `precis summarize` is used.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: the bundle is missing, transformers does not support its network or
          its search, or the folder holds something else.
      DataError: the bundle is damaged.
    """
    flags = with_local_bundles(flags)
    option_groups = read_flags(EXPORT, {**DEFAULTS, **with_decoding_of_bundle(flags)})
    options, decoding = option_groups
    contents = open_bundle(options.bundle)
    if contents.source_tokenizer is not contents.tokenizer:
        raise UsageError(
            f"{options.bundle}: it has a separate tokenizer for sources, but a "
            "checkpoint of transformers has only one tokenizer; use `precis summarize`"
        )
    special = special_tokens(contents.tokenizer, contents.special)
    provenance = open_stored(options.bundle).manifest["provenance"]
    came_from = str(provenance.get("model_type", ""))
    try:
        settings = checkpoint_settings(contents.config, special, came_from=came_from)
    except UsageError as error:
        raise UsageError(f"{options.bundle}: {error}") from error
    # Networks of this project use the same start token for texts and summaries.
    bos_id = provenance.get("bos_token_id", special.start_id)
    settings |= {} if bos_id is None else {"bos_token_id": bos_id}
    check_prefix(options.task_prefix, contents)
    if options.task_prefix:
        task = {"summarization": {"prefix": options.task_prefix}}
        settings["task_specific_params"] = task
    search = generation_settings(
        decoding.limited_to(contents.config.max_target_tokens), special
    )
    _check_folder(options.output)
    manifest = {
        "kind": _KIND,
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, "float32"),
        "decoding": dataclasses.asdict(decoding),
        "model_type": settings["model_type"],
        "task_prefix": options.task_prefix,
        "max_source_tokens": contents.config.max_source_tokens,
        "provenance": {"command": "export", "flags": recorded_flags(option_groups)},
    }
    path = files.join(options.output, MANIFEST_FILE)
    with stage("export"):
        # A manifest without checksums marks an unfinished export.
        files.write_json(path, manifest)
        _write_checkpoint(options, contents, settings, search)
        manifest["sha256"] = {
            name: files.sha256_file(files.join(options.output, name)) for name in _FILES
        }
        files.write_json(path, manifest)
    return manifest


def _check_folder(output: str) -> None:
    """Refuses a folder that contains anything but an export, which is replaced.

    Raises:
      UsageError: the message names the content.
    """
    refuse_other_kind(output, _KIND)
    others = [
        each for each in files.list_folder(output) if not each.endswith(files.ASIDE)
    ]
    if others and MANIFEST_FILE not in others:
        raise UsageError(
            f"{output} holds {others[0]} and is not an export; name another --output, "
            "or remove that folder"
        )
    files.remove_leftovers(output)


def _write_checkpoint(
    options: ExportOptions,
    contents: Bundle,
    settings: dict[str, Any],
    search: dict[str, Any],
) -> None:
    """Writes all files except the manifest.

    Args:
      options: the options of the command.
      contents: the bundle.
      settings: the content of config.json.
      search: the content of generation_config.json.
    """
    import safetensors.numpy

    output = options.output
    network: Any = contents.config
    stored = open_stored(options.bundle)
    tensors = checkpoint_tensors(stored.read_weights(), network, settings)
    files.write_json(files.join(output, "config.json"), settings)
    search["use_cache"] = settings["use_cache"]
    search["bos_token_id"] = settings.get("bos_token_id")
    files.write_json(files.join(output, "generation_config.json"), search)
    files.write_bytes(
        files.join(output, "model.safetensors"),
        safetensors.numpy.save(tensors, metadata={"format": "pt"}),
    )
    special = special_tokens(contents.tokenizer, contents.special)
    is_pegasus = settings["model_type"] == "pegasus"
    save_for_transformers(
        output,
        contents.tokenizer,
        bos_id=settings.get("bos_token_id"),
        # The decoder of PEGASUS starts with it, according to CTranslate2's converter.
        pad_id=special.start_id if is_pegasus else special.pad_id,
        end_id=special.end_id,
        max_source_tokens=contents.config.max_source_tokens,
    )
    text = f"{options.task_prefix!r} + article" if options.task_prefix else "article"
    card = card_text(
        stored.manifest,
        stored.config,
        library="transformers",
        use=_USE.strip().replace("TEXT", text),
    )
    files.write_bytes(files.join(output, CARD_FILE), card.encode())
