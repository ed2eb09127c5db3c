"""Which steps of a job are finished.

    FOLDER/_steps/train.json    fingerprint   of the command line and of what it read
                                output        of what it wrote

A fingerprint of files is made of their names, sizes and times, or on an object store of
their checksums: nothing is read. Where one differs, the step runs again, and its
command decides what is left to do, as it does without a job.
"""

import importlib.metadata
import posixpath
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError
from precis.pipelines.jobs.checksummed_json import read_checksummed, write_checksummed
from precis.pipelines.plan.steps import Step

_FOLDER = "_steps"
# What tells a file from a later one of its name and size, by the store.
_VERSIONS = ("mtime", "md5Hash", "crc32c", "ETag", "etag", "generation")
_WAY_OUT = "the step runs again"
# A folder that a process owns; its lock changes.
_TASKS = "_tasks"


class Receipt(NamedTuple):
    """What a step was made of, and what it wrote."""

    fingerprint: str
    output: str


def is_finished(folder: str, step: Step) -> bool:
    """Whether a step ran to its end with these flags, and neither what it read nor what
    it wrote has changed since.

    A step whose flags name no output has nothing to show, and is never finished.
    """
    path = _path(folder, step)
    if not step.output or not files.exists(path):
        return False
    try:
        fields = {"fingerprint": str, "output": str}
        content = read_checksummed(path, way_out=_WAY_OUT, fields=fields)
    except DataError:
        return False
    written = fingerprint_files(step.output)
    return bool(written) and Receipt(content["fingerprint"], content["output"]) == (
        Receipt(fingerprint(step), written)
    )


def write_receipt(folder: str, step: Step, read: str) -> None:
    """Notes that a step is finished.

    Args:
      folder: of the job.
      step: the step.
      read: `fingerprint` before it ran: what it may not have seen counts as changed.
    """
    written = fingerprint_files(step.output) if step.output else ""
    if not written:
        return
    content = {"step": step.name, "command": step.command, "fingerprint": read}
    write_checksummed(_path(folder, step), {**content, "output": written})


def fingerprint(step: Step) -> str:
    """A sha256 of a command line, of the files that it reads, and of this version."""
    return files.sha256_json(
        {
            "command": [step.command, *step.words],
            "inputs": {
                path: fingerprint_files(path, without=step.output)
                for path in step.inputs
            },
            "precis_version": importlib.metadata.version("precis"),
        }
    )


def fingerprint_files(path: str, *, without: str = "") -> str:
    """A sha256 of the names, sizes and versions of files; "" where there are none.

    Args:
      path: a file, a folder or a pattern of files.
      without: a file or folder that is left out.
    """
    fs, name = files.filesystem(path)
    left_out = files.filesystem(without)[1] if without else ""
    root = posixpath.dirname(name.partition("*")[0])
    if fs.isfile(name):
        found = {name: fs.info(name)}
    elif fs.isdir(name):
        root = name
        found = fs.find(name, detail=True)
    else:
        found = {
            each: info
            for each, info in fs.glob(name, detail=True).items()
            if info["type"] == "file"
        }
    described = [
        [within, info.get("size"), *_versions(info)]
        for each, info in sorted(found.items())
        if not (left_out and f"{each}/".startswith(f"{left_out}/"))
        and _TASKS not in (within := posixpath.relpath(each, root)).split("/")
    ]
    return files.sha256_json(described) if described else ""


def _versions(info: dict[str, Any]) -> list[str]:
    return [str(info[name]) for name in _VERSIONS if info.get(name) is not None]


def _path(folder: str, step: Step) -> str:
    return files.join(folder, _FOLDER, f"{step.name}.json")
