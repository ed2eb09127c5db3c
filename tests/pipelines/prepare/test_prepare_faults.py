"""Fault injection: a run of `precis prepare` that is killed, whose disk is full or
whose files are damaged at any step ends as an undisturbed one, or in one line.
"""

import pytest
from support.command_line import contents
from support.disk_faults import WatchedJob

from precis.model.files import ASIDE
from precis.pipelines.prepare.prepare import prepare

# Every run imports TensorFlow and learns a vocabulary.
pytestmark = [pytest.mark.usefixtures("one_time"), pytest.mark.slow]


@pytest.fixture(scope="module")
def job(prepare_flags, tmp_path_factory):
    """The job of `prepared_records`, with fewer tasks."""
    output = tmp_path_factory.mktemp("faults") / "records"
    flags = {**prepare_flags, "task_bytes": 30_000, "output": output}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return WatchedJob(output, lambda: prepare(**flags))


def test_a_kill_or_a_full_disk_at_any_step_changes_nothing(job):
    """And no state can be mistaken for another result."""
    assert len(job.states) > 20
    for state in job.states:
        job.check_readable(state)
    assert not any("_tasks" in name or name.endswith(ASIDE) for name in job.result)
    assert contents(job.output) == job.result
    job.check_kills(1)
    job.check_full_disks(2)


def test_damage_after_any_step_changes_nothing(job):
    def skip(name, state):
        # dataset.json does not list them, so a finished result does not know them.
        return name.startswith("dead_letters/") and "_SUCCESS" in state

    problems = job.damage_files(skip)
    assert not problems, "\n".join(problems)
