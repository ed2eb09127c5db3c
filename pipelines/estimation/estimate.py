"""`--estimate`: what a job would take, from runs of the job over samples of its corpus.

    run of 64 documents         the first: imports, and compiling for the first time
    runs of 512, 2048, ...      until the last took some seconds longer than the one
                                before; the difference is the time of its documents

    seconds(N workers) = start + listing + fixed + documents * seconds of one / N

Each run is the job itself: its steps, its workers and its search processes. It writes
to a temporary folder.
"""

import contextlib
import dataclasses
import importlib
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

from precis.model import files
from precis.model.errors import UsageError
from precis.model.inference.process_limits import has_accelerator, usable_cores
from precis.model.progress.stages import unseen
from precis.pipelines.beam.beam_runner import pipeline_options, works_in_this_process
from precis.pipelines.beam.local_processes import (
    LEAST_BYTES,
    LEAST_BYTES_OF_PREPARE,
    count_workers,
)
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sampling import CorpusSample, sample_corpus
from precis.pipelines.corpus.task import Task

_FIRST_RECORDS = 64
# A window of `precis summarize`, so that a network searches in processes as in the job.
_WINDOW_RECORDS = 512
_SECOND_RUN_SECONDS = 15.0
_GROWTH = 4
_LEAST_GROWTH = 1.5
_BUDGET_SECONDS = 60.0
_MODULES = {
    "prepare": "precis.pipelines.preparation.prepare",
    "summarize": "precis.pipelines.summarizing.summarize",
}
# Two runs that differ by as much tell the time of a document despite their noise.
_TELLING_SECONDS = 6.0


class JobFigures(NamedTuple):
    """What a run of a job says of itself.

    Attributes:
      counts: records by what became of them, and `read`.
      source_tokens: that a network or an encoder read.
      written_tokens: that were written.
      output_bytes: of the files of the result.
      search_seconds: in which a network searched; 0 without one.
    """

    counts: Mapping[str, int]
    source_tokens: float
    written_tokens: float
    output_bytes: int
    search_seconds: float = 0.0


