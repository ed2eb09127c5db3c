"""`precis export`: bundle -> TensorFlow SavedModel. Thin: the work is in
`precis.model.inference.export`, and no part of it needs Beam.
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
    read_decoding,
)
from precis.model.errors import JobError, UsageError
from precis.model.search.config import SearchConfig, check_coverage
from precis.pipelines.flags import read_flags
from precis.pipelines.options import EXPORT, ExportOptions, decode_id

MANIFEST_FILE = "manifest.json"
PACKAGES = ("precis", "tensorflow", "tensorflow-text", "keras")
# What a caller of the SavedModel has to know; it stands in its manifest.
USE = {
    "needs": "import tensorflow, tensorflow_text",
    "signature": "serving_default",
    "input": {"articles": "string [B], UTF-8, as they were read"},
    "output": {
        "summaries": "string [B, N], best first, N = n_best; one sentence a line",
        "scores": "float32 [B, N], falling; -inf where a summary is empty because there is none",
    },
    "cleaned_inside": [
        "bytes that are no UTF-8 become U+FFFD",
        "boilerplate before the story is left out, if strip_boilerplate",
        "invisible characters are removed, Unicode is composed (NFC), white space and line breaks become single spaces",
        "what is longer than max_source_tokens is cut",
    ],
    "not_inside": "decoding of files and formats: markup, other character encodings",
}


def export(**flags: Any) -> dict[str, Any]:
    """Writes a bundle as a SavedModel that needs nothing of precis.

    Args:
      **flags: the fields of `ExportOptions` and `SearchConfig`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: no bundle, an imported one, or a folder that holds something else.
      DataError: a damaged bundle.
      JobError: TensorFlow could not write.
    """
    own = read_decoding(flags["bundle"]) if flags.get("bundle") else {}
    options, decoding = read_flags(EXPORT, {**own, **flags})
    from precis.model.inference.export import tokenizer_with_graph

    contents = open_bundle(options.bundle)
    tokenizer_with_graph(contents.tokenizer)
    tokenizer_with_graph(contents.source_tokenizer)
    check_coverage(decoding, has_pointer=contents.config.pointer)
    check_prefix(options.task_prefix, contents)
    description = {
        "kind": "saved_model",
        "model_id": contents.model_id,
        "decode_id": decode_id(decoding, options.precision),
        "decoding": dataclasses.asdict(decoding),
        "strip_boilerplate": options.strip_boilerplate,
        "task_prefix": options.task_prefix,
        "precision": options.precision,
        "max_source_tokens": contents.config.max_source_tokens,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "use": USE,
    }
    return _finished(options.output, description) or _write(
        options, decoding, description
    )


def _finished(output: str, description: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the same export that was made before, or None where the folder is
    free.

    Raises:
      UsageError: it holds anything else.
    """
    path = files.join(output, MANIFEST_FILE)
    if files.exists(path):
        found = files.read_json(path)
        checksums = found.pop("sha256", {})
        if found == description and all(
            _holds(files.join(output, name), sha256)
            for name, sha256 in checksums.items()
        ):
            return {**found, "sha256": checksums}
    fs, name = files.filesystem(output)
    if fs.exists(name) and not (fs.isdir(name) and not fs.ls(name)):
        raise UsageError(
            f"{output} holds something else than this export; name another --output, or remove that folder"
        )
    return None


def _holds(path: str, sha256: str) -> bool:
    return files.exists(path) and files.sha256_file(path) == sha256


def _write(
    options: ExportOptions, decoding: SearchConfig, description: dict[str, Any]
) -> dict[str, Any]:
    import tensorflow as tf

    from precis.model.inference.export import SummarizingModule, save_graph

    module = SummarizingModule(
        load_bundle(options.bundle, precision=options.precision),
        decoding,
        strip_boilerplate=options.strip_boilerplate,
        task_prefix=options.task_prefix,
    )
    with _folder_aside(options.output) as folder:
        try:
            save_graph(module, folder)
        except tf.errors.OpError as error:
            raise JobError(
                f"{options.output} could not be written: {error.message}; make room or name another --output"
            ) from error
        names = sorted(
            os.path.relpath(os.path.join(where, name), folder)
            for where, _, found in os.walk(folder)
            for name in found
        )
        manifest = {
            **description,
            "sha256": {
                name: files.sha256_file(os.path.join(folder, name)) for name in names
            },
        }
        files.write_json(os.path.join(folder, MANIFEST_FILE), manifest)
    return manifest


@contextlib.contextmanager
def _folder_aside(output: str) -> Iterator[str]:
    """A local folder that becomes `output` when the block ends without an error; what a
    killed process left of it is removed.
    """
    if not files.is_local(output):
        with tempfile.TemporaryDirectory() as folder:
            yield folder
            manifest = os.path.join(folder, MANIFEST_FILE)
            content = files.read_bytes(manifest)
            os.remove(manifest)
            files.copy_tree(folder, output)
            files.write_bytes(
                files.join(output, MANIFEST_FILE), content
            )  # last: an object store renames no folder
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
