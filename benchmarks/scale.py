"""What a job takes from 10^5 to 10^9 documents, predicted from measured rates, and the
prediction against runs.

    python benchmarks/scale.py [--quick] [--largest 2000000] [--workers 1,2]
        [--price_per_hour 0.05]

First the rates of every step, listing, key lookups and accounts are measured
(`scale_rates.py`). Then prints, of `prepare` and of extractive `summarize`,

    checks       seconds predicted and taken, with 1 and 2 workers
    predictions  time and cost by documents and workers, and what limits the job first

The machine must be otherwise idle. `--quick` measures with fewer documents and checks
at most 20,000; the full run takes about an hour, most of it the largest check.
A check whose seconds are not within 30 % of the prediction makes the exit code 1.

    seconds(N) = start + listing + accounts
               + (documents * steps + tasks * task + 2 * tasks * buckets * lookup) / N

The last line is spread by whole tasks, so few tasks keep few workers busy.
"""

import argparse
import math
import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import scale_rates
from command_runs import check_ratios
from machine import chip
from memory import write_corpus
from scale_rates import CommonRates, JobRates

from precis.pipelines.corpus.packing import MOST_TASKS
from precis.pipelines.summarize.document_keys import MAX_BUCKETS, MOST_BUCKET_BYTES

_TASK_BYTES = 16 << 20
_SIZES = (10**5, 10**6, 10**7, 10**8, 10**9)
_WORKERS = (1, 8, 32, 128, 1000)
# What a process that starts a job may hold, and a description that Dataflow takes.
_LAUNCHER_BYTES = 8 << 30
_GRAPH_BYTES = 20 << 20
# Python objects take about as many times the bytes of what is written of them.
_OBJECTS = 4


class Prediction(NamedTuple):
    """What a job takes.

    Attributes:
      seconds: in all.
      limit: what limits it first.
    """

    seconds: float
    limit: str


class Corpus(NamedTuple):
    """The shape of a corpus.

    Attributes:
      documents: how many.
      document_bytes: of each.
      files: how many they lie in.
    """

    documents: int
    document_bytes: float
    files: int

    @property
    def size(self) -> float:
        """Bytes of all documents."""
        return self.documents * self.document_bytes

    @property
    def tasks(self) -> int:
        """The tasks that it is cut into."""
        most = max(math.ceil(self.size / _TASK_BYTES), 1)
        return min(most, MOST_TASKS)


def predict(
    corpus: Corpus, job: JobRates, common: CommonRates, workers: int
) -> Prediction:
    """Predicts a job, and names the largest part of its time, or a limit."""
    tasks = corpus.tasks
    buckets = min(MAX_BUCKETS, math.ceil(corpus.size / MOST_BUCKET_BYTES))
    # Each of as many groups is written once, and read once by another step.
    lookups = 2 * tasks * buckets * common.lookup_seconds
    spread = math.ceil(tasks / workers) / tasks
    start = job.start_seconds.get(workers, max(job.start_seconds.values()))
    accounts = corpus.files * common.source_seconds
    parts = {
        "start": start,
        "listing": corpus.files * common.file_seconds
        + corpus.size / common.hashed_bytes,
        "manifest": accounts,
        "key lookups": lookups * spread,
        "tasks": tasks * job.task_seconds * spread,
        **{
            name: corpus.documents * seconds * spread
            for name, seconds in job.steps.items()
        },
    }
    limit = max(parts, key=lambda name: parts[name])
    launcher = _OBJECTS * corpus.files * (common.file_bytes + common.source_bytes)
    if launcher > _LAUNCHER_BYTES:
        limit = f"memory of the launcher ({launcher / 2**30:.0f} GiB)"
    elif corpus.files * common.file_bytes + tasks * common.task_bytes > _GRAPH_BYTES:
        limit += ", job description over 20 MiB"
    return Prediction(sum(parts.values()), limit)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, checks and predicts."""
    parser = argparse.ArgumentParser(description="Time and cost by size and workers.")
    parser.add_argument("--quick", action="store_true", help="fewer documents")
    parser.add_argument(
        "--largest", type=int, default=2_000_000, help="documents of the largest check"
    )
    parser.add_argument("--jobs", default="summarize,prepare")
    parser.add_argument("--workers", default="1,2", help="of the checks")
    parser.add_argument(
        "--price_per_hour", type=float, default=0.05, help="of one worker"
    )
    flags = parser.parse_args(argv)
    workers = [int(count) for count in flags.workers.split(",")]
    largest = min(flags.largest, 20_000) if flags.quick else flags.largest
    sizes = [size for size in (10_000, 200_000) if size < largest] + [largest]
    print(f"chip {chip()}")
    common = scale_rates.measure_common(2_000 if flags.quick else 20_000)
    print_rates("common", vars(common))
    ratios: dict[str, float] = {}
    for name in flags.jobs.split(","):
        documents = 4_000 if flags.quick else 40_000
        job = scale_rates.measure_job(name, documents, workers)
        print_rates(name, {**job.steps, "task": job.task_seconds})
        print_rates(f"{name}_start", {str(n): s for n, s in job.start_seconds.items()})
        ratios |= check(name, job, common, sizes, workers)
        print_table(name, job, common, flags.price_per_hour)
    check_ratios(ratios)


def print_rates(name: str, rates: dict[str, float]) -> None:
    """Prints measured rates, a line each."""
    for rate, value in rates.items():
        print(f"rate {name}_{rate} {value:.3g}", flush=True)


def check(
    name: str,
    job: JobRates,
    common: CommonRates,
    sizes: Sequence[int],
    workers: Sequence[int],
) -> dict[str, float]:
    """Runs a job over corpora of several sizes and compares with the prediction.

    Returns:
      The seconds that were predicted, divided by those that were taken.
    """
    ratios = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "all.jsonl")
            write_corpus(path, size)
            corpus = Corpus(size, os.path.getsize(path) / size, 1)
            for count in workers:
                output = os.path.join(folder, f"out{count}")
                predicted = predict(corpus, job, common, count).seconds
                taken = scale_rates.job_seconds(name, path, output, count)
                case = f"{name}_{size}_documents_{count}_workers"
                ratios[case] = predicted / taken
                print(
                    f"check {case} predicted {predicted:.1f} taken {taken:.1f} "
                    f"ratio {ratios[case]:.2f}",
                    flush=True,
                )
    return ratios


def print_table(name: str, job: JobRates, common: CommonRates, price: float) -> None:
    """Prints the predictions: documents in files of 1 GB, and one in each file."""
    print(f"\n{name}: documents, workers, hours, cost, what limits it")
    for in_one_file in (False, True):
        print("one document in each file" if in_one_file else "files of 1 GB")
        for documents in _SIZES:
            size = documents * common.document_bytes
            files = documents if in_one_file else math.ceil(size / 1e9)
            corpus = Corpus(documents, common.document_bytes, files)
            for workers in _WORKERS:
                predicted = predict(corpus, job, common, workers)
                hours = predicted.seconds / 3600
                print(
                    f"{documents:>14,}{workers:>7,}{hours:>12,.2f}"
                    f"{hours * workers * price:>12,.2f}  {predicted.limit}"
                )
    print(flush=True)


if __name__ == "__main__":
    main()
