"""The jobs on engines that run here, with workers that are processes of their own: the
results of the local runner, also where a worker or a machine is killed.

`make test-engines` runs these tests and brings up what they need.
"""

import contextlib
import json
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from processes import finish, kill, start_precis
from support.command_line import contents, exit_code, results
from support.processes import descendants, is_running, wait_until

pytestmark = pytest.mark.engines

WORKER = "precis-worker"


@pytest.fixture(params=["flink", "prism"])
def engine(request):
    return request.getfixturevalue(request.param)


def digest(run: Path, capsys: pytest.CaptureFixture) -> str:
    capsys.readouterr()
    assert exit_code("digest", str(run)) == 0
    return capsys.readouterr().out


def assert_same_run(run: Path, local: Path, capsys: pytest.CaptureFixture) -> None:
    """Same digest, same files, same counts; nothing twice and nothing left over."""
    assert digest(run, capsys) == digest(local, capsys)
    assert results(run) == results(local)
    assert exit_code("verify", str(run)) == 0
    assert not (run / "_tasks").exists()


def workers(engine) -> list[int]:
    return [pid for parent in engine.pids for pid in descendants(parent, WORKER)]


def start_until_middle(command, output, engine, *flags, receipts=2):
    """A job of which some tasks of the step `summarize` are done and others are not."""
    process = start_precis(command, output, [*engine.flags, *flags])
    folder = output / "_tasks" / "summarize"

    def is_there():
        assert process.poll() is None, process.communicate()[0]
        return len(list(folder.glob("*.json"))) >= receipts

    wait_until(is_there, "receipts", seconds=1200)
    return process, folder


def assert_in_the_middle(process, folder, tasks):
    """The step still had tasks to do a moment after the kill."""
    assert process.poll() is None
    assert 0 < len(list(folder.glob("*.json"))) < tasks


def count_tasks(jobs) -> int:
    """The tasks of the corpus, of which each has a shard of records or fails."""
    manifest = json.loads((jobs.folder / "records" / "dataset.json").read_text())
    shards = manifest["splits"]["train"]["shards"]
    return int(shards[0]["file"].split("-of-")[1].split(".")[0])


def last_job(cluster) -> dict[str, Any]:
    """What Flink says of the job that began last."""
    jobs = cluster.ask("jobs/overview")["jobs"]
    return max(jobs, key=lambda job: job["start-time"])


def failures_of_last_job(cluster) -> list[str]:
    """What Flink says of failures that it recovered from."""
    last = last_job(cluster)
    assert last["state"] == "FINISHED"
    history = cluster.ask(f"jobs/{last['jid']}/exceptions")["exceptionHistory"]
    return [entry["exceptionName"] for entry in history["entries"]]


def test_three_jobs_have_the_results_of_the_local_runner(
    engine, jobs, tmp_path, capsys
):
    parents = set()
    for name in ("prepare", "network", "extractive", "evaluate"):
        process = start_precis(getattr(jobs, name), tmp_path / name, engine.flags)
        parents_of_job = set()
        while process.poll() is None:
            parents_of_job |= {pid for pid in engine.pids if descendants(pid, WORKER)}
            time.sleep(0.2)
        finish(process)
        assert parents_of_job, f"{name} ran in the process that submitted it"
        parents |= parents_of_job
    # Each task manager had workers.
    assert parents == set(engine.pids)
    assert contents(tmp_path / "prepare") == contents(jobs.folder / "records")
    assert_same_run(tmp_path / "network", jobs.folder / "network", capsys)
    extractive = contents(jobs.folder / "extractive")
    assert contents(tmp_path / "extractive") == extractive
    evaluation = contents(jobs.folder / "evaluation")
    assert contents(tmp_path / "evaluate") == evaluation
    wait_until(lambda: not workers(engine), "the workers to end")


