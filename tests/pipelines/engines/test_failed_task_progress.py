"""Tests that a task that its file fails leaves no documents in the display."""

from types import SimpleNamespace

from precis.model.progress.counters import Counts, counting_folder, total
from precis.pipelines.corpus.dead_letters import DeadLetter
from precis.pipelines.corpus.task import FileFailure, Position
from precis.pipelines.engines.tasks import Step, TaskWorker, _RunTask

SIZE = 1_000


class FailingWorker(TaskWorker):
    """Has done a part of its task when the file fails."""

    def progress_size(self, task):
        return SIZE

    def run(self, task, progress, dead_letters):
        progress.advance_to(Position(records=400, share=0.5))
        progress.add_tokens(70)
        progress.add_flagged(3)
        dead_letters.write(DeadLetter("read", "invalid_json", "x", source_file="a.gz"))
        raise FileFailure("a.gz", "file_unreadable", "it broke off")


def counts_of(folder: str) -> Counts:
    return total(folder)._replace(started=0.0, ended=0.0)


def test_what_a_failed_task_has_counted_is_given_back(tmp_path):
    job = SimpleNamespace(output=str(tmp_path), run_id="r" * 16, fingerprint="f")
    step = Step(job, "infer")
    with counting_folder() as folder:
        (report,) = _RunTask(FailingWorker(), step).process(SimpleNamespace(number=0))
        counted = counts_of(folder)
    assert report.failures == {"read/file_unreadable": 1}
    # The letter about the file is the one that is published.
    assert counted == Counts(documents=0, size=SIZE, dead_letters=1)
