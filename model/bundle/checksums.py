"""SHA256SUMS of a bundle: the sha256 of each of its files, byte for byte.

    0f4c...  README.md
    7be1...  manifest.json

`sha256sum --check SHA256SUMS` reads it too. The manifest has checksums of what the
model_id is computed from; this file covers the manifest, the tokenizers and the model
card as well. Bundles of earlier versions do not have it.
"""

import re
from collections.abc import Mapping

from precis.model import files
from precis.model.errors import DataError

CHECKSUMS_FILE = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write_checksums(folder: str, checksums: Mapping[str, str]) -> None:
    """Writes the sha256 of files, by their names in the folder."""
    files.write_bytes(files.join(folder, CHECKSUMS_FILE), _as_bytes(checksums))


def read_checksums(folder: str) -> dict[str, str]:
    """The sha256 of files, by name; empty for a bundle of an earlier version.

    Raises:
      DataError: the file is not as it was written.
    """
    path = files.join(folder, CHECKSUMS_FILE)
    if not files.exists(path):
        return {}
    content = files.read_bytes(path)
    lines = map(_LINE.fullmatch, content.decode(errors="replace").split("\n"))
    checksums = {line[2]: line[1] for line in lines if line}
    if not checksums or content != _as_bytes(checksums):
        raise DataError(
            f"{path}: is damaged: not as precis writes it; copy the bundle again"
        )
    return checksums


def update_checksum(folder: str, name: str) -> None:
    """Writes the sha256 of a file anew, where the bundle has checksums.

    Raises:
      DataError: as `read_checksums`.
    """
    checksums = read_checksums(folder)
    if checksums:
        checksum = files.sha256_file(files.join(folder, name))
        write_checksums(folder, {**checksums, name: checksum})


def _as_bytes(checksums: Mapping[str, str]) -> bytes:
    lines = (f"{checksums[name]}  {name}\n" for name in sorted(checksums))
    return "".join(lines).encode()
