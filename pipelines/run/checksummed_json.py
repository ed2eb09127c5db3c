"""JSON files of a running job, which tell by themselves whether they are whole.

A job that is resumed reads these files. A digit that a disk has changed would end in
the result, so each file holds a checksum of its content.
"""

import json
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.errors import DataError

_CHECKSUM_FIELD = "content_sha256"


def write_checksummed(path: str, content: Mapping[str, Any]) -> None:
    """Publishes a JSON object with its checksum.

    Args:
      path: the file.
      content: of the object.
    """
    files.write_json(path, {**content, _CHECKSUM_FIELD: _checksum(content)})


def read_checksummed(
    path: str, *, way_out: str, fields: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """The JSON object in a file of `write_checksummed`.

    Args:
      path, way_out, fields: as in `files.read_object`.

    Raises:
      DataError: the file is not as it was written.
    """
    content = files.read_object(path, way_out=way_out, fields=fields)
    if content.pop(_CHECKSUM_FIELD, None) != _checksum(content):
        raise DataError(
            f"{path}: damaged (its checksum is not that of its content); {way_out}"
        )
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    # JSON turns keys that are numbers into text, which sorts in another order.
    return files.sha256_json(json.loads(json.dumps(content)))
