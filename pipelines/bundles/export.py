"""`precis export`: bundle -> TensorFlow SavedModel, or a checkpoint of transformers.

The graph is built in `precis.model.inference.export`, the checkpoint in
`precis.pipelines.bundles.huggingface`. Nothing here needs Beam.
"""

import dataclasses
import importlib.metadata
import os
from typing import Any

from precis.model import files
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import JobError
from precis.model.progress.stages import stage
from precis.model.search.config import SearchConfig, check_coverage
from precis.pipelines.bundles.export_folder import (
    MANIFEST_FILE,
    folder_aside,
    folder_checksums,
    read_finished_export,
)
from precis.pipelines.bundles.huggingface import (
    check_flags,
    describe_checkpoint,
    with_search_of_transformers,
    write_checkpoint,
)
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.bundles import EXPORT, HUGGINGFACE, ExportOptions
from precis.pipelines.options.summarize import decode_id

PACKAGES = ("precis", "tensorflow", "tensorflow-text", "keras")
# How to call the SavedModel; written into its manifest.
USE = {
    "needs": "import tensorflow, tensorflow_text",
    "signature": "serving_default",
    "input": {"articles": "string [B], UTF-8, as they were read"},
    "output": {
        "summaries": "string [B, N], best first, N = n_best; one sentence a line",
        "scores": (
            "float32 [B, N], falling; "
            "-inf where a summary is empty because there is none"
        ),
    },
    "cleaned_inside": [
        "bytes that are no UTF-8 become U+FFFD",
        (
            "boilerplate before the story is left out, if strip_boilerplate and unless "
            "clean is none"
        ),
        (
            "invisible characters are removed, Unicode is composed (NFC), "
            "white space and line breaks become single spaces; if clean is none, line "
            "breaks stay"
        ),
        "what is longer than max_source_tokens is cut",
    ],
    "not_inside": "decoding of files and formats: markup, other character encodings",
}


def export(**flags: Any) -> dict[str, Any]:
    """Writes a bundle as a SavedModel that runs without precis, or as a checkpoint that
    transformers loads.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: no bundle, one that the format cannot hold, or a folder that holds
          something else.
      DataError: a damaged bundle.
      JobError: TensorFlow could not write.
    """
    is_checkpoint = flags.get("format") == HUGGINGFACE
    if is_checkpoint:
        check_flags(flags)
    searched = with_decoding_of_bundle(flags)
    if is_checkpoint:
        searched = with_search_of_transformers(searched)
    concerns = read_flags(EXPORT, searched)
    options, decoding = concerns
    describe = describe_checkpoint if is_checkpoint else _check
    description = describe(options, decoding)
    provenance = {"command": "export", "flags": recorded_flags(concerns)}
    finished = read_finished_export(options.output, description)
    if finished:
        return finished
    write = write_checkpoint if is_checkpoint else _write
    with stage("export"):
        return write(options, decoding, {**description, "provenance": provenance})


def _check(options: ExportOptions, decoding: SearchConfig) -> dict[str, Any]:
    """Checks the bundle and the flags before anything is loaded.

    Returns:
      The manifest of the export, except the checksums of its files.
    """
    from precis.model.inference.export import tokenizer_with_graph

    contents = open_bundle(options.bundle)
    tokenizer_with_graph(contents.tokenizer)
    tokenizer_with_graph(contents.source_tokenizer)
    check_coverage(decoding, has_pointer=contents.config.pointer)
    check_prefix(options.task_prefix, contents)
    return {
        "kind": "saved_model",
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, options.precision),
        "decoding": dataclasses.asdict(decoding),
        "clean": options.clean,
        "strip_boilerplate": options.strip_boilerplate,
        "task_prefix": options.task_prefix,
        "precision": options.precision,
        "max_source_tokens": contents.config.max_source_tokens,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "use": USE,
    }


def _write(
    options: ExportOptions, decoding: SearchConfig, description: dict[str, Any]
) -> dict[str, Any]:
    """Writes the SavedModel, then its manifest.

    Returns:
      The content of the manifest.
    """
    import tensorflow as tf

    from precis.model.inference.export import SummarizingModule, save_graph

    module = SummarizingModule(
        load_bundle(options.bundle, precision=options.precision),
        decoding,
        clean=options.clean,
        strip_boilerplate=options.strip_boilerplate,
        task_prefix=options.task_prefix,
    )
    with folder_aside(options.output) as folder:
        try:
            save_graph(module, folder)
        except tf.errors.OpError as error:
            raise JobError(
                f"{options.output} could not be written: {error.message}; make room or "
                "name another --output"
            ) from error
        manifest = {**description, "sha256": folder_checksums(folder)}
        files.write_json(os.path.join(folder, MANIFEST_FILE), manifest)
    return manifest
