"""A finished result on disk: which files it has, and whether they are as it left them.

manifest.json or dataset.json   describes the result and lists its files
_SUCCESS                        the job's fingerprint, and the checksum of the
                                description; written last
"""

import json
import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from precis.model import files
from precis.model.errors import NO_ROOM, DataError, JobError, PrecisError, UsageError
from precis.pipelines.corpus.listing import is_within, resolve

SUCCESS_FILE = "_SUCCESS"
TASKS_FOLDER = "_tasks"
JOB_FILE = "job.json"
LOCK_FILE = "lock.json"
WAY_OUT = "name another --output, or remove that folder"
DATA_FOLDER = "data"
GROUPS_FOLDER = "groups"
DEAD_LETTERS_FOLDER = "dead_letters"
# The file that describes a finished result, by its kind.
DESCRIPTION_FILES = {"records": "dataset.json", "summaries": "manifest.json"}


class PublishedFile(TypedDict):
    """A file as receipts and manifests describe it.

    `file` is its name in the output folder; only a shard of records has a `split`, only
    a part in a folder of --partition_by a `partition`: the values of its columns.
    """

    file: str
    rows: int
    bytes: int
    sha256: str
    split: NotRequired[str]
    partition: NotRequired[dict[str, Any]]


def read_success(output: str) -> bytes | None:
    """The content of _SUCCESS; None where the result is not finished."""
    path = files.join(output, SUCCESS_FILE)
    return files.read_bytes(path) if files.exists(path) else None


def describe_file(output: str, name: str, *, rows: int) -> PublishedFile:
    """The description of a file that was published in an output folder."""
    path = files.join(output, name)
    fs, path_within = files.filesystem(path)
    return {
        "file": name,
        "rows": rows,
        "bytes": int(fs.info(path_within)["size"]),
        "sha256": files.sha256_file(path),
    }


def success_damage(
    output: str, kind: str, description: Mapping[str, Any]
) -> tuple[str, str]:
    """The file that is damaged of the two that mark a finished result, _SUCCESS and its
    description, and what is wrong with it; empty texts if _SUCCESS is, byte for byte,
    what was written beside the description.

    Args:
      output: its folder.
      kind: `records` or `summaries`.
      description: the content of its description.
    """
    name, success = DESCRIPTION_FILES[kind], read_success(output)
    path = files.join(output, name)
    expected = files.success_content(path, description.get("fingerprint"))
    if success is None:
        return SUCCESS_FILE, "is missing: the result is not finished"
    if len(success) != len(expected):
        return SUCCESS_FILE, f"has {len(success)} bytes in place of {len(expected)}"
    return (name, differs_from(SUCCESS_FILE)) if success != expected else ("", "")


def differs_from(other: str) -> str:
    """The problem of a file whose checksum is not the one in another file."""
    return f"its checksum is not that in {other}; one of them was changed"


def damaged_files(output: str, kind: str) -> list[str]:
    """The files of a finished result that are missing or have another content.

    Args:
      output: its folder.
      kind: `records` or `summaries`.

    Raises:
      DataError: the description names a file outside of the folder.
    """
    name = DESCRIPTION_FILES[kind]
    path = files.join(output, name)
    if not files.exists(path):
        return [name]
    try:
        content = files.read_object(path, way_out=WAY_OUT)
    except DataError:
        return [name]
    damaged, _ = success_damage(output, kind, content)
    if damaged:
        return [damaged]
    with files.naming_damage(path, way_out=WAY_OUT):
        listed_names(path, content)
        listed = listed_files(content)
        return [file["file"] for file in listed if damage_of(output, file)]


def listed_files(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The files that the description of a result lists.

    Args:
      description: the content of manifest.json or dataset.json.
    """
    shards = [
        shard
        for split in description.get("splits", {}).values()
        for shard in split["shards"]
    ]
    return [
        *description.get("files", ()),
        *description.get("groups", {}).get("files", ()),
        *shards,
        *description.get("dead_letters", ()),
    ]


def listed_names(path: str, description: Mapping[str, Any]) -> list[str]:
    """The names of the files that the description of a result lists.

    Args:
      path: of the description, in the folder of the result.
      description: its content.

    Raises:
      DataError: a name leads out of the folder.
      KeyError, TypeError, AttributeError: the list is damaged.
    """
    names = [file["file"] for file in listed_files(description)]
    for name in names:
        files.path_within(posixpath.dirname(path), name, listed_in=path)
    return names


def damage_of(output: str, file: Mapping[str, Any]) -> str:
    """What is wrong with a file of a result, as in "is missing"; "" if it is whole.

    Args:
      output: the folder of the result.
      file: has its name in the folder, and `bytes` and `sha256`.
    """
    path = files.path_within(output, file["file"], listed_in=output)
    fs, name = files.filesystem(path)
    if not fs.isfile(name):
        return "is missing"
    size = fs.info(name)["size"]
    if size != file["bytes"]:
        return f"has {size:,} bytes and was written with {file['bytes']:,}"
    if files.sha256_file(path) != file["sha256"]:
        return "has another content than was written: its checksum differs"
    return ""


def other_files(output: str, expected: Collection[str]) -> Iterator[str]:
    """The names of the files below a folder that are not expected there, sorted.

    The list of an object store may be late and hold what was removed.

    Args:
      output: the folder.
      expected: names from the folder on.
    """
    fs, root = files.filesystem(output)
    start = len(root.rstrip("/")) + 1
    for path in sorted(fs.find(root)):
        is_expected = path[start:] in expected
        if not is_expected and (files.is_local(output) or fs.exists(path)):
            yield path[start:]


def check_apart(path: str, *, flag: str, result: str) -> None:
    """Refuses a place in a finished result, whose files stay as they were written.

    Args:
      path: of a file or folder that is to be written.
      flag: that names it, for the message.
      result: the folder of the result.

    Raises:
      UsageError: it lies there. Links are followed before paths are compared.
    """
    if is_within(resolve(path), resolve(result)):
        raise UsageError(
            f"{flag} {path} lies in {result}, whose files stay as they were written; "
            "name a place outside it"
        )


def not_writable(output: str, error: OSError) -> PrecisError:
    """The error for a folder in which a job cannot begin."""
    if error.errno in NO_ROOM:
        return JobError(
            f"{output} cannot be written: {error}; make room and run the same command "
            "again"
        )
    return UsageError(f"{output} cannot be written: {error}; name another --output")


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
