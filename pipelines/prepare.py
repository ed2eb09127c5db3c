"""`precis prepare`: corpus -> vocabulary -> TFRecord shards.

Two passes over the corpus, as documents are never shuffled. The first reads every task
for word counts and content hashes; their sums say what the vocabulary is and which
documents are duplicates. The second encodes each task into its own shards.

    scan    tasks -> word counts -> vocabulary      -> tokenizer/, and source_tokenizer/ if there is one for the articles alone
                  -> content hashes -> duplicates   -> _tasks/scan.json
    encode  tasks -> shards and receipts            -> dataset.json, _SUCCESS
"""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.dataset import (
    DATASET_FILE,
    FORMAT_VERSION,
    DatasetInfo,
    Lengths,
    Shard,
    load_dataset,
    shard_name,
    summarise_lengths,
)
from precis.model.records.example import (
    FEATURES,
    ORACLE_FEATURES,
    Example,
    LabelledSentences,
    serialise,
)
from precis.model.records.tfrecord import frame
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    holds_tokenizer,
    load_tokenizer,
    load_tokenizers,
)
from precis.model.tokenization.target import encode_targets
from precis.model.tokenization.wordpiece import SETTINGS_FILE
from precis.pipelines import progress, tasks
from precis.pipelines.beam_runner import pipeline_options, run_pipeline
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import Task, Unreadable
from precis.pipelines.dead_letters import (
    DeadLetter,
    check_failures,
    count_reasons,
    unreadable_letter,
)
from precis.pipelines.flags import option_names, read_flags
from precis.pipelines.options import PREPARE, FailureOptions, PrepareOptions
from precis.pipelines.tasks import Job
from precis.pipelines.vocabulary_pass import (
    Pair,
    Skipped,
    build_scan,
    read_pair,
    scan_path,
)

MAX_SPLITS = (
    64  # each is an open file; more than a few are a --split_field that names no splits
)
_WINDOW_DOCUMENTS = 256  # encoded in one call
# The flags that name a tokenizer, and the folders of records and bundles that it may
# lie in, the first that is there.
_TOKENIZER_FLAGS: Mapping[str, tuple[str, ...]] = {
    "tokenizer": (TOKENIZER_FOLDER,),
    "source_tokenizer": (SOURCE_TOKENIZER_FOLDER, TOKENIZER_FOLDER),
}


def prepare(*, beam_args: Sequence[str] = (), **flags: Any) -> DatasetInfo:
    """Turns a corpus into a vocabulary and TFRecord shards.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of `CorpusOptions`, `PrepareOptions` and `FailureOptions`.

    Returns:
      The content of dataset.json.

    Raises:
      UsageError: a flag or a corpus that cannot be; nothing was written.
      DataError: too many records failed, there is nothing to train on, or a tokenizer
          is damaged.
    """
    corpus, options, failures = read_flags(PREPARE, flags)
    beam_options = pipeline_options(beam_args, own_flags=option_names(PREPARE))
    found = list_tasks(corpus)
    options, fingerprints = _find_tokenizers(options)
    inputs = _inputs(corpus, options, found, fingerprints)
    job = tasks.open_job(
        options.output, kind="records", inputs=inputs, tasks=len(found)
    )
    if job is not None:
        import_tensorflow()
        size = sum(task.size_bytes for task in found)
        if not files.exists(scan_path(job)):
            pipeline = beam.Pipeline(options=beam_options)
            build_scan(pipeline, found, corpus=corpus, options=options, job=job)
            run_pipeline(pipeline, label="scan", size=size)
        pipeline = beam.Pipeline(options=beam_options)
        build_encode(pipeline, found, corpus=corpus, options=options, job=job)
        run_pipeline(pipeline, label="encode", size=size)
        _check(job, failures)
        tasks.finish_job(job)
    return load_dataset(options.output)


def _find_tokenizers(options: PrepareOptions) -> tuple[PrepareOptions, dict[str, str]]:
    """The options with the folders that the tokenizers they name lie in, and the
    fingerprints; one that is given twice is one for both.
    """
    folders = {
        name: _tokenizer_folder(name, path)
        for name in _TOKENIZER_FLAGS
        if (path := getattr(options, name))
    }
    fingerprints = {
        name: load_tokenizer(folder).fingerprint for name, folder in folders.items()
    }
    if len(set(fingerprints.values())) < len(fingerprints):
        folders["source_tokenizer"] = fingerprints["source_tokenizer"] = ""
    target, source = (
        folders.get(name, "") for name in ("tokenizer", "source_tokenizer")
    )
    return dataclasses.replace(
        options, tokenizer=target, source_tokenizer=source
    ), fingerprints


