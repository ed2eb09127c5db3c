"""Jobs that are cut into tasks: receipts, resuming, and publishing at the end.

A job owns its output folder. While it runs, `_tasks/job.json` says which job it is and
`_tasks/00003.json` is the receipt of a finished task. At the end the job writes its own
description, then `_SUCCESS`, then removes `_tasks`.
"""

import datetime
import importlib.metadata
import os
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.task import Task
from precis.pipelines.dead_letters import DeadLetter
from precis.pipelines.schema import DEAD_LETTER_SCHEMA, dead_letter_table, write_parquet

TASKS_FOLDER, JOB_FILE, SUCCESS_FILE, DEAD_LETTERS_FOLDER = (
    "_tasks",
    "job.json",
    "_SUCCESS",
    "dead_letters",
)


class Job(NamedTuple):
    """A job and where it writes.

    Attributes:
      output: its folder.
      fingerprint: sha256 of everything its result depends on.
      run_id: the first 16 digits of the fingerprint: the same job over the same data
          has the same name, so that a result that is loaded twice shows.
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
    """Takes possession of an output folder, or finds an interrupted run of the same job
    in it.

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
        if (
            files.read_bytes(files.join(output, SUCCESS_FILE)).decode().strip()
            == fingerprint
        ):
            files.remove(files.join(output, TASKS_FOLDER))
            return None
        raise UsageError(
            f"{output} holds the finished result of another job; name another --output, or remove that folder"
        )
    job_path = files.join(output, TASKS_FOLDER, JOB_FILE)
    if files.exists(job_path):
        found = files.read_json(job_path)
        if found["fingerprint"] != fingerprint:
            raise UsageError(
                f"{output} holds an unfinished job with other settings or another corpus; finish that one, name another --output, "
                "or remove that folder"
            )
        files.remove_leftovers(output)
        return Job(
            output,
            fingerprint,
            fingerprint[:16],
            datetime.datetime.fromisoformat(found["created_at"]),
            tasks,
        )
    if _holds_more_than_tasks(output):
        raise UsageError(
            f"{output} is not empty and no job of precis began it; name an empty or new folder as --output"
        )
    created_at = _now()
    try:
        files.write_json(
            job_path,
            {
                "fingerprint": fingerprint,
                "kind": kind,
                "created_at": created_at.isoformat(),
                "inputs": inputs,
            },
        )
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error}; name another --output"
        ) from error
    return Job(output, fingerprint, fingerprint[:16], created_at, tasks)


def _holds_more_than_tasks(output: str) -> bool:
    """Whether a folder holds anything but `_tasks`, which a job that was killed at its
    very start leaves.
    """
    fs, name = files.filesystem(output)
    return fs.isdir(name) and any(
        posixpath.basename(entry.rstrip("/")) != TASKS_FOLDER
        for entry in fs.ls(name, detail=False)
    )


def _now() -> datetime.datetime:
    """This second, or the one that SOURCE_DATE_EPOCH names (reproducible-builds.org)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if not epoch.isdecimal():
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r} and must be whole seconds since 1970; set it right or unset it"
        )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)


def describe_tasks(tasks: Sequence[Task]) -> list[Any]:
    """What the result depends on in a list of tasks."""
    return [
        [*task._replace(paths=list(task.paths), fields=list(task.fields))]  # type: ignore[arg-type]
        for task in tasks
    ]


def run_task(
    job: Job, index: int, work: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The receipt of a task: the one it left when it was done before, or that of doing
    it now.

    Args:
      job: the job.
      index: the task's position.
      work: publishes the task's files and returns its receipt; `files` and
          `dead_letters` in it describe them.
    """
    path = files.join(job.output, TASKS_FOLDER, f"{index:05d}.json")
    if files.exists(path):
        receipt = files.read_json(path)
        if all(
            _is_there(job.output, file)
            for file in (*receipt["files"], *receipt["dead_letters"])
        ):
            return receipt
    receipt = work()
    files.write_json(path, receipt)
    return receipt


def _is_there(output: str, file: Mapping[str, Any]) -> bool:
    """Whether a file that a receipt describes still lies where it was published, in its
    full length.
    """
    fs, path = files.filesystem(files.join(output, file["file"]))
    return fs.exists(path) and fs.size(path) == file["bytes"]


def publish_dead_letters(
    job: Job, index: int, letters: Sequence[DeadLetter]
) -> list[dict[str, Any]]:
    """Writes a task's dead letters, if it has any; the file's description for the
    receipt.
    """
    if not letters:
        return []
    name = files.join(DEAD_LETTERS_FOLDER, part_name(index, job.tasks))
    rows = [
        {**letter._asdict(), "task": index, "run_id": job.run_id} for letter in letters
    ]
    write_parquet(
        files.join(job.output, name), [dead_letter_table(rows)], DEAD_LETTER_SCHEMA
    )
    return [describe_file(job.output, name, rows=len(rows))]


def part_name(index: int, count: int) -> str:
    """The name of a task's Parquet file, as in `part-00003-of-00016.parquet`."""
    return f"part-{index:05d}-of-{count:05d}.parquet"


def describe_file(output: str, name: str, *, rows: int) -> dict[str, Any]:
    """A file as it stands in a receipt and a manifest: name in the folder, rows, bytes,
    sha256.
    """
    fs, path = files.filesystem(files.join(output, name))
    return {
        "file": name,
        "rows": rows,
        "bytes": int(fs.size(path)),
        "sha256": files.sha256_file(files.join(output, name)),
    }


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of counts of the same names."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))


def finish_job(job: Job) -> None:
    """Marks the output as complete. The description of the result must be there
    already.
    """
    files.write_bytes(
        files.join(job.output, SUCCESS_FILE), f"{job.fingerprint}\n".encode()
    )
    files.remove(files.join(job.output, TASKS_FOLDER))
