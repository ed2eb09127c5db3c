"""A job and its output folder: beginning or resuming it there, and finishing it.

    _tasks/lock.json    which process owns the folder (`output_lock`)
    _tasks/job.json     which job runs here; there from the start to the end
    _tasks/infer/...    receipts of finished tasks (`precis.pipelines.engines.tasks`)
    _SUCCESS            the job's fingerprint, and the checksum of the file that
                        describes the result; written when everything else is there

`finish_job` empties `_tasks`, and the process that gives back its lock removes it, so a
finished folder holds only the result.
"""

import datetime
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import NO_ROOM, JobError, PrecisError, UsageError
from precis.model.progress.stages import say
from precis.pipelines.run.build_time import current_time
from precis.pipelines.run.checksummed_json import write_checksummed
from precis.pipelines.run.output_state import (
    JOB_FILE,
    LOCK_FILE,
    TASKS_FOLDER,
    examine_output,
    read_job_description,
)
from precis.pipelines.run.result_files import (
    DATA_FOLDER,
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    SOURCES_FOLDER,
    SUCCESS_FILE,
    described_files,
    read_success,
)


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
      The job, or None where the folder holds its finished result already. Where that
      lacks _SUCCESS alone, it is written again.

    Raises:
      UsageError: the folder holds something else, or cannot be written.
      JobError: the disk is full.
    """
    state = examine_output(output, kind=kind, inputs=inputs, may_replace=may_replace)
    fingerprint, inputs, success, damaged, unfinished, given_up = state
    if state.is_finished:
        if success != read_success(output):
            _write_success(output, kind, fingerprint)
            say(f"{output}: {SUCCESS_FILE} was missing and is written again")
        _clear_up(output, kind)
        return None
    if given_up and success and given_up["fingerprint"] == success.fingerprint:
        _clear_up(output, given_up["kind"])  # It was killed while it did so.
    elif given_up:
        _discard(output, given_up["fingerprint"])
    if unfinished:
        files.remove_leftovers(output)
        created_at = datetime.datetime.fromisoformat(unfinished["created_at"])
        return Job(output, kind, fingerprint, fingerprint[:16], created_at, tasks)
    job = Job(
        output,
        kind,
        fingerprint,
        fingerprint[:16],
        _first_created_at(output, kind) if damaged else current_time(),
        tasks,
        damaged,
    )
    _begin(job, inputs, replaces=described_files(output, kind) if success else [])
    return job


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


def is_unused(output: str) -> bool:
    """Whether a folder holds neither a job nor a result."""
    job_path = files.join(output, TASKS_FOLDER, JOB_FILE)
    return not files.exists(job_path) and read_success(output) is None


def warn_of_damage(command: str, job: Job) -> None:
    """Says which files of a finished result a job makes again."""
    for name in job.damaged:
        say(f"precis {command}: {name} is damaged; repairing")


def say_finished(command: str, output: str) -> None:
    """Says that a job has nothing to do, as its result is there."""
    say(f"precis {command}: {output} was finished before; nothing was done")


def _first_created_at(output: str, kind: str) -> datetime.datetime:
    """When a result was made, as far as its description still says so."""
    try:
        description = files.read_json(files.join(output, DESCRIPTION_FILES[kind]))
        return datetime.datetime.fromisoformat(description["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return current_time()


def _write_description(
    output: str, job_path: str, description: Mapping[str, Any]
) -> None:
    try:
        write_checksummed(job_path, description)
    except OSError as error:
        raise not_writable(output, error) from error


def not_writable(output: str, error: OSError) -> PrecisError:
    """The error for a folder in which a job cannot begin."""
    if error.errno in NO_ROOM:
        return JobError(
            f"{output} cannot be written: {error}; make room and run the same command "
            "again"
        )
    return UsageError(f"{output} cannot be written: {error}; name another --output")


def finish_job(job: Job) -> None:
    """Marks the output as complete.

    The description of the result, dataset.json or manifest.json, must be there already.
    """
    # Of workers that died while the engine went on without them.
    files.remove_leftovers(job.output)
    _write_success(job.output, job.kind, job.fingerprint)
    _clear_up(job.output, job.kind)


def _write_success(output: str, kind: str, fingerprint: str) -> None:
    description = files.join(output, DESCRIPTION_FILES[kind])
    content = f"{fingerprint}\n{files.sha256_file(description)}\n"
    files.write_bytes(files.join(output, SUCCESS_FILE), content.encode())


def abandon_job(job: Job) -> None:
    """Leaves the output as it was before a job began that has done nothing yet."""
    _clear_tasks(job.output)


def _clear_up(output: str, kind: str) -> None:
    """Removes `_tasks`, and the files of a result that a finished job has replaced."""
    description = read_job_description(output)
    if description:
        lock = files.join(TASKS_FOLDER, LOCK_FILE)
        kept = {lock, DESCRIPTION_FILES[kind], SUCCESS_FILE}
        kept.update(described_files(output, kind))
        success = read_success(output)
        if success and description["fingerprint"] != success.fingerprint:
            _discard(output, description["fingerprint"])
        for name in sorted(set(description["replaces"]) - kept):
            fs, path = files.filesystem(files.join(output, name))
            if fs.isfile(path):  # No folder, which may hold files of the result.
                fs.rm(path)
    _clear_tasks(output)


def _discard(output: str, fingerprint: str) -> None:
    """Removes what a job has left that was to replace a result and did not."""
    mark = f"-{fingerprint[:8]}-"
    for folder in (DATA_FOLDER, DEAD_LETTERS_FOLDER, SOURCES_FOLDER):
        fs, name = files.filesystem(files.join(output, folder))
        for path in fs.find(name) if fs.isdir(name) else ():
            if mark in posixpath.basename(path):
                fs.rm(path)
    _clear_tasks(output)


def _clear_tasks(output: str) -> None:
    """Removes `_tasks`, but for the lock of the process that runs this."""
    folder = files.join(output, TASKS_FOLDER)
    entries = files.list_folder(folder)
    for entry in entries:
        if entry not in (JOB_FILE, LOCK_FILE):
            files.remove(files.join(folder, entry))
    # It goes last: receipts that it does not stand beside are of no job. The list of an
    # object store may not have it yet.
    files.remove(files.join(folder, JOB_FILE))
    if entries and LOCK_FILE not in entries:
        files.remove(folder)
