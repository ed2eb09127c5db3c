"""`precis evaluate`: Parquet -> ROUGE of every system against the references, in one
table and in every row.

    ranges of rows -> scores/part-*.parquet and arrays -> rouge.json, rouge.md

An evaluation starts anew each time, so its tasks leave no receipts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam

from precis.model import files
from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.progress.stages import Stage
from precis.pipelines.engines.beam_runner import pipeline_options, run_pipeline
from precis.pipelines.engines.local_processes import count_workers
from precis.pipelines.engines.remote_checks import stage_remote
from precis.pipelines.engines.tasks import RunTasks, TaskReport
from precis.pipelines.evaluate.evaluation_figures import ORACLE
from precis.pipelines.evaluate.evaluation_table import (
    as_markdown,
    as_text,
    combine,
)
from precis.pipelines.evaluate.measures import REFERENCE
from precis.pipelines.evaluate.score_task import ScoreWorker
from precis.pipelines.evaluate.scoring import (
    NEEDED_COLUMNS,
    SCORES_FOLDER,
    RangeScores,
    system_texts,
)
from precis.pipelines.evaluate.shown_documents import shown_documents
from precis.pipelines.flags.flags import option_names, read_flags, recorded_flags
from precis.pipelines.options.evaluate import (
    EVALUATE,
    EvaluateOptions,
    default_output,
)
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.output_place import check_apart, check_folder_place
from precis.pipelines.tables.row_ranges import (
    RowRange,
    has_reference,
    is_pattern,
    list_ranges,
    parquet_files,
    read_rows,
)

RESULT_FILES = ("rouge.json", "rouge.md")
# Starting worker processes takes about as long as scoring this many rows of ten
# systems.
_ROWS_FOR_PROCESSES = 16_384


def evaluate(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Scores the summaries of a run, writes rouge.json, rouge.md and scores/, and
    prints the table.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of `EvaluateOptions` and `WorkerOptions`.

    Returns:
      The content of rouge.json.

    Raises:
      UsageError: a flag, an input that is no finished run, one without a single
          reference, or a baseline that it does not have.
    """
    options, workers = read_flags(EVALUATE, flags)
    beam_options = pipeline_options(beam_args, own_flags=option_names(EVALUATE))
    stage_remote(beam_options, "evaluate", flags)
    folder = output_folder(options)
    check_folder_place(folder, flag="--output")
    if not is_pattern(options.input):
        check_apart(folder, flag="--output", result=options.input)
    ranges = list_ranges(parquet_files(options.input), needed=NEEDED_COLUMNS)
    if options.baseline:
        check_baseline(options.baseline, ranges)
    row_count = sum(row_range.rows for row_range in ranges)
    processes = count_workers(
        workers.workers,
        beam_options,
        tasks=len(ranges),
        size=row_count,
        least=_ROWS_FOR_PROCESSES,
    )
    pipeline = beam.Pipeline(options=beam_options)
    build(pipeline, ranges, options, processes=processes)
    # A result of other rows must not pass for the result of these, nor stay beside it.
    for name in (*RESULT_FILES, SCORES_FOLDER):
        files.remove(files.join(folder, name))
    with shown("evaluate"):
        run_pipeline(pipeline, [Stage(name="evaluate", total=row_count, unit="rows")])
    result: dict[str, Any] = files.read_json(files.join(folder, "rouge.json"))
    _print(result, options)
    return result


def _print(result: Mapping[str, Any], options: EvaluateOptions) -> None:
    for document in shown_documents(result["shown"], options.input):
        print(document)
    print(as_text(result))
    names = ", ".join((*RESULT_FILES, f"{SCORES_FOLDER}/"))
    print(f"\nwrote {output_folder(options)}: {names}")


def headline(result: Mapping[str, Any]) -> str:
    """The best system and the baseline in one line.

    Args:
      result: the content of rouge.json.
    """
    means = {row["system"]: row["rouge1"]["mean"] for row in result["systems"]}
    methods = {row["system"]: row["method"] for row in result["systems"]}
    # The oracle reads the reference.
    candidates = [name for name in means if methods[name] not in (ORACLE, REFERENCE)]
    best = max(candidates or means, key=lambda name: means[name])
    line = (
        f"{result['rows_scored']:,} documents with a reference: the best system is "
        f"{best}, ROUGE-1 {100 * means[best]:.1f}"
    )
    baseline = result["baseline"]
    if baseline and baseline != best:
        line += f" ({baseline}: {100 * means[baseline]:.1f})"
    return line


def build(
    pipeline: beam.Pipeline,
    ranges: Sequence[RowRange],
    options: EvaluateOptions,
    *,
    processes: int = 1,
) -> None:
    """Adds the evaluation to a pipeline: ranges of rows -> scores/ and arrays ->
    rouge.json and rouge.md.
    """
    worker = ScoreWorker(
        output_folder(options),
        tasks=len(ranges),
        split_sentences=options.split_sentences,
        show=options.show,
        show_seed=options.show_seed,
    )
    _ = (
        pipeline
        | "ListRanges" >> beam.Create(ranges)
        | "ScoreRows" >> RunTasks(worker, processes=processes)
        | "GatherScores" >> beam.combiners.ToList()
        | "PublishResult" >> beam.Map(publish, options)
    )


def output_folder(options: EvaluateOptions) -> str:
    """Where the result goes."""
    if not options.output and is_pattern(options.input):
        raise UsageError("--output is needed where --input is a pattern of files")
    return options.output or default_output(options.input)


def check_baseline(baseline: str, ranges: Iterable[RowRange]) -> None:
    """Looks for a row that has a summary of the baseline, usually the first.

    Raises:
      UsageError: no row has one.
    """
    systems: set[str] = set()
    for row_range in ranges:
        for row in read_rows(row_range, [*NEEDED_COLUMNS, "summary"]):
            if has_reference(row):
                systems.update(system_texts(row))
        if baseline_system(baseline) in systems - {REFERENCE}:
            return
    known = sorted(systems - {REFERENCE})
    way_out = suggestion(baseline, known) or f"there are {', '.join(known) or 'none'}"
    raise UsageError(f"--baseline: there is no system {baseline!r}; {way_out}")


def baseline_system(baseline: str) -> str:
    """The system behind a name of the table: `lead` for `lead-3`."""
    return re.sub(r"^(lead|random)-\d+$", r"\1", baseline)


def publish(
    reports: Sequence[TaskReport[RangeScores]], options: EvaluateOptions
) -> None:
    """Writes rouge.json and rouge.md.

    Raises:
      UsageError: no row has a reference.
    """
    scores = [report.figures for report in reports]
    if not any(part.scored for part in scores):
        raise UsageError(
            f"no row of {options.input} has a reference summary; run "
            "`precis summarize` on a corpus with highlights (name their field with "
            "--highlights_field)"
        )
    result = combine(
        scores,
        resamples=options.resamples,
        confidence=options.confidence,
        baseline=baseline_system(options.baseline),
        split_sentences=options.split_sentences,
        show=options.show,
    )
    folder = output_folder(options)
    files.write_bytes(files.join(folder, "rouge.md"), as_markdown(result).encode())
    provenance = {"command": "evaluate", "flags": recorded_flags([options])}
    files.write_json(
        files.join(folder, "rouge.json"), {**result, "provenance": provenance}
    )
