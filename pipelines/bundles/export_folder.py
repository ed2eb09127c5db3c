"""The folder of an export: written aside, with a manifest that comes last."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from precis.model import files
from precis.model.errors import UsageError

MANIFEST_FILE = "manifest.json"


def read_finished_export(
    output: str, description: dict[str, Any]
) -> dict[str, Any] | None:
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


def folder_checksums(folder: str) -> dict[str, str]:
    """The checksum of every file below a local folder, by its path in the folder."""
    names = sorted(
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, file_names in os.walk(folder)
        for name in file_names
    )
    return {name: files.sha256_file(os.path.join(folder, name)) for name in names}


@contextlib.contextmanager
def folder_aside(output: str) -> Iterator[str]:
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
