"""A run that is begun and finished by its workers.

Dataflow starts a job that was saved with --template_location without the process that
saved it, and a Flex Template's launcher ends as soon as the job is known. So the
pipeline itself begins the job in the output folder, and in its last step checks the
run, publishes the manifest and writes `_SUCCESS`.

Nobody holds the lock of the output while such a job runs.
"""

import apache_beam as beam

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.job import JOB_FILE, TASKS_FOLDER, Job, finish_job
from precis.pipelines.run.result_files import read_success
from precis.pipelines.summarize.run_manifest import check_run, publish_manifest


def finish_on_workers(
    written: beam.PCollection, job: Job, corpus: CorpusOptions, failures: FailureOptions
) -> None:
    """Adds the begin and the end of a run to its pipeline.

    Args:
      written: an element when the manifest of the run is written.
      job: begun in the output folder by `open_job`.
      corpus: what the run reads.
      failures: when the run fails.
    """
    description = files.read_bytes(_job_path(job))
    begun = (
        written.pipeline
        | "NameJob" >> beam.Create([job])
        | "BeginJob" >> beam.Map(begin_job, description)
    )
    _ = written | "FinishRun" >> beam.Map(
        finish_run, job, corpus, failures, beam.pvalue.AsSingleton(begun)
    )


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


def finish_run(
    _: None, job: Job, corpus: CorpusOptions, failures: FailureOptions, begun: str
) -> None:
    """Checks a run and publishes it; once, however often the step is tried.

    Raises:
      DataError: too many records failed.
    """
    if _is_finished(job):
        return
    check_run(job, corpus, failures)
    publish_manifest(job)
    finish_job(job)


def _is_finished(job: Job) -> bool:
    success = read_success(job.output)
    return success is not None and success.fingerprint == job.fingerprint


def _job_path(job: Job) -> str:
    return files.join(job.output, TASKS_FOLDER, JOB_FILE)