class SampledRun(NamedTuple):
    """A run over a sample, and the seconds from its call to its end."""

    seconds: float
    figures: JobFigures

    @property
    def records(self) -> int:
        """The records that it took: those of another split are read and left."""
        counts = self.figures.counts
        return counts["read"] - counts.get("other_split", 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a job would take.

    Attributes:
      corpus: its listing and sample.
      run: the largest run over a sample.
      seconds_per_record: of all workers of this machine together.
      fixed_seconds: of a run in a process that has done another.
      first_seconds: what the first run of a process takes longer.
      start_seconds: from the start of a process until it can begin.
      workers: of the runs.
      took_seconds: of the estimate.
    """

    corpus: CorpusSample
    run: SampledRun
    seconds_per_record: float
    fixed_seconds: float
    first_seconds: float
    start_seconds: float
    workers: int
    took_seconds: float

    @property
    def serial_seconds(self) -> float:
        """What more workers do not make shorter."""
        listing = self.corpus.listing_seconds
        return self.start_seconds + self.first_seconds + self.fixed_seconds + listing

    def seconds(self, workers: int) -> float:
        """The time of the job with so many workers like those of this machine.

        No task is divided, so the largest one is the least that the work takes. The
        runs have shown how well tasks are spread on as many workers as here, so more
        of them are never slower.
        """
        work = self.corpus.records * self.seconds_per_record * self.workers
        work += self.corpus.skipping_seconds
        sizes = [task.size_bytes for task in self.corpus.tasks]
        largest = max(sizes) / max(1, sum(sizes))
        at_least = min(largest, 1 / self.workers)
        return self.serial_seconds + work * max(1 / workers, at_least)

    def scaled(self, figure: float) -> float:
        """A figure of the run, for all records of the corpus."""
        return figure * self.corpus.records / max(1, self.run.records)


def estimate_job(
    command: str, values: Mapping[str, Any], beam_args: Sequence[str]
) -> Estimate:
    """Estimates a command.

    Args:
      command: `prepare` or `summarize`.
      values: its flags, without those of `EstimateOptions`.
      beam_args: flags for Beam itself.

    Raises:
      PrecisError: as the command itself.
    """
    if values.get("retry_failures"):
        raise UsageError(
            "--estimate samples the whole corpus and --retry_failures reads a part of "
            "it; leave one of them out"
        )
    beam_options = pipeline_options(beam_args)
    if not works_in_this_process(beam_options):
        raise UsageError(
            "--estimate runs samples on this machine; leave --runner and the flags of "
            "the engine out, and read the table for its workers"
        )
    began = time.monotonic()
    corpus_flags = {field.name for field in dataclasses.fields(CorpusOptions)}
    options = CorpusOptions(
        **{name: values[name] for name in values if name in corpus_flags}
    )
    start_seconds = _start_seconds(command)
    # What the process of the job has imported when it begins.
    importlib.import_module(_MODULES[command])
    corpus = sample_corpus(options)
    workers = worker_count(command, values, beam_options, corpus.tasks)
    if not values.get("bundle") and workers > 1:
        # A job as small as a sample would take one.
        values = {**values, "workers": workers}
    runs: list[SampledRun] = []
    until = began + _BUDGET_SECONDS
    # A sample of few documents is estimated by others of its corpus.
    pieces_records = corpus.piece_records * len(corpus.pieces)
    records = max(corpus.records, min(_WINDOW_RECORDS, pieces_records))
    while size := next_size(
        runs, records, workers, seconds_left=until - time.monotonic()
    ):
        tasks = corpus.sampled_tasks(size, workers)
        runs.append(_run(command, tasks, values, beam_args))
    per_record, fixed, first = fit(runs)
    return Estimate(
        corpus=corpus,
        run=runs[-1],
        seconds_per_record=per_record,
        fixed_seconds=fixed,
        first_seconds=first,
        start_seconds=start_seconds,
        workers=workers,
        took_seconds=time.monotonic() - began,
    )


def worker_count(
    command: str,
    values: Mapping[str, Any],
    beam_options: PipelineOptions,
    tasks: Sequence[Task],
) -> int:
    """The processes that share the work of a command: its workers, or its searches.

    Args:
      command: `prepare` or `summarize`.
      values: its flags.
      beam_options: of the command.
      tasks: of its corpus.

    Raises:
      UsageError: --workers is of no use here.
    """
    asked = values.get("workers", 0)
    size = sum(task.size_bytes for task in tasks)
    least = LEAST_BYTES_OF_PREPARE if command == "prepare" else LEAST_BYTES
    workers = count_workers(
        asked, beam_options, tasks=len(tasks), size=size, least=least
    )
    if not values.get("bundle"):
        return workers
    by_default = 1 if has_accelerator() else usable_cores()
    return int(values.get("search_processes", 0)) or asked or by_default


def next_size(
    runs: Sequence[SampledRun], records: float, workers: int, *, seconds_left: float
) -> float:
    """The records of the next run over a sample; 0 where the runs are enough.

    Args:
      runs: so far.
      records: of the corpus; a run has at most half of them.
      workers: of a run.
      seconds_left: for further runs. There are three of them in any case, as two that
          are not the first tell the time of a document.
    """
    if not runs:
        return min(_FIRST_RECORDS, records / 8)
    last = runs[-1]
    if len(runs) == 1:
        rate = last.records / (last.figures.search_seconds or last.seconds)
        return min(
            _WINDOW_RECORDS * workers, records / 4, rate * workers * _SECOND_RUN_SECONDS
        )
    growth = min(_GROWTH, max(_LEAST_GROWTH, seconds_left / last.seconds))
    size = min(records / 2, growth * last.records)
    if len(runs) == 2:
        return size
    is_told = last.seconds - runs[-2].seconds >= _TELLING_SECONDS
    has_time = _GROWTH * last.seconds < seconds_left
    is_larger = size > _LEAST_GROWTH * last.records
    return size if has_time and is_larger and not is_told else 0.0


def fit(runs: Sequence[SampledRun]) -> tuple[float, float, float]:
    """Seconds of a record, of a later run without records, and of a first run beside.

    Args:
      runs: the first of a process, and later ones with more and more records.
    """
    first, before, last = runs[0], *runs[-2:]
    records = max(1, last.records - before.records)
    per_record = max(0.0, last.seconds - before.seconds) / records
    fixed = max(0.0, last.seconds - per_record * last.records)
    beside = max(0.0, first.seconds - per_record * first.records - fixed)
    return per_record, fixed, beside


def _start_seconds(command: str) -> float:
    """From the start of a process until the job could begin."""
    started = time.monotonic()
    program = f"import apache_beam, {_MODULES[command]}"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return time.monotonic() - started


def _run(
    command: str,
    tasks: list[Task],
    values: Mapping[str, Any],
    beam_args: Sequence[str],
) -> SampledRun:
    """Runs the job over sampled tasks, without its messages."""
    run = _run_prepare if command == "prepare" else _run_summarize
    with tempfile.TemporaryDirectory(prefix="precis-estimate-") as folder:
        # A few records may all fail; the counts say how many do.
        changed = {"output": files.join(folder, "out"), "max_failed_share": 1.0}
        started = time.monotonic()
        with unseen(), contextlib.redirect_stderr(io.StringIO()):
            figures = run(tasks, {**values, **changed}, beam_args)
        return SampledRun(time.monotonic() - started, figures)


def _run_prepare(
    tasks: list[Task], flags: Mapping[str, Any], beam_args: Sequence[str]
) -> JobFigures:
    from precis.pipelines.preparation.prepare import prepare_listed

    flags = {**flags, "max_empty_share": 1.0}
    info = prepare_listed(lambda _: tasks, flags, beam_args=beam_args)
    written = info.counts["written"]
    shards = [shard for shards in info.splits.values() for shard in shards]
    return JobFigures(
        counts=info.counts,
        source_tokens=info.source_lengths.mean * written,
        written_tokens=info.target_lengths.mean * written,
        output_bytes=sum(shard.bytes for shard in shards),
    )


def _run_summarize(
    tasks: list[Task], flags: Mapping[str, Any], beam_args: Sequence[str]
) -> JobFigures:
    from precis.pipelines.summarizing.summarize import summarize_listed

    flags = {**flags, "max_empty_share": 1.0, "table": ""}
    manifest = summarize_listed(lambda _: tasks, flags, beam_args=beam_args)
    search = manifest["search"] or {}
    return JobFigures(
        counts=manifest["counts"],
        source_tokens=search.get("source_tokens", 0),
        written_tokens=search.get("summary_tokens", 0),
        output_bytes=sum(file["bytes"] for file in manifest["files"]),
        search_seconds=search.get("wall_seconds", 0.0),
    )
