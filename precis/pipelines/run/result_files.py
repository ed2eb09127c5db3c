"""The files of a job and its result: their names and descriptions.

`precis.model.finished` checks whether a result is finished and complete.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from precis.model import files
from precis.model.errors import NO_ROOM, DataError, JobError, PrecisError, UsageError
from precis.pipelines.corpus.listing import is_within, resolve

TASKS_FOLDER = "_tasks"
JOB_FILE = "job.json"
LOCK_FILE = "lock.json"
WAY_OUT = "name another --output, or remove that folder"
DATA_FOLDER = "data"
GROUPS_FOLDER = "groups"
DEAD_LETTERS_FOLDER = "dead_letters"
# The name of the file that describes a finished result, by its kind.
DESCRIPTION_FILES = {"records": "dataset.json", "summaries": "manifest.json"}


class PublishedFile(TypedDict):
    """The description of a file in receipts and manifests.

    `file` is its name in the output folder. Only shards of records have a `split`. Only
    output files of `--partition_by` have a `partition`, the values of its columns.
    """

    file: str
    rows: int
    bytes: int
    sha256: str
    split: NotRequired[str]
    partition: NotRequired[dict[str, Any]]


def describe_file(output: str, name: str, *, rows: int) -> PublishedFile:
    """Describes a file that was published in an output folder."""
    path = files.join(output, name)
    fs, path_within = files.filesystem(path)
    return {
        "file": name,
        "rows": rows,
        "bytes": int(fs.info(path_within)["size"]),
        "sha256": files.sha256_file(path),
    }


def other_files(output: str, expected: Collection[str]) -> Iterator[str]:
    """Lists the files in and below a folder that are not expected, sorted by name.

    The file list of an object store may lag and show removed files.

    Args:
      output: the folder.
      expected: names relative to the folder.
    """
    fs, root = files.filesystem(output)
    start = len(root.rstrip("/")) + 1
    for path in sorted(fs.find(root)):
        is_expected = path[start:] in expected
        if not is_expected and (files.is_local(output) or fs.exists(path)):
            yield path[start:]


def check_apart(path: str, *, flag: str, result: str) -> None:
    """Refuses to write into a finished result, whose files must not change.

    Args:
      path: the file or folder that is to be written.
      flag: the flag that names it, for the message.
      result: the folder of the finished result.

    Raises:
      UsageError: the path lies in the result, also through links.
    """
    if is_within(resolve(path), resolve(result)):
        raise UsageError(
            f"{flag} {path} is in {result}, a finished result that must not change; "
            "name a place outside it"
        )


def not_writable(output: str, error: OSError) -> PrecisError:
    """The error for a folder in which a job cannot start."""
    if error.errno in NO_ROOM:
        return JobError(
            f"{output} cannot be written: {error}; free some space and run the same "
            "command again"
        )
    return UsageError(f"{output} cannot be written: {error}; name another --output")


_CHECKSUM_FIELD = "content_sha256"


def write_checksummed(path: str, content: Mapping[str, Any]) -> None:
    """Publishes a JSON object with a checksum.

    Args:
      path: the file to write.
      content: the object.
    """
    files.write_json(path, {**content, _CHECKSUM_FIELD: _checksum(content)})


def read_checksummed(
    path: str, *, way_out: str, fields: Mapping[str, type] | None = None
) -> dict[str, Any]:
    """Reads the JSON object in a file that `write_checksummed` wrote.

    Args:
      path, way_out, fields: as for `files.read_object`.

    Raises:
      DataError: the file has been changed.
    """
    content = files.read_object(path, way_out=way_out, fields=fields)
    if content.pop(_CHECKSUM_FIELD, None) != _checksum(content):
        raise DataError(
            f"{path}: damaged (its checksum does not match its content); {way_out}"
        )
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    # JSON turns number keys into text, which sorts differently.
    return files.sha256_json(json.loads(json.dumps(content)))
