"""Tests of a job that its workers begin and finish, as `--template_location` saves it.
Here it runs at once.
"""

import pytest
from support.command_line import write_jsonl

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.engines.saved_jobs import begin_job
from precis.pipelines.run.job import abandon_job, is_unused, open_job
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.verification.digest import digest
from precis.pipelines.verification.verify import verify

SAVED = ["--template_location=here"]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    # That a template is for Dataflow alone is checked there.
    monkeypatch.setattr(
        "precis.pipelines.summarize.summarize.stage_remote", lambda *_: None
    )
    lines = [
        {"id": str(number), "article": f"Rain fell on day {number}. It was cold."}
        for number in range(6)
    ]
    return write_jsonl(tmp_path / "news.jsonl", [*lines, "not JSON"])


@pytest.mark.slow
def test_the_workers_finish_a_run(corpus, tmp_path):
    flags = {"corpus": corpus, "max_failed_share": 0.5}
    summarize(output=tmp_path / "waited", **flags)
    assert summarize(output=tmp_path / "saved", beam_args=SAVED, **flags) == {}
    assert digest(run=tmp_path / "saved") == digest(run=tmp_path / "waited")
    assert verify(folder=tmp_path / "saved").findings == []
    assert not (tmp_path / "saved" / "_tasks").exists()
    # The same command finds the result and has nothing to do.
    assert summarize(output=tmp_path / "saved", **flags)["counts"]["written"] == 6


@pytest.mark.slow
def test_the_same_command_continues_a_saved_job_that_failed(corpus, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(DataError, match="1 of 7 records failed"):
        summarize(output=run, corpus=corpus, max_failed_share=0.1, beam_args=SAVED)
    assert not (run / "_SUCCESS").exists()
    receipt = next((run / "_tasks" / "summarize").iterdir())
    summarize(output=run, corpus=corpus, max_failed_share=0.5)
    assert not receipt.exists()
    assert verify(folder=run).findings == []


@pytest.mark.slow
def test_a_job_that_is_saved_leaves_its_output_as_it_was(corpus, tmp_path, monkeypatch):
    """Of a job that was begun before, what is done is kept."""
    run = tmp_path / "run"

    def save(pipeline):
        raise OSError(5, "the store is gone")

    with monkeypatch.context() as patch:
        patch.setattr("apache_beam.Pipeline.run", save)
        with pytest.raises(JobError, match="the store is gone"):
            summarize(output=run, corpus=corpus, beam_args=SAVED)
        assert is_unused(str(run))
    with pytest.raises(DataError, match="1 of 7 records failed"):
        summarize(output=run, corpus=corpus)
    receipt = next((run / "_tasks" / "summarize").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr("apache_beam.Pipeline.run", save)
        with pytest.raises(JobError, match="the store is gone"):
            summarize(output=run, corpus=corpus, beam_args=SAVED)
    assert receipt.exists() and not is_unused(str(run))


@pytest.fixture
def begun(tmp_path):
    """A job, and its job.json; the folder is as it was before the job."""
    folder = str(tmp_path / "run")
    assert is_unused(folder)
    job = open_job(folder, kind="summaries", inputs={"split": "test"}, tasks=1)
    assert job is not None and not is_unused(folder)
    description = (tmp_path / "run" / "_tasks" / "job.json").read_bytes()
    abandon_job(job)
    assert is_unused(folder)
    return job, description


def test_a_job_is_begun_once_however_often_it_is_tried(begun):
    job, description = begun
    assert begin_job(job, description) == begin_job(job, description)
    assert not is_unused(job.output)
    again = open_job(job.output, kind="summaries", inputs={"split": "test"}, tasks=1)
    assert again == job


def test_a_job_that_another_came_before_is_refused(begun):
    job, description = begun
    open_job(job.output, kind="summaries", inputs={"split": "train"}, tasks=1)
    message = "^another job has begun in .*run since this one was saved; finish that"
    with pytest.raises(UsageError, match=message):
        begin_job(job, description)


def test_a_job_whose_result_is_finished_is_refused(begun, tmp_path):
    job, description = begun
    (tmp_path / "run" / "_SUCCESS").write_text(f"{job.fingerprint}\n{'0' * 64}\n")
    message = "run holds the finished result of this job already$"
    with pytest.raises(UsageError, match=message):
        begin_job(job, description)
