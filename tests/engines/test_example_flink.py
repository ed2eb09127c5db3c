"""Test of examples/flink/run.sh on a cluster of this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import contents

pytestmark = pytest.mark.engines

EXAMPLE = Path(__file__).parents[2] / "examples" / "flink" / "run.sh"


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [EXAMPLE, *arguments],
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=1200,
    )


def test_the_run_is_that_of_the_local_runner(flink, cluster, jobs, tmp_path):
    corpus, *flags = jobs.extractive[2:]
    *_, server = flink.flags
    flags += ["--job_endpoint", server]
    output = tmp_path / "run"
    variables = {"FLINK": cluster.master, "SOURCE_DATE_EPOCH": "1700000000"}
    earlier = cluster.ask("jobs/overview")["jobs"]  # Of other tests of this session.
    done = run(corpus, str(output), *flags, **variables)
    assert done.returncode == 0, done.stderr
    assert contents(output) == contents(jobs.folder / "extractive")
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"run {output} is complete and unchanged (")
    known = {job["jid"] for job in earlier}
    jobs_of_run = cluster.ask("jobs/overview")["jobs"]
    (state,) = (job["state"] for job in jobs_of_run if job["jid"] not in known)
    assert state == "FINISHED"
