"""The jobs with one worker and with one for each core, in turn.

    python benchmarks/workers.py [--documents 20000] [--rounds 3] [--only prepare]
                                 [--record]

prints for each job the median seconds and the spread of both, their ratio, and the peak
of resident memory. The corpus is the built-in one, written as JSON lines; a network is
trained on it first, for a few steps: its summaries are poor and as long as others. The
machine must be otherwise idle. The processes of a command, TensorFlow and Beam are
started in each measurement, as a user starts them.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence

import machine
from command_runs import CommandRun, run_measured

from precis.pipelines.corpus.sample import generator

# A search takes a hundred times as long as a document of the other jobs.
_NETWORK_SHARE = 5


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, makes what the jobs read, and times them."""
    parser = argparse.ArgumentParser(description="One worker and one for each core.")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="prepare,extractive,evaluate,network")
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/figures.json"
    )
    flags = parser.parse_args(argv)
    workers = len(os.sched_getaffinity(0))
    if workers == 1:
        raise SystemExit("this machine has one core; the comparison needs two or more")
    print(f"chip {machine.chip()}, {workers} cores")
    names = flags.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        commands = job_commands(folder, flags.documents, names, workers)
        for name in names:
            figures = compare(name, commands[name], folder, (1, workers), flags.rounds)
            for key, (value, unit) in figures.items() if flags.record else ():
                command = f"python benchmarks/workers.py --documents {flags.documents}"
                command += f" --only {name}"
                machine.record(f"workers.{name}.{key}", value, unit, command)


def job_commands(
    folder: str, documents: int, names: Sequence[str], workers: int
) -> dict[str, list[str]]:
    """The command line of each job, without --output and --workers."""
    whole = _write_corpus(f"{folder}/all.jsonl", documents)
    part = _write_corpus(f"{folder}/part.jsonl", documents // _NETWORK_SHARE)
    # Ten tasks for each core, so that the last one of them is short.
    task_bytes = os.path.getsize(f"{folder}/all.jsonl") // (10 * workers)
    tasks = ["--task_bytes", str(task_bytes)]
    prepare = ["prepare", "--corpus", whole, "--vocabulary_size", "4000", *tasks]
    methods = ["--extractive", "lead,frequency,lexrank"]
    extractive = ["summarize", "--corpus", whole, *methods, *tasks]
    bundle, run = f"{folder}/bundle", f"{folder}/run"
    if "network" in names:
        records = f"{folder}/records"
        run_measured(*prepare, "--output", records)
        train = ["train", "--records", records, "--network", "tiny", "--steps", "30"]
        run_measured(*train, "--validation_steps", "0", "--output", bundle)
    if "evaluate" in names:
        run_measured(*extractive, "--output", run)
    search = ["--bundle", bundle, "--max_summary_tokens", "32"]
    return {
        "prepare": prepare,
        "extractive": extractive,
        "evaluate": ["evaluate", "--input", run],
        "network": ["summarize", "--corpus", part, *search],
    }


def _write_corpus(path: str, documents: int) -> str:
    with open(path, "w", encoding="utf-8") as file:
        for index in range(documents):
            document = generator.document(index)
            record = {
                "id": document.document_id,
                "article": document.article,
                "highlights": document.highlights,
            }
            file.write(json.dumps(record) + "\n")
    return f"jsonl:{path}"


def compare(
    name: str, command: Sequence[str], folder: str, workers: Sequence[int], rounds: int
) -> dict[str, tuple[str, str]]:
    """Times a job with each number of workers in turn, and prints the figures.

    Returns:
      The values and units of some of them.
    """
    runs: dict[int, list[CommandRun]] = {count: [] for count in workers}
    for round_number in range(rounds):
        # The first of a round changes, so that neither always follows the other.
        order = workers if round_number % 2 == 0 else tuple(reversed(workers))
        for count in order:
            output = f"{folder}/output"
            flags = ("--output", output, "--workers", str(count))
            runs[count].append(run_measured(*command, *flags))
            shutil.rmtree(output)
    medians, peak = {}, 0.0
    for count, measured in runs.items():
        seconds = [run.seconds for run in measured]
        medians[count] = statistics.median(seconds)
        peak = statistics.median(run.peak_bytes for run in measured)
        print(
            f"{name} {count} workers {medians[count]:.1f} s "
            f"({min(seconds):.1f} to {max(seconds):.1f}), {peak / 2**20:.0f} MiB, "
            f"{max(run.processes for run in measured)} processes",
            flush=True,
        )
    first, last = workers
    ratio = f"{medians[first] / medians[last]:.2f}"
    print(f"{name} ratio {ratio} x", flush=True)
    return {
        "one": (f"{medians[first]:.1f} s", "seconds"),
        "all": (f"{medians[last]:.1f} s", "seconds"),
        "ratio": (ratio, "times"),
        "memory": (f"{peak / 2**20:,.0f} MiB", "peak of resident memory"),
    }


if __name__ == "__main__":
    main()
