"""`precis prepare`: corpus -> vocabulary -> TFRecord shards.

There are two passes, because documents are never shuffled. The first reads the corpus:
every task keeps its training pairs, counts words and hashes contents; the sums give the
vocabulary and the duplicates. The second encodes the pairs of each task into shards.

    scan    tasks -> pairs, word counts, hashes    -> _tasks/, dead_letters/
    join    -> vocabulary, duplicates              -> tokenizer/, source_tokenizer/
    encode  tasks -> shards and receipts           -> dataset.json, _SUCCESS

source_tokenizer/ exists only if articles have a separate tokenizer.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import Stage
from precis.model.records.dataset import (
    FORMAT_VERSION,
    DatasetInfo,
    Lengths,
    Shard,
    load_dataset,
    summarise_lengths,
)
from precis.model.records.example import FEATURES, ORACLE_FEATURES
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    holds_tokenizer,
    load_tokenizer,
    load_tokenizers,
)
from precis.model.tokenization.wordpiece import SETTINGS_FILE
from precis.pipelines.corpus.dead_letters import name_first, read_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import (
    count_workers,
    pipeline_options,
    run_pipeline,
)
from precis.pipelines.engines.remote_checks import check_remote
from precis.pipelines.engines.tasks import Gather, RunTasks, Step, TaskReport
from precis.pipelines.prepare.encoding_pass import EncodeWorker
from precis.pipelines.prepare.options import PREPARE, PrepareOptions
from precis.pipelines.prepare.vocabulary_pass import (
    ScanWorker,
    describe_tokenizers,
    join_scanned,
)
from precis.pipelines.run.accounts import add_counts, sum_file_counts, total_counts
from precis.pipelines.run.hub import local_bundle
from precis.pipelines.run.job import (
    Job,
    job_provenance,
    list_corpus,
    result_inputs,
    run_job,
    with_job_commits,
    write_description,
)
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.options import (
    flag_names,
    read_flags,
    recorded_flags,
    result_settings,
)
from precis.pipelines.run.result_files import DEAD_LETTERS_FOLDER

# The flags that name a tokenizer, and where it may be in a folder of records or a
# bundle; the first that exists is used.
_TOKENIZER_FOLDERS = {
    "tokenizer": (TOKENIZER_FOLDER,),
    "source_tokenizer": (SOURCE_TOKENIZER_FOLDER, TOKENIZER_FOLDER),
}


@shown("prepare")
def prepare(*, beam_args: Sequence[str] = (), **flags: Any) -> DatasetInfo:
    """Turns a corpus into a vocabulary and TFRecord shards.

    Args:
      beam_args: the flags for Beam itself.
      **flags: the fields of the dataclasses in `pipelines.prepare.options.PREPARE`.

    Returns:
      The content of dataset.json.

    Raises:
      UsageError: an invalid flag or corpus; nothing was written.
      DataError: too many records failed, no record is left to train on, or a tokenizer
          is damaged.
      JobError: another process took over the output.
    """
    _, run = plan(flags, beam_args)
    return load_dataset(run())


def plan(
    flags: Mapping[str, Any], beam_args: Sequence[str]
) -> tuple[list[Task], Callable[[], str]]:
    """Makes all checks that `prepare` makes before it starts.

    Returns:
      The tasks of the job, and a function that runs it and returns its folder.
    """
    option_groups = with_job_commits(read_flags(PREPARE, flags))
    corpus, options, failures, workers = option_groups
    beam_options = pipeline_options(beam_args, own_flags=flag_names(PREPARE))
    check_remote(beam_options, PREPARE, {**vars(corpus), **vars(options)})
    tasks = list_corpus(corpus, options.output)
    options, fingerprints = find_tokenizers(options)
    recorded = recorded_flags(option_groups)
    # The inputs contain fingerprints instead of folders of tokenizers.
    named = {"tokenizer": "", "source_tokenizer": "", **fingerprints}
    settings = {**result_settings(option_groups), **named}
    inputs = result_inputs({**settings, "format_version": FORMAT_VERSION}, tasks)
    provenance = job_provenance("prepare", recorded, inputs)
    size = sum(task.size_bytes for task in tasks)
    processes = count_workers(
        workers.workers, beam_options, tasks=len(tasks), size=size
    )

    def run(job: Job) -> None:
        pipeline = beam.Pipeline(options=beam_options)
        scan = ScanWorker(corpus, options, job)
        encode = EncodeWorker(corpus, options, job)
        scanned = (
            pipeline
            | "ListTasks" >> beam.Create(tasks, reshuffle=False)
            | "ScanTasks" >> RunTasks(scan, Step(job, "scan"), processes=processes)
        )
        encoded = (
            scanned
            | "AwaitScanned" >> Gather()
            | "JoinScanned" >> beam.Map(lambda _: join_scanned(job, options))
            | "ListJoinedTasks" >> beam.FlatMap(lambda _: tasks)
            | "EncodeTasks"
            >> RunTasks(encode, Step(job, "encode"), processes=processes)
        )
        _ = (
            (scanned, encoded)
            | "JoinReports" >> beam.Flatten()
            | "GatherReports" >> Gather()
            | "PublishDataset"
            >> beam.Map(publish_dataset, options, corpus, job, provenance)
        )
        stages = [
            Stage(name="scan", step="scan", size=size),
            Stage(name="vocabulary", step="join"),
            Stage(name="encode", step="encode", size=size),
        ]
        run_pipeline(pipeline, stages)

    run_all = functools.partial(
        run_job,
        "prepare",
        options.output,
        kind="records",
        options=option_groups,
        inputs=inputs,
        tasks=tasks,
        run=run,
        check=functools.partial(check_written, options.output),
        failures=failures,
    )
    return tasks, run_all


def find_tokenizers(options: PrepareOptions) -> tuple[PrepareOptions, dict[str, str]]:
    """Finds the folders of the tokenizers that the options name.

    If both texts have the same tokenizer, they share it.

    Returns:
      The options with the folders of the tokenizers, and their fingerprints.
    """
    folders: dict[str, Any] = {
        name: _tokenizer_folder(name, local_bundle(path))
        for name in _TOKENIZER_FOLDERS
        if (path := getattr(options, name))
    }
    fingerprints = {
        name: load_tokenizer(folder).fingerprint for name, folder in folders.items()
    }
    if len(set(fingerprints.values())) < len(fingerprints):
        folders["source_tokenizer"] = fingerprints["source_tokenizer"] = ""
    return dataclasses.replace(options, **folders), fingerprints


def _tokenizer_folder(name: str, path: str) -> str:
    below = [files.join(path, folder) for folder in _TOKENIZER_FOLDERS[name]]
    for folder in (path, *below):
        if holds_tokenizer(folder):
            return folder
    raise UsageError(
        f"--{name} {path} holds no tokenizer (no {SETTINGS_FILE}); name the folder of "
        "a tokenizer, records or a bundle; `precis import` makes a bundle from a "
        "checkpoint of another project"
    )


def publish_dataset(
    reports: list[TaskReport],
    options: PrepareOptions,
    corpus: CorpusOptions,
    job: Job,
    provenance: Mapping[str, Any],
) -> None:
    """Writes dataset.json from the reports of both passes, to be checked later."""
    reports = sorted(reports, key=lambda report: report.task)
    sources = sum_file_counts(report.file_counts for report in reports)
    tokens = Counter(
        add_counts(each.figures.get("record_tokens", {}) for each in reports)
    )
    tokenizers = load_tokenizers(options.output)
    target, source = tokenizers.target.fingerprint, tokenizers.source.fingerprint
    info = DatasetInfo(
        features=FEATURES | (ORACLE_FEATURES if options.oracle_sentences else {}),
        splits=_shards_by_split(reports),
        source_lengths=_lengths(reports, "source_lengths", options.max_source_tokens),
        target_lengths=_lengths(reports, "target_lengths", options.max_target_tokens),
        unknown_shares={
            side: round(tokens[f"unknown_{side}"] / max(1, tokens[side]), 6)
            for side in ("source", "target")
        },
        counts=total_counts(sources) | add_counts(each.counts for each in reports),
        failures=add_counts(report.failures for report in reports),
        sources={path: each for path, each in sources.items() if "failed" in each},
        files=describe_tokenizers(options.output),
        dead_letters=[file for report in reports for file in report.dead_letters],
        max_source_tokens=options.max_source_tokens,
        max_target_tokens=options.max_target_tokens,
        seed=corpus.seed,
        task_prefix=options.task_prefix,
        target=options.target,
        tokenizer_fingerprint=target,
        source_tokenizer_fingerprint=source if options.source_tokenizer else None,
        fingerprint=job.fingerprint,
        provenance=provenance,
    )
    write_description(job, info.to_json())


def _lengths(reports: Sequence[TaskReport], name: str, limit: int) -> Lengths:
    """The statistics of lengths in tokens; receipts turned their keys into strings."""
    lengths: Counter[int] = Counter()
    for report in reports:
        counts = report.figures.get(name, {})
        lengths.update({int(length): count for length, count in counts.items()})
    return summarise_lengths(lengths, limit=limit)


def _shards_by_split(reports: Sequence[TaskReport]) -> dict[str, tuple[Shard, ...]]:
    """The shards of each split, in the order of the tasks."""
    splits: dict[str, list[Shard]] = {}
    for report in reports:
        for file in report.files:
            if split := file.get("split"):
                shard = Shard(file["file"], file["rows"], file["bytes"], file["sha256"])
                splits.setdefault(split, []).append(shard)
    return {split: tuple(shards) for split, shards in sorted(splits.items())}


def check_written(output: str, description: Mapping[str, Any]) -> None:
    """Raises DataError if no record was written."""
    counts = description["counts"]
    if not counts["written"]:
        letters = read_letters(files.join(output, DEAD_LETTERS_FOLDER))
        raise DataError(
            f"no records were written: {counts}; check --article_field, "
            f"--highlights_field and --split{name_first(letters)}"
        )
