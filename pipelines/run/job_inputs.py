"""What the result of a job depends on, and how it is recorded."""

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model import files
from precis.pipelines.corpus.task import Task


def job_provenance(
    command: str, flags: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """How a result was made, for its description.

    `precis COMMAND --config` reads the flags from there, and `open_job` what a refused
    job has different.

    Args:
      command: such as `summarize`.
      flags: every flag with its value.
      inputs: as in `open_job`; those that are no flags are kept beside them.
    """
    inputs = {"precis_version": importlib.metadata.version("precis"), **inputs}
    others = {
        name: value
        for name, value in inputs.items()
        if name not in flags or flags[name] != value
    }
    return {"command": command, "flags": dict(flags), "inputs": others}


def hash_tasks(tasks: Sequence[Task]) -> str:
    """A sha256 of what each task reads, for the inputs of a job.

    Files count by content and by their paths below the folder that holds them all: a
    file that is touched and a corpus that is moved keep the hash.
    """
    paths = [path for task in tasks for path in task.paths]
    root = os.path.commonprefix(paths).rpartition("/")[0]
    content = [
        (
            # The version of a task stands for its pieces, and the fields behind `only`
            # follow from the others.
            *task._replace(files=(), only=_described(task, root))[:10],
            [path[len(root) :] for path in task.paths],
        )
        for task in tasks
    ]
    return files.sha256_json(content)


def _described(task: Task, root: str) -> Any:
    """The records that a task reads, as JSON; None for all."""
    if task.only is None:
        return None
    return {
        path.removeprefix(root): dict(sorted(positions.items()))
        for path, positions in sorted(task.only.items())
    }
