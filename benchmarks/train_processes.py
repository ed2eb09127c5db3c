"""The speed of training by several processes on one machine: tokens a second of an
optimizer step under MultiWorkerMirroredStrategy, beside the same step in one process.

    python benchmarks/train_processes.py [--processes 1,2,4] [--network small]
        [--documents 32] [--rounds 5] [--threads 2]

prints `name metric value unit` lines, then a table. A step is that of `train.py`, and
its batch is the same for every number of processes: each has an equal part of the
documents. The processes of a cluster share the cores, so a ratio above 1 is not to be
expected on one machine; how much is lost is what their communication costs. All
clusters are set up, then take turns. A rate is the median over the rounds, a ratio the
median of the rounds' ratios.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO

from machine import chip
from train import NETWORKS, ratio
from train_workers import TrainJob, start
from worker_process import answer, tell

Cluster = list[subprocess.Popen[str]]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    for line in report(parse_options(argv)):
        print(line, flush=True)


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The flags; `processes` is a list of numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--processes", default="1,2,4", help="numbers of processes (default: 1,2,4)"
    )
    parser.add_argument("--network", default="small", choices=list(NETWORKS))
    parser.add_argument("--documents", type=int, default=32, help="of a step")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--threads", type=int, default=2, help="cores for all processes of a cluster"
    )
    options = parser.parse_args(argv)
    options.processes = [int(count) for count in options.processes.split(",")]
    for count in options.processes:
        if options.documents % count:
            parser.error(f"--documents must be a multiple of {count}")
    return options


def report(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    yield f"machine chip {chip()}"
    yield f"machine threads {options.threads} of {os.cpu_count()}"
    seconds = measure(options)
    first = options.processes[0]
    rows = []
    tokens = make_job(options, first, 0).tokens
    for count in options.processes:
        name = f"ours.{options.network}.{count}_processes"
        rates = [tokens / each for each in seconds[count]]
        median = statistics.median(rates)
        times = ratio(seconds[first], seconds[count])
        yield f"{name} step {1000 * tokens / median:.0f} ms"
        yield f"{name} tokens_per_s {median:.0f} tokens/s"
        yield f"{name} ratio_to_{first} {times:.3f} times"
        span = f"{min(rates):,.0f} to {max(rates):,.0f}"
        rows.append(f"| {count} | {median:,.0f} | {span} | {times:.2f} |")
    yield "\n| processes | tokens/s | min to max | to the first |\n|---|---|---|---|"
    yield from rows


def make_job(options: argparse.Namespace, processes: int, index: int) -> TrainJob:
    """The job of one process of a cluster."""
    return TrainJob(
        "ours",
        options.network,
        NETWORKS[options.network],
        documents=options.documents,
        threads=max(options.threads // processes, 1),
        processes=processes,
        process=index,
    )


def measure(options: argparse.Namespace) -> dict[int, list[float]]:
    """The seconds of each round, by the number of processes."""
    seconds: dict[int, list[float]] = {count: [] for count in options.processes}
    clusters: dict[int, Cluster] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        try:
            # One after the other, so that no setup overlaps with a warm-up.
            for count in options.processes:
                clusters[count] = start_cluster(options, count, errors)
                wait_for_all(clusters[count], "READY")
            for number in range(options.rounds):
                turn = 1 if number % 2 == 0 else -1
                for count in options.processes[::turn]:
                    time.sleep(0.3)  # until the threads of the last cluster sleep
                    for worker in clusters[count]:
                        tell(worker, "go")
                    seconds[count].append(wait_for_all(clusters[count], "T"))
        except (EOFError, BrokenPipeError) as error:
            errors.seek(0)
            raise SystemExit(
                f"a process failed ({error}); the last words of all were\n"
                f"{errors.read()[-2000:]}"
            ) from error
        finally:
            for cluster in clusters.values():
                for worker in cluster:
                    assert worker.stdin
                    worker.stdin.close()  # a worker ends with its input
                for worker in cluster:
                    worker.wait()
    return seconds


def start_cluster(options: argparse.Namespace, count: int, errors: IO[str]) -> Cluster:
    """Starts the processes of a cluster; one that is alone has no TF_CONFIG."""
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
    cluster = []
    for index in range(count):
        task = {"type": "worker", "index": index}
        config = json.dumps({"cluster": {"worker": addresses}, "task": task})
        variables = {"TF_CONFIG": config if count > 1 else ""}
        job = make_job(options, count, index)
        cluster.append(start(sys.executable, job, errors, variables))
    return cluster


def wait_for_all(cluster: Cluster, word: str) -> float:
    """The largest number that the processes of a cluster answer after a word."""
    return max([answer(worker, word) for worker in cluster])


def free_port() -> int:
    """A port of this machine that no process listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
