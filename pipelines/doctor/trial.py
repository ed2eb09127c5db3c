"""Ten documents through the job's own pipeline, as workers would run it.

The pipeline is built by the function that builds it for the job, with a temporary
output. Beam serialises it, and a fresh process reads it and runs it on the local
runner. So what cannot be serialised, imported or loaded on a worker fails here, and the
process says how much memory it took.
"""

import contextlib
import dataclasses
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from precis.model.errors import UsageError
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    RUN_AGAIN,
    WARNING,
    Check,
    Diagnosis,
    problem_of,
    readable_bytes,
)
from precis.pipelines.doctor.fresh_process import run_module
from precis.pipelines.doctor.request import Request
from precis.pipelines.doctor.sample import DOCUMENTS, Sample
from precis.pipelines.doctor.trial_process import RESULT_FILE
from precis.pipelines.run.job import TASKS_FOLDER, Job, current_time

# A large network on one core takes minutes to load and to search ten documents.
_SECONDS = 3600.0
_STEPS_WITH_RECORDS = ("infer", "encode")


class Measured(NamedTuple):
    """What the trial took.

    Attributes:
      peak_bytes: the largest memory of the process that worked.
      document_bytes: about how much the result takes for a document; 0 where it is not
          known.
    """

    peak_bytes: int
    document_bytes: float


def try_documents(request: Request, sample: Sample | None) -> Check[Measured | None]:
    """Runs ten documents, or rows, through the job.

    Args:
      request: the command.
      sample: of the corpus; None for `evaluate`, which reads a run.

    Raises:
      UsageError: the command refuses its flags, its bundles or its input.
    """
    if request.command == "prepare" and sample and not _may_learn(request, sample):
        yield Diagnosis(
            NOTE,
            "trial",
            "no document of the sample is of the split train, so no vocabulary can be "
            "learned from it; the trial is left out",
            "check --split and --split_field, or give a --tokenizer",
        )
        return None
    with tempfile.TemporaryDirectory(prefix="precis-doctor-") as folder:
        output = os.path.join(folder, "output")
        result = _run(folder, _pipelines(request, sample, output))
        if isinstance(result, Diagnosis):
            yield result
            return None
        took = (
            f"in a fresh process, in {result.seconds:.1f} s with "
            f"{readable_bytes(result.peak_bytes)}"
        )
        if request.command == "evaluate":
            yield Diagnosis(OK, "trial", f"rows with a reference scored {took}")
            return Measured(result.peak_bytes, 0.0)
        counts, failures = _read_receipts(output)
        yield _describe(request, counts, failures, took)
        written = max(1, counts["written"])
        return Measured(result.peak_bytes, _result_bytes(output) / written)


def _pipelines(request: Request, sample: Sample | None, output: str) -> Sequence[Any]:
    """The pipelines of the job over the sample, in order."""
    if sample is None:
        return [_evaluation(request, output)]
    if request.command == "prepare":
        return _preparation(request, sample, output)
    return [_summaries(request, sample, output)]


def _run(folder: str, pipelines: Sequence[Any]) -> "_Result | Diagnosis":
    """Serialises pipelines and runs them in a fresh process.

    Returns:
      What it took, or the finding where it failed.
    """
    for number, pipeline in enumerate(pipelines):
        proto = pipeline.to_runner_api()
        Path(folder, f"{number}.pb").write_bytes(proto.SerializeToString())
    ended = run_module(
        "precis.pipelines.doctor.trial_process", folder, seconds=_SECONDS
    )
    path = Path(folder, RESULT_FILE)
    if ended.reason or not path.exists():
        return Diagnosis(
            PROBLEM,
            "trial",
            f"the fresh process that tried the documents failed: {ended.reason}",
            RUN_AGAIN,
        )
    result = json.loads(path.read_bytes())
    if result["error"]:
        finding = problem_of("trial", result["error"])
        return finding._replace(found=f"in a fresh process: {finding.found}")
    return _Result(result["seconds"], result["peak_bytes"])


class _Result(NamedTuple):
    """How long the process of a trial ran, and its largest memory."""

    seconds: float
    peak_bytes: int


def _describe(
    request: Request,
    counts: Counter[str],
    failures: Counter[str],
    took: str,
) -> Diagnosis:
    listed = ", ".join(
        f"{name} {count}" for name, count in counts.items() if count and name != "read"
    )
    found = f"{counts['read']} documents {took}: {listed}"
    if failures:
        reasons = ", ".join(f"{reason} {count}" for reason, count in failures.items())
        level = WARNING if counts["written"] else PROBLEM
        return Diagnosis(
            level,
            "trial",
            f"{found} ({reasons})",
            "docs/RUNS.md says what each reason means; --max_failed_share "
            f"{request.value('max_failed_share', 0.0):g} of the records may fail",
        )
    if not counts["written"]:
        return Diagnosis(
            PROBLEM,
            "trial",
            found,
            "check --highlights_field and --target, as no document gave a record",
        )
    return Diagnosis(OK, "trial", found)


def _trial_job(kind: str, output: str, sample: Sample) -> Job:
    return Job(output, kind, "0" * 64, "0" * 16, current_time(), len(sample.trial))


