"""The rates that `scale.py` predicts from, each measured on its own.

A rate of a step is the time of its worker on this machine, one task at a time in one
process, over a corpus of generated documents. What a task costs beside its documents is
the difference of two runs over the same documents, in few tasks and in many.
"""

import dataclasses
import json
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import accounting
import numpy as np
from command_runs import run_command
from memory import write_corpus

from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.prepare import prepare
from precis.pipelines.prepare.encoding_pass import EncodeWorker
from precis.pipelines.prepare.vocabulary_buckets import MergeWorker
from precis.pipelines.prepare.vocabulary_pass import ScanWorker
from precis.pipelines.run.accounts import check_sources, sum_sources
from precis.pipelines.summarize import summarize
from precis.pipelines.summarize.document_keys import ID_KEY
from precis.pipelines.summarize.keyed_arrays import read_group, write_groups

JOBS = {
    "summarize": ("--extractive", "lead,frequency"),
    "prepare": ("--vocabulary_size", "2000"),
}
_STEPS: dict[str, dict[str, Any]] = {
    "summarize": accounting.STEPS,
    "prepare": {"scan": ScanWorker, "merge": MergeWorker, "encode": EncodeWorker},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobRates:
    """What a job takes.

    Attributes:
      steps: seconds of a document by step, of one worker.
      task_seconds: of a task beside its documents.
      start_seconds: of a run with a handful of documents, by the number of workers.
    """

    steps: dict[str, float]
    task_seconds: float
    start_seconds: dict[int, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommonRates:
    """What listing and accounts take.

    Attributes:
      file_seconds: to list and hash one small file.
      hashed_bytes: in a second, of a large local file.
      file_bytes: of a listed file among the tasks as a runner is given them.
      task_bytes: of a task there.
      lookup_seconds: of one group of a file of keys.
      source_seconds: to sum, check and write the counts of a source file.
      source_bytes: of a source file in the manifest.
      document_bytes: of a document of the corpus.
    """

    file_seconds: float
    hashed_bytes: float
    file_bytes: float
    task_bytes: float
    lookup_seconds: float
    source_seconds: float
    source_bytes: float
    document_bytes: float


def job_seconds(job: str, corpus: str, output: str, workers: int) -> float:
    """The seconds of a command from its start to its end."""
    command = [job, "--corpus", f"jsonl:{corpus}", "--output", output, *JOBS[job]]
    _, seconds = run_command(*command, "--workers", str(workers))
    return seconds


def measure_job(job: str, documents: int, workers: Sequence[int]) -> JobRates:
    """Measures the rates of a job."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, few = os.path.join(folder, "all.jsonl"), os.path.join(folder, "few")
        write_corpus(corpus, documents)
        write_corpus(few, 20)
        starts = {
            number: job_seconds(job, few, os.path.join(folder, f"few{number}"), number)
            for number in workers
        }
        size = os.path.getsize(corpus)
        seconds, whole = {}, {}
        for tasks in (4, 64):
            output = os.path.join(folder, f"out{tasks}")
            started = time.monotonic()
            steps = run_timed(job, corpus, output, size // tasks + 1)
            whole[tasks], seconds[tasks] = time.monotonic() - started, steps
        return JobRates(
            steps={name: value / documents for name, value in seconds[4].items()},
            task_seconds=max(0.0, whole[64] - whole[4]) / 60,
            start_seconds=starts,
        )


def run_timed(job: str, corpus: str, output: str, task_bytes: int) -> dict[str, float]:
    """Runs a job in this process; returns the seconds of the workers of each step."""
    flags: dict[str, Any] = dict(
        zip((flag[2:] for flag in JOBS[job][::2]), JOBS[job][1::2], strict=True)
    )
    if "vocabulary_size" in flags:
        flags["vocabulary_size"] = int(flags["vocabulary_size"])
    run: Callable[..., Any] = {
        "summarize": summarize.summarize,
        "prepare": prepare.prepare,
    }[job]
    with accounting.timed_steps(_STEPS[job], time.monotonic) as seconds:
        run(
            corpus=f"jsonl:{corpus}",
            output=output,
            task_bytes=task_bytes,
            workers=1,
            **flags,
        )
    return seconds


def measure_common(small_files: int) -> CommonRates:
    """Measures listing, key lookups and accounts."""
    with tempfile.TemporaryDirectory() as folder:
        text = "The mayor said on Tuesday that the bridge will be closed. " * 6
        for number in range(small_files):
            place = os.path.join(folder, "files", f"{number // 1000:05d}")
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, f"{number:07d}.txt"), "w") as file:
                file.write(f"Report {number}. {text}")
        started = time.monotonic()
        listed = list_tasks(CorpusOptions(corpus=f"text:{folder}/files/*/*.txt"))
        file_seconds = (time.monotonic() - started) / small_files
        corpus = os.path.join(folder, "all.jsonl")
        write_corpus(corpus, 10_000)
        document_bytes = os.path.getsize(corpus) / 10_000
        large = os.path.join(folder, "large.jsonl")
        with open(corpus, "rb") as source, open(large, "wb") as target:
            content = source.read()
            for _ in range(40):
                target.write(content)
        started = time.monotonic()
        ranges = list_tasks(
            CorpusOptions(corpus=f"jsonl:{large}", task_bytes=len(content) // 50)
        )
        hashed = os.path.getsize(large) / (time.monotonic() - started)
        source_seconds, source_bytes = _measure_sources(folder, small_files)
        return CommonRates(
            file_seconds=file_seconds,
            hashed_bytes=hashed,
            file_bytes=len(pickle.dumps(listed)) / small_files,
            task_bytes=len(pickle.dumps(ranges)) / len(ranges),
            lookup_seconds=_measure_lookup(folder),
            source_seconds=source_seconds,
            source_bytes=source_bytes,
            document_bytes=document_bytes,
        )


def _measure_lookup(folder: str) -> float:
    """Seconds to read one of 2,000 groups of a file of keys."""
    path = os.path.join(folder, "keys")
    write_groups(path, {number: np.zeros(10, ID_KEY) for number in range(2000)})
    started = time.monotonic()
    for number in range(1000):
        read_group(path, number, ID_KEY)
    return (time.monotonic() - started) / 1000


def _measure_sources(folder: str, sources: int) -> tuple[float, float]:
    """Seconds and bytes of the counts of a source file."""
    counts = [
        {f"{folder}/files/{number:012d}.txt": {"read": 1, "written": 1}}
        for number in range(sources)
    ]
    path = os.path.join(folder, "manifest.json")
    started = time.monotonic()
    summed = sum_sources(counts)
    check_sources(summed, what="the run")
    with open(path, "w") as file:
        json.dump(summed, file, indent=2)
    return (time.monotonic() - started) / sources, os.path.getsize(path) / sources