def test_flink_goes_on_without_a_killed_worker(flink, cluster, jobs, tmp_path, capsys):
    run = tmp_path / "run"
    flags = ("--parallelism", "2")
    process, folder = start_until_middle(jobs.network, run, flink, *flags)
    victim = workers(flink)[0]
    kill(victim)
    assert_in_the_middle(process, folder, count_tasks(jobs))
    finish(process)
    assert failures_of_last_job(cluster)
    assert_same_run(run, jobs.folder / "network", capsys)
    wait_until(lambda: not workers(flink), "the workers to end")


def test_flink_goes_on_without_a_killed_task_manager(
    flink, cluster, jobs, tmp_path, capsys
):
    """The other task manager has two slots, as many as the job uses."""
    run = tmp_path / "run"
    flags = ("--parallelism", "2")
    process, folder = start_until_middle(jobs.network, run, flink, *flags)
    victim = flink.pids[0]
    orphans = descendants(victim, WORKER)
    assert orphans
    kill(victim)
    assert_in_the_middle(process, folder, count_tasks(jobs))
    finish(process)
    assert failures_of_last_job(cluster)
    assert_same_run(run, jobs.folder / "network", capsys)
    # A worker ends with the connection to its task manager.
    wait_until(lambda: not any(map(is_running, orphans)), "the orphans to end")


def test_flink_prepares_without_its_killed_workers(flink, cluster, jobs, tmp_path):
    records = tmp_path / "records"
    flags = [*flink.flags, "--parallelism", "2"]
    process = start_precis(jobs.prepare, records, flags)
    wait_until(
        lambda: list(records.glob("_tasks/encode/*.json")), "a receipt", seconds=1200
    )
    # All: those of the job that counted words may not have ended yet, or end now.
    for victim in workers(flink):
        with contextlib.suppress(ProcessLookupError):
            kill(victim)
    finish(process)
    assert failures_of_last_job(cluster)
    assert contents(records) == contents(jobs.folder / "records")


def test_ctrl_c_cancels_the_job_on_flink(flink, cluster, jobs, tmp_path):
    run = tmp_path / "run"
    process, _ = start_until_middle(jobs.network, run, flink)
    job = last_job(cluster)
    assert job["state"] == "RUNNING"
    process.send_signal(signal.SIGINT)
    printed = finish(process, exit_code=130)
    (line,) = [line for line in printed.splitlines() if " stopped by " in line]
    assert line.startswith("precis summarize: stopped by SIGINT; ")
    resume = [*jobs.network, "--output", str(run), *flink.flags]
    assert shlex.split(line.split(" continue with: ")[1]) == ["precis", *resume]

    def is_canceled():
        last = last_job(cluster)
        assert last["jid"] == job["jid"]
        return last["state"] in ("CANCELLING", "CANCELED")

    wait_until(is_canceled, "the job to be canceled", seconds=60)
    assert not (run / "_SUCCESS").exists()
    assert not (run / "_tasks" / "lock.json").exists()


def test_a_job_that_waits_on_prism_goes_on_with_the_same_command(
    prism, jobs, tmp_path, capsys
):
    """Prism starts no worker in the place of one that was killed, so its job waits
    until it is ended.
    """
    run = tmp_path / "run"
    process, folder = start_until_middle(jobs.network, run, prism)
    kill(workers(prism)[0])
    wait_until(lambda: not workers(prism), "the worker to end")
    assert_in_the_middle(process, folder, count_tasks(jobs))
    process.kill()
    process.communicate()
    done = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    again = start_precis(jobs.network, run, prism.flags)
    times = set()
    while again.poll() is None:
        times |= receipt_times(folder, done)
        time.sleep(0.1)
    finish(again)
    # The tasks that were done were not done again.
    assert times == set(done.items())
    assert_same_run(run, jobs.folder / "network", capsys)


def receipt_times(folder, names) -> set[tuple[str, int]]:
    """When receipts were written; those that are removed meanwhile are left out."""
    times = set()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            times.add((name, (folder / name).stat().st_mtime_ns))
    return times
