"""`precis export`: bundle -> TensorFlow SavedModel.

The graph is built in `precis.model.inference.export`. Nothing here needs Beam.
"""

import contextlib
import dataclasses
import importlib.metadata
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from precis.model import files
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import JobError, UsageError
from precis.model.search.config import SearchConfig, check_coverage
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.bundles import EXPORT, ExportOptions
from precis.pipelines.options.summarize import decode_id

MANIFEST_FILE = "manifest.json"
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
    """Writes a bundle as a SavedModel that runs without precis.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: no bundle, an imported one, or a folder that holds something else.
      DataError: a damaged bundle.
      JobError: TensorFlow could not write.
    """
    concerns = read_flags(EXPORT, with_decoding_of_bundle(flags))
    options, decoding = concerns
    description = _check(options, decoding)
    provenance = {"command": "export", "flags": recorded_flags(concerns)}
    finished = _read_finished(options.output, description)
    return finished or _write(
        options, decoding, {**description, "provenance": provenance}
    )


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


def _read_finished(output: str, description: dict[str, Any]) -> dict[str, Any] | None:
    """Reads the manifest of an earlier export with the same description.

    Returns:
      The manifest, or None if the folder is empty or missing.

    Raises:
      UsageError: the folder holds anything else.
    """
    path = files.join(output, MANIFEST_FILE)
    if files.exists(path):
        way_out = "name another --output, or remove that folder"
        manifest = files.read_object(path, way_out=way_out)
        checksums = manifest.pop("sha256", {})
        # The bundle may lie elsewhere since; its model_id is part of the description.
        provenance = manifest.pop("provenance", {})
        if manifest == description and all(
            _holds(files.path_within(output, name, listed_in=path), sha256)
            for name, sha256 in dict(checksums).items()
        ):
            return {**manifest, "provenance": provenance, "sha256": checksums}
    fs, name = files.filesystem(output)
    is_empty_folder = fs.isdir(name) and not fs.ls(name)
    if fs.exists(name) and not is_empty_folder:
        raise UsageError(
            f"{output} holds something else than this export; name another --output, "
            "or remove that folder"
        )
    return None


def _holds(path: str, sha256: str) -> bool:
    """Whether a file exists and has a checksum."""
    return files.exists(path) and files.sha256_file(path) == sha256


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
    with _folder_aside(options.output) as folder:
        try:
            save_graph(module, folder)
        except tf.errors.OpError as error:
            raise JobError(
                f"{options.output} could not be written: {error.message}; make room or "
                "name another --output"
            ) from error
        manifest = {**description, "sha256": _checksums(folder)}
        files.write_json(os.path.join(folder, MANIFEST_FILE), manifest)
    return manifest


def _checksums(folder: str) -> dict[str, str]:
    """The checksum of every file below a local folder, by its path in the folder."""
    names = sorted(
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, file_names in os.walk(folder)
        for name in file_names
    )
    return {name: files.sha256_file(os.path.join(folder, name)) for name in names}


@contextlib.contextmanager
def _folder_aside(output: str) -> Iterator[str]:
    """A local folder that becomes `output` if the block ends without an error.

    The folder that a killed process left aside is removed first.
    """
    if not files.is_local(output):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
            _upload(folder, output)
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


def _upload(folder: str, output: str) -> None:
    """Copies a folder to an object store, the manifest last: a store cannot rename a
    folder, so the manifest says that the export is complete.
    """
    manifest = os.path.join(folder, MANIFEST_FILE)
    content = files.read_bytes(manifest)
    os.remove(manifest)
    files.copy_tree(folder, output)
    files.write_bytes(files.join(output, MANIFEST_FILE), content)
