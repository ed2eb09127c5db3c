"""A job and its output folder: beginning or resuming it there, and finishing it.

    _tasks/lock.json    which process owns the folder (`precis.pipelines.output_lock`)
    _tasks/job.json     which job runs here; there from the start to the end
    _tasks/infer/...    receipts of finished tasks (`precis.pipelines.tasks`)
    _SUCCESS            the job's fingerprint, and the checksum of the file that
                        describes the result; written when everything else is there

`finish_job` empties `_tasks`, and the process that gives back its lock removes it, so a
finished folder holds only the result.
"""

import datetime
import errno
import importlib.metadata
import posixpath
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import JobError, PrecisError, UsageError
from precis.pipelines.build_time import current_time
from precis.pipelines.checksummed_json import read_checksummed, write_checksummed
from precis.pipelines.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    Success,
    damaged_files,
    listed_files,
    read_success,
)

TASKS_FOLDER = "_tasks"
JOB_FILE = "job.json"
LOCK_FILE = "lock.json"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_WAY_OUT = "name another --output, or remove that folder"
# What the settings whose values are checksums stand for.
_LABELS = {
    "tasks_sha256": "the files of the corpus",
    "model_id": "the weights of --bundle",
    "extractive_model_id": "the weights of --extractive_bundle",
    "keyphrase_model_id": "the weights of --keyphrase_bundle",
    "tokenizer": "the pieces of --tokenizer",
    "source_tokenizer": "the pieces of --source_tokenizer",
}


class Job(NamedTuple):
    """A job and where it writes.

    Attributes:
      output: its folder.
      kind: `records` or `summaries`.
      fingerprint: sha256 of everything its result depends on.
      run_id: the first 16 digits of the fingerprint. The same job over the same data
          has the same run_id, so a result that was loaded twice is noticed.
      created_at: when it was first started, UTC; `SOURCE_DATE_EPOCH` sets it.
      tasks: how many tasks the corpus has.
      damaged: files of its finished result that are missing or have another content,
          where the job begins again to repair that.
    """

    output: str
    kind: str
    fingerprint: str
    run_id: str
    created_at: datetime.datetime
    tasks: int
    damaged: tuple[str, ...] = ()


def open_job(
    output: str,
    *,
    kind: str,
    inputs: Mapping[str, Any],
    tasks: int,
    may_replace: bool = False,
) -> Job | None:
    """Begins a job in an output folder, or resumes the same job in it.

    The caller owns the folder, by `own_output`.

    A finished result that was damaged since then is made again: the job begins anew,
    and its result is the same.

    Args:
      output: the folder.
      kind: `records` or `summaries`.
      inputs: the settings that the result depends on, by name, as JSON. The
          `provenance` of a finished result holds the same settings.
      tasks: how many tasks the job has.
      may_replace: whether the result of another job may be replaced.

    Returns:
      The job, or None where the folder holds its finished result already.

    Raises:
      UsageError: the folder holds something else, or cannot be written.
      JobError: the disk is full.
    """
    inputs = {"precis_version": importlib.metadata.version("precis"), **inputs}
    fingerprint = files.sha256_json({"kind": kind, **inputs})
    success = read_success(output)
    damaged: list[str] = []
    if success and success.fingerprint == fingerprint:
        damaged = damaged_files(output, kind, success)
        if not damaged:
            _clear_up(output, kind)
            return None
        _clear_tasks(output)
    description = _unfinished_job(output, success, fingerprint, may_replace)
    if description:
        created_at = _resume(output, fingerprint, inputs, description)
        return Job(output, kind, fingerprint, fingerprint[:16], created_at, tasks)
    if success and not damaged and not may_replace:
        raise _other_result(output, kind, inputs)
    if not success:
        _check_empty(output)
    job = Job(
        output,
        kind,
        fingerprint,
        fingerprint[:16],
        _first_created_at(output, kind) if damaged else current_time(),
        tasks,
        tuple(damaged),
    )
    _begin(job, inputs, replaces=_described_files(output, kind) if success else [])
    return job


def _unfinished_job(
    output: str, success: Success | None, fingerprint: str, may_replace: bool
) -> dict[str, Any] | None:
    """What job.json says of the job that was interrupted here; None where there is none
    to go on with.

    A job that was killed while it cleared up is finished. One that was to replace the
    result of the folder gives way to the next one that is to.
    """
    description = _read_description(files.join(output, TASKS_FOLDER, JOB_FILE))
    if description is None or success is None:
        return description
    if description["fingerprint"] == success.fingerprint:
        _clear_up(output, description["kind"])
        return None
    if may_replace and description["fingerprint"] != fingerprint:
        _discard(output, description["fingerprint"])
        return None
    return description


def _begin(job: Job, inputs: Mapping[str, Any], *, replaces: Sequence[str]) -> None:
    """Writes job.json; a damaged result counts as unfinished from then on."""
    _clear_tasks(job.output)
    description = {
        "fingerprint": job.fingerprint,
        "kind": job.kind,
        "created_at": job.created_at.isoformat(),
        "inputs": inputs,
        "replaces": list(replaces),
    }
    job_path = files.join(job.output, TASKS_FOLDER, JOB_FILE)
    _write_description(job.output, job_path, description)
    if job.damaged:
        files.remove(files.join(job.output, SUCCESS_FILE))


def _read_description(job_path: str) -> dict[str, Any] | None:
    """What job.json says; None where there is none."""
    if not files.exists(job_path):
        return None
    fields = {"fingerprint": str, "kind": str, "inputs": dict, "created_at": str}
    return read_checksummed(job_path, way_out=_WAY_OUT, fields=fields)


