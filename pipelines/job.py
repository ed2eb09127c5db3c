"""A job and its output folder: taking possession of it, and finishing it.

    _tasks/job.json     which job runs here; there from the start to the end
    _tasks/00003.json   the receipt of a finished task (`precis.pipelines.tasks`)
    _SUCCESS            the job's fingerprint, written when everything else is there

`finish_job` removes `_tasks`, so a finished folder holds only the result.
"""

import datetime
import importlib.metadata
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import Task

TASKS_FOLDER = "_tasks"
DEAD_LETTERS_FOLDER = "dead_letters"
JOB_FILE = "job.json"
SUCCESS_FILE = "_SUCCESS"


class Job(NamedTuple):
    """A job and where it writes.

    Attributes:
      output: its folder.
      fingerprint: sha256 of everything its result depends on.
      run_id: the first 16 digits of the fingerprint. The same job over the same data
          has the same run_id, so a result that was loaded twice is noticed.
      created_at: when it was first started, UTC; `SOURCE_DATE_EPOCH` sets it.
      tasks: how many tasks it has.
    """

    output: str
    fingerprint: str
    run_id: str
    created_at: datetime.datetime
    tasks: int


def open_job(
    output: str, *, kind: str, inputs: Mapping[str, Any], tasks: int
) -> Job | None:
    """Takes possession of an output folder, or resumes the same job in it.

    Args:
      output: the folder.
      kind: `records` or `summaries`.
      inputs: everything the result depends on, as JSON.
      tasks: how many tasks the job has.

    Returns:
      The job, or None where the folder holds its finished result already.

    Raises:
      UsageError: the folder holds something else, or cannot be written.
    """
    inputs = {"precis_version": importlib.metadata.version("precis"), **inputs}
    fingerprint = files.sha256_json({"kind": kind, **inputs})
    if files.exists(files.join(output, SUCCESS_FILE)):
        _check_finished(output, fingerprint)
        files.remove(files.join(output, TASKS_FOLDER))
        return None
    job_path = files.join(output, TASKS_FOLDER, JOB_FILE)
    if files.exists(job_path):
        created_at = _resume(output, fingerprint, files.read_json(job_path))
    else:
        _check_empty(output)
        created_at = current_time()
        description = {
            "fingerprint": fingerprint,
            "kind": kind,
            "created_at": created_at.isoformat(),
            "inputs": inputs,
        }
        _write_description(output, job_path, description)
    return Job(output, fingerprint, fingerprint[:16], created_at, tasks)


def _check_finished(output: str, fingerprint: str) -> None:
    """Refuses a folder with the finished result of another job."""
    finished = files.read_bytes(files.join(output, SUCCESS_FILE)).decode().strip()
    if finished != fingerprint:
        raise UsageError(
            f"{output} holds the finished result of another job; "
            "name another --output, or remove that folder"
        )


def _resume(
    output: str, fingerprint: str, description: Mapping[str, Any]
) -> datetime.datetime:
    """Clears up after an interrupted run of the same job; returns when it began."""
    if description["fingerprint"] != fingerprint:
        raise UsageError(
            f"{output} holds an unfinished job with other settings or another corpus; "
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
        files.write_json(job_path, description)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error}; name another --output"
        ) from error


def current_time() -> datetime.datetime:
    """This second in UTC, or the one that SOURCE_DATE_EPOCH names.

    See https://reproducible-builds.org/docs/source-date-epoch/.

    Raises:
      UsageError: SOURCE_DATE_EPOCH is no number.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if not epoch.isdecimal():
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r} and must be whole seconds since 1970; "
            "set it right or unset it"
        )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)


def describe_tasks(tasks: Sequence[Task]) -> list[Any]:
    """A list of tasks as JSON, for the inputs of a job."""
    described = []
    for task in tasks:
        lists = {"paths": list(task.paths), "fields": list(task.fields)}
        described.append([*{**task._asdict(), **lists}.values()])
    return described


def part_name(index: int, count: int) -> str:
    """The name of a task's Parquet file, as in `part-00003-of-00016.parquet`."""
    return f"part-{index:05d}-of-{count:05d}.parquet"


def finish_job(job: Job) -> None:
    """Marks the output as complete.

    The description of the result, dataset.json or manifest.json, must be there already.
    """
    success_path = files.join(job.output, SUCCESS_FILE)
    files.write_bytes(success_path, f"{job.fingerprint}\n".encode())
    files.remove(files.join(job.output, TASKS_FOLDER))
