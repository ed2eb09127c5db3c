"""The tasks of a job in the processes of precis and in Beam's own, in turn.

    python benchmarks/beam_processes.py [--documents 200000] [--rounds 3]
        [--tasks 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]
    python benchmarks/beam_processes.py --kill

prints the seconds and the peak of resident memory of each run, and Beam's seconds by
ours, the median and of each round. The job is `precis summarize` on the built-in corpus
with two processes. Beam's are `direct_running_mode=multi_processing`, where a task is
an element of a plain ParDo behind a Reshuffle, as it is on other engines. The corpus
has a file and so a task for each number of --tasks, whose part of the documents it is.

With --kill, a process of each job is killed after its third task, and the exit code,
the tasks that are done and the last line of the job are printed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import machine
import psutil
from command_runs import PRECIS, run_measured

from precis.pipelines.corpus.sample import generator

# What runs a command of precis, and how many processes it is asked for.
_PROGRAMS = {
    "precis": (PRECIS, "2"),
    "beam": ((sys.executable, os.path.abspath(__file__), "beam"), "1"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and measures."""
    parser = argparse.ArgumentParser(description="Processes of precis and of Beam.")
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", default=",".join("1" * 20))
    parser.add_argument("--kill", action="store_true")
    flags = parser.parse_args(argv)
    print(f"chip {machine.chip()}")
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(folder, flags.documents, list(map(int, flags.tasks.split(","))))
        corpus = ("--corpus", f"jsonl:{folder}/*.jsonl", "--task_bytes", str(1 << 40))
        job = ("summarize", *corpus, "--extractive", "lead,frequency")
        if flags.kill:
            for name in _PROGRAMS:
                kill_one(name, job, f"{folder}/{name}")
        else:
            compare(job, folder, flags.rounds)


def write_corpus(folder: str, documents: int, parts: Sequence[int]) -> None:
    """Writes documents of the built-in corpus as a file of lines for each part."""
    index = 0
    for number, part in enumerate(parts):
        with open(f"{folder}/{number:02d}.jsonl", "w", encoding="utf-8") as file:
            for _ in range(documents * part // sum(parts)):
                document = generator.document(index)
                line = {"id": document.document_id, "article": document.article}
                file.write(json.dumps(line) + "\n")
                index += 1


def compare(job: Sequence[str], folder: str, rounds: int) -> None:
    """Times both in turn; the first of a round changes."""
    ratios = []
    for number in range(rounds):
        seconds = {}
        for name in sorted(_PROGRAMS, reverse=bool(number % 2)):
            program, workers = _PROGRAMS[name]
            words = ("--workers", workers, "--output", f"{folder}/{name}-{number}")
            run = run_measured(*job, *words, program=program)
            seconds[name] = run.seconds
            peak = run.peak_bytes / 2**20
            print(f"{name} {run.seconds:.1f} s, {peak:.0f} MiB", flush=True)
        ratios.append(seconds["beam"] / seconds["precis"])
    of_rounds = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"beam_to_precis {statistics.median(ratios):.2f} x ({of_rounds})")


def kill_one(name: str, job: Sequence[str], output: str) -> None:
    """Kills the process below a job that has used the most processor time."""
    program, workers = _PROGRAMS[name]
    command = [*program, *job, "--workers", workers, "--output", output]
    receipts, done = f"{output}/_tasks/summarize", 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        killed = False
        while running.poll() is None:
            time.sleep(0.1)
            if os.path.isdir(receipts):
                done = max(done, len(os.listdir(receipts)))
            if done >= 3 and not killed:
                below = psutil.Process(running.pid).children(recursive=True)
                max(below, key=lambda each: each.cpu_times().user).kill()
                killed = True
        assert running.stderr
        last = running.stderr.read().splitlines()[-1]
    print(f"{name} killed: exit code {running.returncode}, {done} tasks, {last}")


def run_with_beam(words: list[str]) -> int:
    """Runs a command of precis whose tasks are done by two of Beam's processes, with
    the threads and the memory of those of precis.
    """
    from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

    from precis.model.own_process import prepare_own_process
    from precis.pipelines.command_line import cli
    from precis.pipelines.engines import beam_runner
    from precis.pipelines.summarize import summarize

    def pipeline_options(*_: object, **__: object) -> PipelineOptions:
        options = beam_runner.pipeline_options([])
        direct = options.view_as(DirectOptions)
        direct.direct_num_workers = 2
        direct.direct_running_mode = "multi_processing"
        return options

    class PreparedWorker(summarize.SummarizeWorker):
        def load(self) -> None:
            prepare_own_process()
            super().load()

    os.environ["OMP_NUM_THREADS"] = "1"
    summarize.pipeline_options = pipeline_options
    summarize.SummarizeWorker = PreparedWorker
    sys.argv = ["precis", *words]
    return cli.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["beam"]:
        sys.exit(run_with_beam(sys.argv[2:]))
    main()