def _pipeline() -> Any:
    """A pipeline that runs in one process, whatever the job runs on."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    return beam.Pipeline(FnApiRunner(), options=PipelineOptions([]))


def _summaries(request: Request, sample: Sample, output: str) -> Any:
    """The pipeline of `precis summarize`."""
    from precis.pipelines.options.results import ResultOptions
    from precis.pipelines.summarize.run_parts import SummaryRun
    from precis.pipelines.summarize.summarize import add_steps
    from precis.pipelines.tables.part_layout import part_layout

    settings = read_summary_settings(request)
    # One process, so that its memory is that of a worker.
    options = dataclasses.replace(settings.options, output=output, search_processes=1)
    job = _trial_job("summaries", output, sample)
    layout = part_layout(request.options(ResultOptions), sample.tasks)
    run = SummaryRun(
        job=job,
        corpus=request.options(CorpusOptions),
        settings=settings._replace(options=options),
        layout=layout.begun_at(job.created_at),
        provenance={"command": "doctor", "flags": {}},
    )
    pipeline = _pipeline()
    add_steps(pipeline, sample.trial, run)
    return pipeline


def read_summary_settings(request: Request) -> Any:
    """The settings of `precis summarize`, with its own checks.

    Raises:
      UsageError: flags that do not go together, or a folder that is no bundle.
      DataError: a bundle is damaged.
    """
    from precis.pipelines.corpus.options import CLEANING_FLAGS
    from precis.pipelines.summarize.summary_settings import (
        SUMMARY_OPTIONS,
        summary_settings,
    )

    corpus = request.options(CorpusOptions)
    options: list[Any] = [request.options(kind) for kind in SUMMARY_OPTIONS]
    return summary_settings(
        *options,
        cleaning={name: getattr(corpus, name) for name in CLEANING_FLAGS},
    )


def _may_learn(request: Request, sample: Sample) -> bool:
    """Whether `precis prepare` finds words to learn a vocabulary from."""
    if request.value("tokenizer"):
        return True
    return any(article.document.split == "train" for article in sample.articles)


def _preparation(request: Request, sample: Sample, output: str) -> Sequence[Any]:
    """The two pipelines of `precis prepare`."""
    from precis.pipelines.options.prepare import PrepareOptions
    from precis.pipelines.prepare.prepare import build_encode, find_tokenizers
    from precis.pipelines.prepare.vocabulary_pass import build_scan

    options, _ = find_tokenizers(request.options(PrepareOptions))
    options = dataclasses.replace(options, output=output)
    job = _trial_job("records", output, sample)
    corpus = request.options(CorpusOptions)
    scan, encode = _pipeline(), _pipeline()
    build_scan(scan, sample.trial, corpus=corpus, options=options, job=job)
    build_encode(
        encode, sample.trial, corpus=corpus, options=options, job=job, provenance={}
    )
    return scan, encode


def _evaluation(request: Request, output: str) -> Any:
    """The pipeline of `precis evaluate`, over ten rows with a reference."""
    from precis.pipelines.evaluate.evaluate import build, check_baseline
    from precis.pipelines.evaluate.scoring import NEEDED_COLUMNS
    from precis.pipelines.options.evaluate import EvaluateOptions
    from precis.pipelines.tables.row_ranges import (
        has_reference,
        list_ranges,
        parquet_files,
        read_rows,
    )

    options = request.options(EvaluateOptions)
    ranges = list_ranges(parquet_files(options.input), needed=NEEDED_COLUMNS)
    if options.baseline:
        check_baseline(options.baseline, ranges)
    for row_range in ranges:
        rows = read_rows(row_range, ["reference_summary"])
        places = (number for number, row in enumerate(rows) if has_reference(row))
        first = next(places, None)
        if first is not None:
            chosen = row_range._replace(
                number=0,
                first=row_range.first + first,
                rows=min(DOCUMENTS, row_range.rows - first),
            )
            pipeline = _pipeline()
            options = dataclasses.replace(options, output=output)
            build(pipeline, [chosen], options)
            return pipeline
    raise UsageError(
        f"no row of {options.input} has a reference summary; run `precis summarize` on "
        "a corpus with highlights (name their field with --highlights_field)"
    )


def _read_receipts(output: str) -> tuple[Counter[str], Counter[str]]:
    """The records of the trial by what became of them, and the failures by reason."""
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for step in _STEPS_WITH_RECORDS:
        for path in Path(output, TASKS_FOLDER, step).glob("*.json"):
            receipt = json.loads(path.read_bytes())
            for by_outcome in receipt["sources"].values():
                counts.update(by_outcome)
            failures.update(receipt["failures"])
    return counts, failures


def _result_bytes(output: str) -> int:
    """What the rows or records of the trial take, without the parts of their files
    that grow with nothing.
    """
    return sum(_data_bytes(path) for path in _result_files(Path(output)))


def _result_files(output: Path) -> Iterator[Path]:
    yield from output.glob("data/**/*.parquet")
    yield from output.glob("*.tfrecord")


def _data_bytes(path: Path) -> int:
    if path.suffix != ".parquet":
        return path.stat().st_size
    import pyarrow.parquet as pq

    with contextlib.closing(pq.ParquetFile(path)) as parquet:
        metadata = parquet.metadata
        groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
        return sum(
            group.column(n).total_compressed_size
            for group in groups
            for n in range(group.num_columns)
        )