def _tokenizer_folder(name: str, path: str) -> str:
    for folder in (
        path,
        *(files.join(path, below) for below in _TOKENIZER_FLAGS[name]),
    ):
        if holds_tokenizer(folder):
            return folder
    raise UsageError(
        f"--{name} {path} is no tokenizer folder (no {SETTINGS_FILE}) and holds none; name one, records, or a bundle, "
        "as which `precis import` takes in a checkpoint of another project"
    )


def _inputs(
    corpus: CorpusOptions,
    options: PrepareOptions,
    found: Sequence[Task],
    fingerprints: Mapping[str, str],
) -> dict[str, Any]:
    """Everything the records depend on."""
    settings = {**dataclasses.asdict(options), **fingerprints}
    del settings["output"]
    return {
        "format": FORMAT_VERSION,
        "corpus": dataclasses.asdict(corpus),
        "tasks": tasks.describe_tasks(found),
        "options": settings,
    }


def build_encode(
    pipeline: beam.Pipeline,
    found: Sequence[Task],
    *,
    corpus: CorpusOptions,
    options: PrepareOptions,
    job: Job,
) -> None:
    """Adds the second pass: shards, receipts and dataset.json."""
    _ = (
        pipeline
        | "ListTasks" >> beam.Create(found)
        | "EncodeTasks" >> beam.ParDo(EncodeTask(corpus, options, job))
        | "GatherReceipts" >> beam.combiners.ToList()
        | "PublishDataset" >> beam.Map(publish_dataset, options, corpus, job)
    )


