"""`precis export`: writes a bundle in a format that other programs load.

    huggingface     config.json, model.safetensors            the network
                    tokenizer.json, tokenizer_config.json     its tokenizer
                    generation_config.json                    the search settings
    saved_model     saved_model.pb, fingerprint.pb,           texts in, summaries out
                    variables/
    both            README.md                                 the model card
                    manifest.json                             the manifest

`precis.model.bundle.checkpoints` makes the parts of a checkpoint, for which nothing
here needs Beam, TensorFlow or transformers; `precis.model.inference.saved_model` writes
a SavedModel.
"""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
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
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.tokenization.exported import save_for_transformers
from precis.model.tokenization.imported import ImportedTokenizer
from precis.pipelines.bundles.options import (
    EXPORT,
    HUGGINGFACE,
    ExportOptions,
)
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.summarize.options import decode_id

# The files of a checkpoint whose checksums are in the manifest.
_OF_CHECKPOINT = (
    "config.json generation_config.json model.safetensors tokenizer.json "
    "tokenizer_config.json"
).split()
# The sections on use in the model card; FOLDER is replaced by its path.
_USE_OF_CHECKPOINT = """
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
_USE_OF_SAVED_MODEL = """
```python
import tensorflow as tf
import tensorflow_text  # the operations of the tokenizer

summarize = tf.saved_model.load("FOLDER").signatures["serving_default"]
print(summarize(article=tf.constant([article]))["summary"].numpy()[0].decode())
```

It reads the beginning of an article, as `precis summarize --clean none --long_documents
head` does. Boilerplate before a story is for the caller to remove.
"""
# The kinds of imported tokenizers. tensorflow-text has no operation for the first.
_KINDS = {"BPE": "byte-pair encoding (BPE)", "Unigram": "SentencePiece (Unigram)"}
# Writes an export; returns the names of its files.
_Write = Callable[[], Sequence[str]]


def export(**flags: Any) -> dict[str, Any]:
    """Writes a bundle as a checkpoint that transformers loads, or as a SavedModel.

    If neither the flags nor the bundle set a search value, a checkpoint has
    transformers' equivalent of the default of `precis summarize`.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: the bundle is missing, the format does not support its network, its
          tokenizer or its search, or the folder holds something else.
      DataError: the bundle is damaged.
    """
    flags = with_local_bundles(flags)
    is_checkpoint = flags.get("format", HUGGINGFACE) == HUGGINGFACE
    defaults = DEFAULTS if is_checkpoint else {}
    option_groups = read_flags(EXPORT, {**defaults, **with_decoding_of_bundle(flags)})
    options, decoding = option_groups
    contents = open_bundle(options.bundle)
    prepare = _prepare_checkpoint if is_checkpoint else _prepare_saved_model
    facts, write = prepare(options, contents, decoding)
    check_prefix(options.task_prefix, contents)
    _check_folder(options.output, options.format)
    manifest = {
        "kind": options.format,
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, "float32"),
        "decoding": dataclasses.asdict(decoding),
        "task_prefix": options.task_prefix,
        "max_source_tokens": contents.config.max_source_tokens,
        "provenance": {"command": "export", "flags": recorded_flags(option_groups)},
        **facts,
    }
    path = files.join(options.output, MANIFEST_FILE)
    with stage("export"):
        # A manifest without checksums marks an unfinished export.
        files.write_json(path, manifest)
        manifest["sha256"] = {
            name: files.sha256_file(files.join(options.output, name))
            for name in write()
        }
        files.write_json(path, manifest)
    return manifest


def _prepare_checkpoint(
    options: ExportOptions, contents: Bundle, decoding: SearchConfig
) -> tuple[dict[str, Any], _Write]:
    """What the manifest of a checkpoint has of its own, and the function that writes
    the checkpoint.
    """
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
    if options.task_prefix:
        task = {"summarization": {"prefix": options.task_prefix}}
        settings["task_specific_params"] = task
    search = generation_settings(
        decoding.limited_to(contents.config.max_target_tokens), special
    )
    facts = {"model_type": settings["model_type"]}
    return facts, lambda: _write_checkpoint(options, contents, settings, search)


def _prepare_saved_model(
    options: ExportOptions, contents: Bundle, decoding: SearchConfig
) -> tuple[dict[str, Any], _Write]:
    """The same for a SavedModel."""
    load_tensorflow()
    import tensorflow_text

    from precis.model.inference.bulk_summarizer import ModelSearch, load_searcher
    from precis.model.inference.saved_model import save_model
    from precis.model.tokenization.unigram import unsupported_part

    for tokenizer in (contents.source_tokenizer, contents.tokenizer):
        if isinstance(tokenizer, ImportedTokenizer):
            part = "chat template" if contents.chat is not None else ""
            part = part or unsupported_part(tokenizer.definition)
            kind = tokenizer.definition["model"]["type"]
            if part:
                raise UsageError(
                    f"{options.bundle}: the {part} of its imported tokenizer, "
                    f"{_KINDS.get(kind, kind)}, cannot be part of a SavedModel; use "
                    "--format huggingface, or `precis summarize`"
                )

    def write() -> list[str]:
        search = ModelSearch(options.bundle, contents.model_id, "float32", decoding)
        searcher: Any = load_searcher(search)
        with tempfile.TemporaryDirectory() as folder:
            save_model(
                folder,
                searcher,
                source_tokenizer=contents.source_tokenizer,
                tokenizer=contents.tokenizer,
                task_prefix=options.task_prefix,
            )
            names = [
                os.path.relpath(os.path.join(path, name), folder)
                for path, _, of_path in os.walk(folder)
                for name in of_path
            ]
            for name in names:
                with (
                    open(os.path.join(folder, name), "rb") as source,
                    files.write_aside(files.join(options.output, name)) as target,
                ):
                    shutil.copyfileobj(source, target)
        _write_card(options, "tensorflow", _USE_OF_SAVED_MODEL)
        return sorted(names)

    return {"tensorflow_text": tensorflow_text.__version__}, write


def _check_folder(output: str, kind: str) -> None:
    """Refuses a folder that contains anything but an export, which is replaced.

    Raises:
      UsageError: the message names the content.
    """
    refuse_other_kind(output, kind)
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
) -> Sequence[str]:
    """Writes all files except the manifest; returns the names of those that
    transformers reads.

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
    _write_card(options, "transformers", _USE_OF_CHECKPOINT.replace("TEXT", text))
    return _OF_CHECKPOINT


def _write_card(options: ExportOptions, library: str, use: str) -> None:
    """Writes the model card, with the library that loads the export and how."""
    stored = open_stored(options.bundle)
    card = card_text(stored.manifest, stored.config, library=library, use=use.strip())
    files.write_bytes(files.join(options.output, CARD_FILE), card.encode())
