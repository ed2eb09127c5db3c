"""Clusters of training processes on this machine, each as the command."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from support.processes import free_port
from support.small_training import start_command

# What the processes take to start where the machine has other work.
START_SECONDS = 600
# TensorFlow notices after about ten seconds that a process is gone, later under load.
END_SECONDS = 300


class Ended(NamedTuple):
    """How a process ended.

    Attributes:
      code: its exit code.
      printed: its standard output.
      complaint: its last line of stderr.
    """

    code: int
    printed: str
    complaint: str


@contextlib.contextmanager
def cluster(commands: Sequence[list[str]]) -> Iterator[list[subprocess.Popen]]:
    """Starts a process for each command line; kills those that still run at the end."""
    addresses = [f"127.0.0.1:{free_port()}" for _ in commands]
    workers = [
        start_command(
            flags,
            TF_CONFIG=json.dumps(
                {
                    "cluster": {"worker": addresses},
                    "task": {"type": "worker", "index": index},
                }
            ),
        )
        for index, flags in enumerate(commands)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def wait_for_end(
    workers: Sequence[subprocess.Popen], seconds: float = START_SECONDS
) -> list[Ended]:
    """Waits until all processes have ended by themselves."""
    ended = []
    for worker in workers:
        printed, said = worker.communicate(timeout=seconds)
        ended.append(Ended(worker.returncode, printed, said.strip().split("\n")[-1]))
    return ended


def run_cluster(commands: Sequence[list[str]]) -> list[Ended]:
    """Runs a process for each command line to its end."""
    with cluster(commands) as workers:
        return wait_for_end(workers)


def signal_one(
    commands: Sequence[list[str]], output: Path, *, worker: int, kind: signal.Signals
) -> list[Ended]:
    """Starts a cluster, sends a signal to one process after a new checkpoint in
    `output`, and waits for all to end.
    """
    before = newest(output)
    with cluster(commands) as workers:
        until = time.monotonic() + START_SECONDS
        while newest(output) == before:
            for process in workers:
                assert process.poll() is None, process.communicate()[1][-3000:]
            assert time.monotonic() < until, "no checkpoint came"
            time.sleep(0.01)
        workers[worker].send_signal(kind)
        return wait_for_end(workers, END_SECONDS)


def newest(output: Path) -> str:
    """The newest checkpoint that is complete, or nothing."""
    found = output.glob("training/checkpoints/*/state.json")
    return max((path.parent.name for path in found), default="")
