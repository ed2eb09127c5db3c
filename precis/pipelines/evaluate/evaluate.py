"""`precis evaluate`: Parquet -> ROUGE of every system against the references, in a
table and for every row.

    ranges of rows -> scores/part-*.parquet, arrays -> rouge.json, rouge.md

An evaluation always starts anew, so its tasks have no receipts.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam

from precis.model import files
from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.progress.stages import Stage, stage
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import Position
from precis.pipelines.engines.beam_runner import (
    count_workers,
    pipeline_options,
    run_pipeline,
)
from precis.pipelines.engines.remote_checks import check_remote
from precis.pipelines.engines.tasks import Gather, RunTasks, TaskReport, TaskWorker
from precis.pipelines.evaluate.evaluation_table import (
    Scores,
    as_markdown,
    as_text,
    baseline_system,
    combine,
)
from precis.pipelines.evaluate.group_references import JOINED_FILE, join_references
from precis.pipelines.evaluate.options import EVALUATE, EvaluateOptions, default_output
from precis.pipelines.evaluate.scoring import (
    LATER_COLUMNS,
    NEEDED_COLUMNS,
    REFERENCE,
    SCORES_FOLDER,
    score_rows,
    system_texts,
)
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.run.options import flag_names, read_flags, recorded_flags
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import GROUPS_FOLDER, check_apart
from precis.pipelines.tables.finished_run import parquet_files
from precis.pipelines.tables.output_files import (
    RowRange,
    has_reference,
    is_pattern,
    list_ranges,
    read_rows,
)

RESULT_FILES = ("rouge.json", "rouge.md")
# Starting worker processes takes about as long as scoring this many rows of ten
# systems.
_ROWS_FOR_PROCESSES = 16_384


@shown("evaluate")
def evaluate(*, beam_args: Sequence[str] = (), **flags: Any) -> Scores:
    """Scores the summaries of a run, writes rouge.json, rouge.md and scores/, and
    prints the table.

    Args:
      beam_args: the flags for Beam itself.
      **flags: the fields of `EvaluateOptions` and `WorkerOptions`.

    Returns:
      The content of rouge.json.

    Raises:
      UsageError: an invalid flag, an input that is not a finished run or has no
          reference, or an unknown baseline.
    """
    options, workers = read_flags(EVALUATE, flags)
    beam_options = pipeline_options(beam_args, own_flags=flag_names(EVALUATE))
    check_remote(beam_options, EVALUATE, vars(options))
    folder = output_folder(options)
    if not is_pattern(options.input):
        check_apart(folder, flag="--output", result=options.input)
    source, missing = options.group_references, None
    paths = parquet_files(options.input, of_groups=bool(source))
    with contextlib.ExitStack() as at_end:
        if source:
            with stage("join", is_brief=True):
                missing = join_references(source, paths, folder)
            paths = [files.join(folder, JOINED_FILE)]
            at_end.callback(files.remove, paths[0])
        ranges = list_ranges(paths, needed=() if source else NEEDED_COLUMNS)
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
        worker = ScoreWorker(options, folder, len(ranges))
        _ = (
            pipeline
            | "ListRanges" >> beam.Create(ranges, reshuffle=False)
            | "ScoreRows" >> RunTasks(worker, processes=processes)
            | "GatherScores" >> Gather()
            | "PublishResult" >> beam.Map(publish, options, folder, missing)
        )
        # Results of other rows must not be mistaken for the new ones, even if the
        # evaluation fails.
        for name in (*RESULT_FILES, SCORES_FOLDER):
            files.remove(files.join(folder, name))
        stages = [Stage(name="evaluate", total=row_count, unit="rows")]
        run_pipeline(pipeline, stages)
    result: Scores = files.read_json(files.join(folder, "rouge.json"))
    print(as_text(result))
    print(f"\nwrote {folder}: {', '.join((*RESULT_FILES, f'{SCORES_FOLDER}/'))}")
    return result


@dataclasses.dataclass
class ScoreWorker(TaskWorker):
    """Scores a range of rows -> a file of `scores/`; its figures are `RangeScores`.

    Attributes:
      options: the options of the evaluation.
      folder: the output folder of the evaluation.
      tasks: the number of tasks.
    """

    options: EvaluateOptions
    folder: str
    tasks: int

    def progress_size(self, task: RowRange) -> int:
        """The size of the task in rows."""
        return task.rows

    def run(
        self, task: RowRange, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Scores the rows with a reference; writes no file if there are none."""
        del dead_letters
        of_groups = bool(self.options.group_references)
        rows = read_rows(task, None if of_groups else NEEDED_COLUMNS + LATER_COLUMNS)
        is_split = self.options.split_sentences
        table, scores = score_rows(rows, number=task.number, split_sentences=is_split)
        scored = scores.counts["scored"]
        if scored:
            name = f"part-{task.number:05d}-of-{self.tasks:05d}.parquet"
            path = files.join(self.folder, SCORES_FOLDER, name)
            write_parquet(path, [table], table.schema)
        progress.advance_to(Position(records=len(rows), share=1.0))
        outcomes = {"read": len(rows), "written": scored, "skipped": len(rows) - scored}
        return TaskReport({task.path: outcomes}, [], scores)


def output_folder(options: EvaluateOptions) -> str:
    """The output folder of the evaluation."""
    if not options.output and is_pattern(options.input):
        raise UsageError("--output is required if --input is a pattern of files")
    folder = default_output(options.input)
    if options.group_references:
        folder = files.join(folder, GROUPS_FOLDER)
    return options.output or folder


def check_baseline(baseline: str, ranges: Iterable[RowRange]) -> None:
    """Checks that a row has a summary of the baseline; usually the first has.

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
    way_out = suggestion(baseline, known) or f"the run has {', '.join(known) or 'none'}"
    raise UsageError(f"--baseline: unknown system {baseline!r}; {way_out}")


def publish(
    reports: Iterable[TaskReport],
    options: EvaluateOptions,
    folder: str,
    missing: Mapping[str, Any] | None = None,
) -> None:
    """Writes rouge.json and rouge.md.

    Args:
      reports: the reports of all tasks.
      options: the options of the evaluation.
      folder: the output folder.
      missing: the result of `join_references`; None if documents are scored.

    Raises:
      UsageError: no row has a reference.
    """
    scores = [report.figures for report in reports]
    if not any(each.counts["scored"] for each in scores):
        if missing:
            given, other, *_ = (each["first"] for each in missing.values())
            raise UsageError(
                f"no group of {options.input} has a reference: its first groups are "
                f"{given}, but --group_references {options.group_references} has "
                f"{other}; use the same group_id in both"
            )
        raise UsageError(
            f"no row of {options.input} has a reference; run `precis summarize` on a "
            "corpus with highlights, and name their field with --highlights_field"
        )
    result = combine(scores, options) | ({"groups": missing} if missing else {})
    files.write_bytes(files.join(folder, "rouge.md"), as_markdown(result).encode())
    provenance = {"command": "evaluate", "flags": recorded_flags([options])}
    content = {**result, "provenance": provenance}
    files.write_json(files.join(folder, "rouge.json"), content)