class EncodeTask(beam.DoFn):
    """Turns one task into its shards and yields its receipt."""

    def __init__(
        self, corpus: CorpusOptions, options: PrepareOptions, job: Job
    ) -> None:
        self._corpus, self._options, self._job = corpus, options, job
        self._shared = Shared()

    def setup(self) -> None:
        """Loads the tokenizers once per process."""
        self._tokenizers = self._shared.acquire(
            lambda: load_tokenizers(self._options.output)
        )
        self._duplicates = files.read_json(scan_path(self._job))["duplicates"]

    def process(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yields the receipt of a task that is done."""
        bar = progress.TaskProgress(task.size_bytes)
        yield tasks.run_task(self._job, task.number, lambda: self._encode(task, bar))
        bar.finish()

    def _encode(self, task: Task, bar: progress.TaskProgress) -> dict[str, Any]:
        counts: Counter[str] = Counter(
            read=0, written=0, failed=0, duplicates=0, skipped=0
        )
        letters: list[DeadLetter] = []
        window: list[tuple[Article, Pair]] = []
        duplicates = set(self._duplicates.get(str(task.number), ()))
        with ShardWriter(self._options.output, task.number, self._job.tasks) as shards:
            for position, article in enumerate(read_task(task, self._corpus)):
                if isinstance(article, Unreadable):
                    letters.append(unreadable_letter(article))
                    continue
                counts["read"] += 1
                pair = read_pair(article, self._options)
                if isinstance(pair, Skipped):
                    counts.update(["skipped", pair.reason])
                elif position in duplicates:
                    counts["duplicates"] += 1
                else:
                    window.append((article, pair))
                if len(window) == _WINDOW_DOCUMENTS:
                    self._write(window, shards, bar)
                    window = []
            self._write(window, shards, bar)
        counts["written"], counts["failed"] = (
            shards.written,
            sum(letter.records for letter in letters),
        )
        counts["read"] += counts["failed"]
        dead_letters = tasks.publish_dead_letters(self._job, task.number, letters)
        lengths = {
            "source_lengths": dict(shards.source_lengths),
            "target_lengths": dict(shards.target_lengths),
        }
        described = {
            "files": shards.described,
            "dead_letters": dead_letters,
            "failures": count_reasons(letters),
        }
        return {"task": task.number, "counts": dict(counts), **described, **lengths}

    def _write(
        self,
        window: list[tuple[Article, Pair]],
        shards: "ShardWriter",
        bar: progress.TaskProgress,
    ) -> None:
        """Encodes some documents and writes each to its split's shard."""
        sources = self._tokenizers.source.encode(pair.source for _, pair in window)
        targets = encode_targets(
            self._tokenizers.target, (pair.target for _, pair in window)
        )
        for (article, pair), source, target in zip(
            window, sources, targets, strict=True
        ):
            cut = (
                self._tokenizers.source.cut(source, self._options.max_source_tokens),
                target[: self._options.max_target_tokens],
            )
            labelled = (
                self._label(article, pair) if self._options.oracle_sentences else None
            )
            document = article.document
            shards.write(
                document.split,
                Example(document.document_id, *cut, len(source), pair.target, labelled),
                len(target),
            )
        bar.advance(
            len(window), sum(len(article.document.article) for article, _ in window)
        )

    def _label(self, article: Article, pair: Pair) -> LabelledSentences:
        """The sentences as `precis summarize` cuts them, and the oracle's."""
        texts = article.sentence_lines
        picks = oracle_sentences(texts, pair.target, self._options.oracle_sentences)
        return LabelledSentences(texts, tuple(pick.place for pick in picks))


class ShardWriter(contextlib.ExitStack):
    """The shards of one task, one a split, published together when the block ends."""

    def __init__(self, output: str, index: int, count: int) -> None:
        super().__init__()
        self._output, self._index, self._count = output, index, count
        self._files: dict[str, Any] = {}
        self._records: Counter[str] = Counter()
        self.source_lengths: Counter[int] = Counter()
        self.target_lengths: Counter[int] = Counter()

    def write(self, split: str, example: Example, target_tokens: int) -> None:
        """Appends an example; `target_tokens` is the target's length before the cut."""
        if split not in self._files:
            if len(self._files) == MAX_SPLITS:
                raise DataError(
                    f"the corpus has more than {MAX_SPLITS} splits, {split!r} among them; check --split_field"
                )
            path = files.join(self._output, shard_name(split, self._index, self._count))
            self._files[split] = self.enter_context(files.write_aside(path))
        self._files[split].write(frame(serialise(example)))
        self._records[split] += 1
        self.source_lengths[example.source_tokens] += 1
        self.target_lengths[target_tokens] += 1

    @property
    def written(self) -> int:
        """Records written so far."""
        return self._records.total()

    @property
    def described(self) -> list[dict[str, Any]]:
        """The file of each split as it is published; to be asked after the block."""
        names = {
            split: shard_name(split, self._index, self._count)
            for split in sorted(self._files)
        }
        return [
            {
                "split": split,
                **tasks.describe_file(self._output, name, rows=self._records[split]),
            }
            for split, name in names.items()
        ]


def publish_dataset(
    receipts: list[dict[str, Any]],
    options: PrepareOptions,
    corpus: CorpusOptions,
    job: Job,
) -> None:
    """Writes dataset.json from the receipts of all tasks."""
    receipts, scan = (
        sorted(receipts, key=lambda receipt: receipt["task"]),
        files.read_json(scan_path(job)),
    )
    splits: dict[str, list[Shard]] = {}
    for receipt in receipts:
        for file in receipt["files"]:
            shard = Shard(
                file=file["file"],
                records=file["rows"],
                bytes=file["bytes"],
                sha256=file["sha256"],
            )
            splits.setdefault(file["split"], []).append(shard)
    info = DatasetInfo(
        features=FEATURES | (ORACLE_FEATURES if options.oracle_sentences else {}),
        splits={split: tuple(shards) for split, shards in sorted(splits.items())},
        source_lengths=_lengths(receipts, "source_lengths"),
        target_lengths=_lengths(receipts, "target_lengths"),
        counts=tasks.sum_counts(receipt["counts"] for receipt in receipts),
        failures=tasks.sum_counts(receipt["failures"] for receipt in receipts),
        max_source_tokens=options.max_source_tokens,
        max_target_tokens=options.max_target_tokens,
        seed=corpus.seed,
        task_prefix=options.task_prefix,
        target=options.target,
        tokenizer_fingerprint=scan["tokenizer_fingerprint"],
        source_tokenizer_fingerprint=scan["source_tokenizer_fingerprint"],
        fingerprint=job.fingerprint,
    )
    files.write_json(files.join(options.output, DATASET_FILE), info.to_json())


def _lengths(receipts: list[dict[str, Any]], name: str) -> Lengths:
    total: Counter[int] = Counter()
    for receipt in receipts:
        total.update({int(length): count for length, count in receipt[name].items()})
    return summarise_lengths(total)


def _check(job: Job, failures: FailureOptions) -> None:
    """Raises DataError where too much failed or nothing was written."""
    info = DatasetInfo.from_json(files.read_json(files.join(job.output, DATASET_FILE)))
    where = files.join(job.output, tasks.DEAD_LETTERS_FOLDER)
    check_failures(
        info.counts,
        info.failures,
        max_failed_share=failures.max_failed_share,
        dead_letters=where,
    )
    if not info.counts["written"]:
        raise DataError(
            f"no record was written: {dict(info.counts)}; check --article_field, --highlights_field and --split"
        )