def is_unused(output: str) -> bool:
    """Whether a folder holds neither a job nor a result."""
    job_path = files.join(output, TASKS_FOLDER, JOB_FILE)
    return not files.exists(job_path) and read_success(output) is None


def warn_of_damage(command: str, job: Job) -> None:
    """Says which files of a finished result a job makes again."""
    for name in job.damaged:
        print(f"precis {command}: {name} is damaged; repairing", file=sys.stderr)


def _first_created_at(output: str, kind: str) -> datetime.datetime:
    """When a result was made, as far as its description still says so."""
    try:
        description = files.read_json(files.join(output, DESCRIPTION_FILES[kind]))
        return datetime.datetime.fromisoformat(description["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return current_time()


def _other_result(output: str, kind: str, inputs: Mapping[str, Any]) -> UsageError:
    """The error for a folder with the finished result of another job."""
    differences = ""
    path = files.join(output, DESCRIPTION_FILES[kind])
    if files.exists(path):
        content = files.read_object(path, way_out=_WAY_OUT)
        with files.naming_damage(path, way_out=_WAY_OUT):
            provenance = content.get("provenance", {})
            earlier = {**provenance.get("flags", {}), **provenance.get("inputs", {})}
        if earlier:
            differences = describe_differences(earlier, inputs, labels=_LABELS)
    replace = "; --reuse that folder replaces it" if kind == "summaries" else ""
    return UsageError(
        f"{output} holds the finished result of another job: "
        f"{differences or 'its settings are not recorded'}; "
        f"name another --output, or remove that folder{replace}"
    )


def _resume(
    output: str,
    fingerprint: str,
    inputs: Mapping[str, Any],
    description: Mapping[str, Any],
) -> datetime.datetime:
    """Clears up after an interrupted run of the same job; returns when it began."""
    if description["fingerprint"] != fingerprint:
        differences = describe_differences(
            description["inputs"], inputs, labels=_LABELS
        )
        raise UsageError(
            f"{output} holds an unfinished job with other settings: "
            f"{differences or 'it is of another kind'}; "
            "finish that one, name another --output, or remove that folder"
        )
    files.remove_leftovers(output)
    return datetime.datetime.fromisoformat(description["created_at"])


def _check_empty(output: str) -> None:
    """Refuses a folder that holds anything but `_tasks`.

    A job that was killed before it wrote job.json leaves a folder with `_tasks` alone.
    """
    fs, name = files.filesystem(output)
    if not fs.isdir(name):
        return
    entries = fs.ls(name, detail=False)
    if any(posixpath.basename(entry.rstrip("/")) != TASKS_FOLDER for entry in entries):
        raise UsageError(
            f"{output} is not empty and no job of precis began it; "
            "name an empty or new folder as --output"
        )


def _write_description(
    output: str, job_path: str, description: Mapping[str, Any]
) -> None:
    try:
        write_checksummed(job_path, description)
    except OSError as error:
        raise not_writable(output, error) from error


def not_writable(output: str, error: OSError) -> PrecisError:
    """The error for a folder in which a job cannot begin."""
    if error.errno in _NO_SPACE:
        return JobError(
            f"{output} cannot be written: {error}; make room and run the same command "
            "again"
        )
    return UsageError(f"{output} cannot be written: {error}; name another --output")


def finish_job(job: Job) -> None:
    """Marks the output as complete.

    The description of the result, dataset.json or manifest.json, must be there already.
    """
    description = files.join(job.output, DESCRIPTION_FILES[job.kind])
    content = f"{job.fingerprint}\n{files.sha256_file(description)}\n"
    files.write_bytes(files.join(job.output, SUCCESS_FILE), content.encode())
    _clear_up(job.output, job.kind)


def abandon_job(job: Job) -> None:
    """Leaves the output as it was before a job began that has done nothing yet."""
    _clear_tasks(job.output)


def _clear_up(output: str, kind: str) -> None:
    """Removes `_tasks`, and the files of a result that a finished job has replaced."""
    path = files.join(output, TASKS_FOLDER, JOB_FILE)
    if files.exists(path):
        description = read_checksummed(
            path, way_out=_WAY_OUT, fields={"fingerprint": str, "replaces": list}
        )
        success = read_success(output)
        if success and description["fingerprint"] != success.fingerprint:
            _discard(output, description["fingerprint"])
        replaced = set(description["replaces"])
        for name in sorted(replaced - set(_described_files(output, kind))):
            files.remove(files.join(output, name))
    _clear_tasks(output)


def _discard(output: str, fingerprint: str) -> None:
    """Removes what a job has left that was to replace a result and did not."""
    mark = f"-{fingerprint[:8]}-"
    for folder in (DATA_FOLDER, DEAD_LETTERS_FOLDER):
        fs, name = files.filesystem(files.join(output, folder))
        for path in fs.find(name) if fs.isdir(name) else ():
            if mark in posixpath.basename(path):
                fs.rm(path)
    _clear_tasks(output)


def _described_files(output: str, kind: str) -> list[str]:
    """The files that the description of a result lists; none if it is damaged."""
    try:
        description = files.read_json(files.join(output, DESCRIPTION_FILES[kind]))
        return [file["file"] for file in listed_files(description)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _clear_tasks(output: str) -> None:
    """Removes `_tasks`, but for the lock of the process that runs this."""
    folder = files.join(output, TASKS_FOLDER)
    fs, name = files.filesystem(folder)
    if not fs.isdir(name):
        return
    entries = [posixpath.basename(path.rstrip("/")) for path in fs.ls(name, False)]
    # job.json goes last: receipts that it does not stand beside are of no job.
    for entry in sorted(entries, key=lambda entry: entry == JOB_FILE):
        if entry != LOCK_FILE:
            files.remove(files.join(folder, entry))
    if LOCK_FILE not in entries:
        files.remove(folder)
