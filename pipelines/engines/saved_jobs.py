"""A job that its workers begin and finish, as `--template_location` saves it.

Dataflow starts such a job without the process that saved it, and a Flex Template's
launcher ends as soon as the job is known. So the pipeline itself begins the job in the
output folder, and in its last step checks the result and publishes it.

Nobody holds the lock of the output while such a job runs.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.run.job import Job, abandon_job
from precis.pipelines.run.result_files import JOB_FILE, TASKS_FOLDER, read_success


class SavedEnding(NamedTuple):
    """How the workers of a saved job finish it.

    Attributes:
      job: begun in the output folder by `open_job`.
      written: an element of the pipeline, when the result is written.
      finish: checks the result, publishes it and calls `finish_job`.
    """

    job: Job
    written: beam.PCollection
    finish: Callable[[], object]


def saves_template(options: PipelineOptions) -> bool:
    """Whether a job is saved as a file that Dataflow starts later."""
    return bool(options.view_as(GoogleCloudOptions).template_location)


@contextlib.contextmanager
def saving(ending: SavedEnding) -> Iterator[None]:
    """Adds the begin and the end of a job to its pipeline, which the block saves; the
    output is then as it was before the job began there.
    """
    job, written, finish = ending
    description = files.read_bytes(_job_path(job))
    begun = (
        written.pipeline
        | "NameJob" >> beam.Create([job])
        | "BeginJob" >> beam.Map(begin_job, description)
    )
    begun = beam.pvalue.AsSingleton(begun)
    _ = written | "FinishRun" >> beam.Map(_finish_once, job, finish, begun)
    try:
        yield
    finally:
        entries = files.list_folder(files.join(job.output, TASKS_FOLDER))
        # Receipts of tasks that were done before lie in folders of their steps.
        if all(entry.endswith(".json") for entry in entries):
            abandon_job(job)


def begin_job(job: Job, description: bytes) -> str:
    """Writes job.json, unless it is there.

    Raises:
      UsageError: the folder holds the finished result, or another job has begun there.
    """
    path = _job_path(job)
    if _is_finished(job):
        raise UsageError(f"{job.output} holds the finished result of this job already")
    if not files.exists(path):
        files.write_bytes(path, description)
    elif files.read_bytes(path) != description:
        raise UsageError(
            f"another job has begun in {job.output} since this one was saved; finish "
            "that one by its command, or save this one again"
        )
    return path


def _finish_once(_: object, job: Job, finish: Callable[[], object], begun: str) -> None:
    """Finishes a job, once, however often the step is tried."""
    if not _is_finished(job):
        finish()


def _is_finished(job: Job) -> bool:
    success = read_success(job.output)
    return success is not None and success.fingerprint == job.fingerprint


def _job_path(job: Job) -> str:
    return files.join(job.output, TASKS_FOLDER, JOB_FILE)
