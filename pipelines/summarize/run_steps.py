"""The four steps of `precis summarize` as parts of a Beam pipeline.

    scan -> join -> infer -> publish -> manifest

docs/ARCHITECTURE.md says what each step reads and writes. A step begins when all tasks
of the one before it are done.
"""

from collections.abc import Sequence

import apache_beam as beam

from precis.model.inference.process_limits import (
    has_accelerator,
)
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.tasks import RunTasks, Step
from precis.pipelines.options.results import (
    SUFFIX,
    ResultOptions,
)
from precis.pipelines.run.job import (
    Job,
)
from precis.pipelines.summarize.document_keys import (
    KeyWorker,
    count_buckets,
    key_tasks,
    scan_step,
)
from precis.pipelines.summarize.earlier_runs import EarlierRuns
from precis.pipelines.summarize.join_keys import BucketTask, JoinFigures, JoinWorker
from precis.pipelines.summarize.part_plans import STEP as PUBLISH
from precis.pipelines.summarize.part_plans import plan_parts
from precis.pipelines.summarize.publish_parts import (
    PartFigures,
    PartSettings,
    PartWorker,
)
from precis.pipelines.summarize.repeated_ids import check_ids
from precis.pipelines.summarize.run_manifest import (
    RunDescription,
    run_footer,
    write_manifest,
)
from precis.pipelines.summarize.search_processes import is_much_to_search
from precis.pipelines.summarize.summarize_task import SummarizeWorker, SummaryFigures
from precis.pipelines.summarize.summary_settings import (
    SummarySettings,
)
from precis.pipelines.summarize.task_rows import InferSettings


def build_run(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    job: Job,
    description: RunDescription,
    result: ResultOptions,
    earlier: EarlierRuns,
    *,
    processes: int = 1,
) -> beam.PCollection:
    """Adds the four steps, and the manifest, to a pipeline.

    Args:
      pipeline: where they are added.
      tasks: of the corpus.
      job: the job.
      description: what is written of it, and how.
      result: the options of the result.
      earlier: the runs whose rows are used again.
      processes: how many processes of this machine do the tasks.

    Returns:
      An element when the manifest is written.
    """
    corpus, settings, _, layout = description
    buckets = count_buckets(tasks, earlier.parts)
    infer = InferSettings(
        layout=layout,
        buckets=buckets,
        earlier=earlier.parts,
        suffix_ids=result.on_duplicate_id == SUFFIX,
        quality=settings.quality,
        starts_early=not earlier.parts and is_much_to_search(tasks),
    )
    joined = _find_repeats(
        pipeline, tasks, job, description, earlier, processes=processes
    )
    inferred = (
        joined
        | "ListTasks" >> beam.FlatMap(check_ids, tasks, corpus, result.on_duplicate_id)
        | "SpreadTasks" >> beam.Reshuffle()
        | "Summarize"
        >> RunTasks(
            SummarizeWorker(corpus, settings, job, infer),
            Step(job, "infer", SummaryFigures.from_json),
            processes=_infer_processes(settings, processes),
        )
        | "GatherSummaries" >> beam.combiners.ToList()
    )
    published = _publish_parts(inferred, job, description, processes=processes)
    return published | "WriteManifest" >> beam.Map(
        write_manifest,
        beam.pvalue.AsSingleton(joined),
        beam.pvalue.AsSingleton(inferred),
        job,
        description,
    )


def _publish_parts(
    inferred: beam.PCollection,
    job: Job,
    description: RunDescription,
    *,
    processes: int,
) -> beam.PCollection:
    """The step `publish`: the list of the reports of its tasks."""
    layout = description.layout
    parts = PartSettings(
        layout=layout,
        fallback=description.settings.fallback,
        footer=run_footer(job, description),
    )
    return (
        inferred
        | "ListParts"
        >> beam.FlatMap(
            plan_parts,
            job,
            target_bytes=layout.target_bytes,
            partition_by=layout.partitioning.names,
        )
        | "SpreadParts" >> beam.Reshuffle()
        | "PublishParts"
        >> RunTasks(
            PartWorker(job, parts),
            Step(job, PUBLISH, PartFigures.from_json),
            processes=processes,
        )
        | "GatherParts" >> beam.combiners.ToList()
    )


def _find_repeats(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    job: Job,
    description: RunDescription,
    earlier: EarlierRuns,
    *,
    processes: int,
) -> beam.PCollection:
    """Adds the steps scan and join; gives the reports of the join as one list."""
    corpus, settings, *_ = description
    buckets = count_buckets(tasks, earlier.parts)
    keys = KeyWorker(
        corpus, job, buckets=buckets, uses_references=settings.uses_references
    )
    join = JoinWorker(job, buckets=buckets, tasks=len(tasks), parts=len(earlier.parts))
    scanned = (
        pipeline
        | "ListKeyTasks" >> beam.Create(key_tasks(tasks, earlier.parts))
        | "ScanKeys" >> RunTasks(keys, scan_step(job), processes=processes)
        | "GatherKeys" >> beam.combiners.ToList()
    )
    return (
        scanned
        | "ListBuckets"
        >> beam.FlatMap(lambda _: [BucketTask(number) for number in range(buckets)])
        | "SpreadBuckets" >> beam.Reshuffle()
        | "JoinKeys"
        >> RunTasks(join, Step(job, "join", JoinFigures.from_json), processes=processes)
        | "GatherJoined" >> beam.combiners.ToList()
    )


def _infer_processes(settings: SummarySettings, processes: int) -> int:
    """How many processes read and summarize.

    Where a network writes, the search processes have the cores, and one process reads
    for them. An accelerator serves one process.
    """
    options = settings.options
    uses_accelerator = options.extractive_bundle and has_accelerator()
    return 1 if options.bundle or uses_accelerator else processes
