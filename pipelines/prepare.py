"""`precis prepare`: corpus -> vocabulary -> TFRecord shards.

Two passes over the corpus, as documents are never shuffled. The first reads every task for word counts and content hashes; their sums say
what the vocabulary is and which documents are duplicates. The second encodes each task into its own shards.

    scan    tasks -> word counts -> vocabulary      -> tokenizer/
                  -> content hashes -> duplicates   -> _tasks/scan.json
    encode  tasks -> shards and receipts            -> dataset.json, _SUCCESS
"""

import contextlib
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.utils.shared import Shared

from model import files, record, vocabulary
from model.errors import DataError, UsageError
from model.record import DatasetInfo, Example, Shard
from model.text import body, content_sha256, normalise
from model.tokenizer import RESERVED_TOKENS, SETTINGS_FILE, Tokenizer
from pipelines import progress, tasks
from pipelines.corpus.document import Document, Task, Unreadable
from pipelines.corpus.source import CorpusOptions, list_tasks, read_task
from pipelines.failures import DeadLetter, check_failures, count_reasons, unreadable_letter
from pipelines.flags import option_names, read_flags
from pipelines.options import FailureOptions, PrepareOptions
from pipelines.quiet import import_tensorflow
from pipelines.runner import pipeline_options, run_pipeline
from pipelines.tasks import Job

CONCERNS = (CorpusOptions, PrepareOptions, FailureOptions)
SCAN_FILE = "scan.json"
TRAIN_SPLIT = "train"

_WINDOW_DOCUMENTS = 256  # encoded in one call
_WORD_BUCKETS = 32  # pieces that word counts are summed in, apart from each other
_HASH_BUCKETS = 64
_HASH_BYTES = 16
# One document's content hash and where it stands.
_PLACE = np.dtype([("hash", f"S{_HASH_BYTES}"), ("task", "<i4"), ("record", "<i4")])


class Pair(NamedTuple):
    """The texts of a training example, normalised: what the network reads, and what it should write."""

    article: str
    highlights: str


def prepare(*, beam_args: Sequence[str] = (), **flags: Any) -> DatasetInfo:
    """Turns a corpus into a vocabulary and TFRecord shards.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of `CorpusOptions`, `PrepareOptions` and `FailureOptions`.

    Returns:
      The content of dataset.json.

    Raises:
      UsageError: a flag or a corpus that cannot be; nothing was written.
      DataError: too many records failed, or there is nothing to train on.
    """
    corpus, options, failures = read_flags(CONCERNS, flags)
    beam_options = pipeline_options(beam_args, own_flags=option_names(CONCERNS))
    found = list_tasks(corpus)
    inputs = _inputs(corpus, options, found)
    job = tasks.open_job(options.output, kind="records", inputs=inputs, tasks=len(found))
    if job is not None:
        import_tensorflow()
        size = sum(task.size_bytes for task in found)
        if not files.exists(_scan_path(job)):
            pipeline = beam.Pipeline(options=beam_options)
            build_scan(pipeline, found, corpus=corpus, options=options, job=job)
            run_pipeline(pipeline, label="scan", size=size)
        pipeline = beam.Pipeline(options=beam_options)
        build_encode(pipeline, found, corpus=corpus, options=options, job=job)
        run_pipeline(pipeline, label="encode", size=size)
        _check(job, failures)
        tasks.finish_job(job)
    return record.load_dataset(options.output)


def _inputs(corpus: CorpusOptions, options: PrepareOptions, found: Sequence[Task]) -> dict[str, Any]:
    """Everything the records depend on."""
    settings = dataclasses.asdict(options)
    del settings["output"]
    if options.tokenizer:
        if not files.exists(files.join(options.tokenizer, SETTINGS_FILE)):
            raise UsageError(
                f"--tokenizer {options.tokenizer} is no tokenizer folder (no {SETTINGS_FILE}); another record set's is RECORDS/tokenizer"
            )
        settings["tokenizer"] = Tokenizer.load(options.tokenizer).fingerprint
    return {
        "format": record.FORMAT_VERSION,
        "corpus": dataclasses.asdict(corpus),
        "tasks": tasks.describe_tasks(found),
        "options": settings,
    }


def _scan_path(job: Job) -> str:
    return files.join(job.output, tasks.TASKS_FOLDER, SCAN_FILE)


def build_scan(pipeline: beam.Pipeline, found: Sequence[Task], *, corpus: CorpusOptions, options: PrepareOptions, job: Job) -> None:
    """Adds the first pass: the tokenizer and the list of duplicates."""
    scanned = (
        pipeline
        | "ListTasks" >> beam.Create(found)
        | "ScanTasks" >> beam.FlatMap(scan_task, corpus, options).with_outputs("words", "hashes")
    )
    learned = (
        scanned.words
        | "SumWordCounts" >> beam.CombinePerKey(vocabulary.merge_counts)
        | "DropKeys" >> beam.Values()
        | "GatherWordCounts" >> beam.combiners.ToList()
        | "PublishTokenizer" >> beam.Map(publish_tokenizer, options)
    )
    _ = (
        scanned.hashes
        | "GroupHashes" >> beam.GroupByKey()
        | "FindDuplicates" >> beam.MapTuple(lambda _, packed: find_duplicates(packed))
        | "GatherDuplicates" >> beam.combiners.ToList()
        # Waits for the tokenizer, as the scan file says that the pass is complete.
        | "PublishScan" >> beam.Map(publish_scan, job, beam.pvalue.AsSingleton(learned))
    )


def scan_task(task: Task, corpus: CorpusOptions, options: PrepareOptions) -> Iterator[beam.pvalue.TaggedOutput]:
    """Word counts and content hashes of a task's documents, each cut into buckets."""
    places: list[list[tuple[bytes, int, int]]] = [[] for _ in range(_HASH_BUCKETS)]
    # One call for the whole task: words that come again are cut only once.
    words = vocabulary.count_words(_scan_texts(task, corpus, options, places), lower_case=options.lower_case)
    for bucket, counts in enumerate(_word_buckets(words)):
        yield beam.pvalue.TaggedOutput("words", (bucket, counts))
    for bucket, own in enumerate(places):
        if own:
            yield beam.pvalue.TaggedOutput("hashes", (bucket, np.array(own, _PLACE).tobytes()))


def _scan_texts(task: Task, corpus: CorpusOptions, options: PrepareOptions, places: list[list[tuple[bytes, int, int]]]) -> Iterator[str]:
    """The texts to learn words from; adds each document's hash and place to its bucket in `places`."""
    bar = progress.TaskProgress(task.size_bytes)
    for position, document in enumerate(read_task(task, corpus)):
        if isinstance(document, Unreadable):
            continue
        pair = read_pair(document, corpus)
        if not why_skipped(pair):
            digest = bytes.fromhex(content_sha256(document.article))[:_HASH_BYTES]
            places[digest[0] % _HASH_BUCKETS].append((digest, task.number, position))
            if document.split == TRAIN_SPLIT and not options.tokenizer:
                yield from pair
        bar.advance(1, len(document.article))
    bar.finish()


def _word_buckets(words: Counter[str]) -> list[dict[str, int]]:
    buckets: list[dict[str, int]] = [{} for _ in range(_WORD_BUCKETS)]
    for word, count in words.items():
        buckets[hashlib.md5(word.encode(), usedforsecurity=False).digest()[0] % _WORD_BUCKETS][word] = count
    return buckets


def read_pair(document: Document, corpus: CorpusOptions) -> Pair:
    """The texts of a document; either may be empty."""
    return Pair(body(document.article, strip_boilerplate=corpus.strip_boilerplate), normalise(document.highlights or ""))


def why_skipped(pair: Pair) -> str:
    """The reason a document is no training example, or nothing."""
    if not pair.article:
        return "without_text"
    return "" if pair.highlights else "without_highlights"


def find_duplicates(packed: Any) -> dict[int, list[int]]:
    """The records of one hash bucket whose article stands earlier in the corpus, by task."""
    places = np.concatenate([np.frombuffer(part, _PLACE) for part in packed])
    places = places[np.lexsort((places["record"], places["task"], places["hash"]))]
    again = places[1:][places["hash"][1:] == places["hash"][:-1]]
    duplicates: dict[int, list[int]] = {}
    for task, number in zip(again["task"].tolist(), again["record"].tolist(), strict=True):
        duplicates.setdefault(task, []).append(number)
    return duplicates


def publish_tokenizer(counts: list[Counter[str]], options: PrepareOptions) -> str:
    """Writes the tokenizer folder and returns the tokenizer's fingerprint.

    Raises:
      DataError: there are no words to learn from.
    """
    if options.tokenizer:
        tokenizer = Tokenizer.load(options.tokenizer)
    else:
        words = vocabulary.merge_counts(counts)
        if not words:
            raise DataError(
                "the corpus has no training document with a text and highlights to learn a vocabulary from; "
                "check --article_field, --highlights_field and --split, or give a --tokenizer"
            )
        reserved = (*RESERVED_TOKENS, *(name.strip() for name in options.reserved_tokens.split(",") if name.strip()))
        pieces = vocabulary.learn(words, size=options.vocabulary_size, lower_case=options.lower_case, reserved=reserved)
        tokenizer = Tokenizer(pieces, lower_case=options.lower_case)
    tokenizer.save(files.join(options.output, record.TOKENIZER_FOLDER))
    return tokenizer.fingerprint


def publish_scan(parts: list[dict[int, list[int]]], job: Job, tokenizer_fingerprint: str) -> None:
    """Writes down what the second pass needs."""
    duplicates: dict[int, list[int]] = {}
    for part in parts:
        for task, numbers in part.items():
            duplicates.setdefault(task, []).extend(numbers)
    content = {"tokenizer": tokenizer_fingerprint, "duplicates": {task: sorted(numbers) for task, numbers in duplicates.items()}}
    files.write_json(_scan_path(job), content)


def build_encode(pipeline: beam.Pipeline, found: Sequence[Task], *, corpus: CorpusOptions, options: PrepareOptions, job: Job) -> None:
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

    def __init__(self, corpus: CorpusOptions, options: PrepareOptions, job: Job) -> None:
        self._corpus, self._options, self._job = corpus, options, job
        self._shared = Shared()

    def setup(self) -> None:
        """Loads the tokenizer once per process."""
        folder = files.join(self._options.output, record.TOKENIZER_FOLDER)
        self._tokenizer = self._shared.acquire(lambda: Tokenizer.load(folder))
        self._duplicates = {int(task): set(numbers) for task, numbers in files.read_json(_scan_path(self._job))["duplicates"].items()}

    def process(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yields the receipt of a task that is done."""
        bar = progress.TaskProgress(task.size_bytes)
        yield tasks.run_task(self._job, task.number, lambda: self._encode(task, bar))
        bar.finish()

    def _encode(self, task: Task, bar: progress.TaskProgress) -> dict[str, Any]:
        counts: Counter[str] = Counter(read=0, written=0, failed=0, duplicates=0, skipped=0)
        letters: list[DeadLetter] = []
        window: list[tuple[Document, Pair]] = []
        duplicates = self._duplicates.get(task.number, set())
        with ShardWriter(self._options.output, task.number, self._job.tasks) as shards:
            for position, document in enumerate(read_task(task, self._corpus)):
                counts["read"] += 1
                if isinstance(document, Unreadable):
                    letters.append(unreadable_letter(document))
                    continue
                pair = read_pair(document, self._corpus)
                if reason := why_skipped(pair):
                    counts.update(["skipped", reason])
                elif position in duplicates:
                    counts["duplicates"] += 1
                else:
                    window.append((document, pair))
                if len(window) == _WINDOW_DOCUMENTS:
                    self._write(window, shards, bar)
                    window = []
            self._write(window, shards, bar)
        counts["written"], counts["failed"] = shards.written, len(letters)
        dead_letters = tasks.publish_dead_letters(self._job, task.number, letters)
        lengths = {"source_lengths": dict(shards.source_lengths), "target_lengths": dict(shards.target_lengths)}
        described = {"shards": shards.described, "dead_letters": dead_letters, "failures": count_reasons(letters)}
        return {"task": task.number, "counts": dict(counts), **described, **lengths}

    def _write(self, window: list[tuple[Document, Pair]], shards: "ShardWriter", bar: progress.TaskProgress) -> None:
        """Encodes some documents and writes each to its split's shard."""
        sources = self._tokenizer.encode(pair.article for _, pair in window)
        targets = self._tokenizer.encode(pair.highlights for _, pair in window)
        for (document, pair), source, target in zip(window, sources, targets, strict=True):
            cut = source[: self._options.max_source_tokens], target[: self._options.max_target_tokens]
            shards.write(document.split, Example(document.document_id, *cut, len(source), pair.highlights), len(target))
        bar.advance(len(window), sum(len(document.article) for document, _ in window))


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
            path = files.join(self._output, record.shard_name(split, self._index, self._count))
            self._files[split] = self.enter_context(files.write_aside(path))
        self._files[split].write(record.frame(record.serialise(example)))
        self._records[split] += 1
        self.source_lengths[example.source_tokens] += 1
        self.target_lengths[target_tokens] += 1

    @property
    def written(self) -> int:
        """Records written so far."""
        return self._records.total()

    @property
    def described(self) -> dict[str, dict[str, Any]]:
        """For each split, its file as it is published; to be asked after the block."""
        names = {split: record.shard_name(split, self._index, self._count) for split in sorted(self._files)}
        files_ = {split: tasks.describe_file(self._output, name, rows=self._records[split]) for split, name in names.items()}
        return {split: {"records": file.pop("rows"), **file} for split, file in files_.items()}


def publish_dataset(receipts: list[dict[str, Any]], options: PrepareOptions, corpus: CorpusOptions, job: Job) -> None:
    """Writes dataset.json from the receipts of all tasks."""
    receipts = sorted(receipts, key=lambda receipt: receipt["task"])
    splits: dict[str, tuple[Shard, ...]] = {}
    for receipt in receipts:
        for split, shard in receipt["shards"].items():
            splits[split] = (*splits.get(split, ()), Shard(**shard))
    info = DatasetInfo(
        splits=dict(sorted(splits.items())),
        source_lengths=_lengths(receipts, "source_lengths"),
        target_lengths=_lengths(receipts, "target_lengths"),
        counts=tasks.sum_counts(receipt["counts"] for receipt in receipts),
        failures=tasks.sum_counts(receipt["failures"] for receipt in receipts),
        max_source_tokens=options.max_source_tokens,
        max_target_tokens=options.max_target_tokens,
        seed=corpus.seed,
        tokenizer_fingerprint=files.read_json(_scan_path(job))["tokenizer"],
        fingerprint=job.fingerprint,
    )
    files.write_json(files.join(options.output, record.DATASET_FILE), info.to_json())


def _lengths(receipts: list[dict[str, Any]], name: str) -> record.Lengths:
    total: Counter[int] = Counter()
    for receipt in receipts:
        total.update({int(length): count for length, count in receipt[name].items()})
    return record.summarise_lengths(total)


def _check(job: Job, failures: FailureOptions) -> None:
    """Raises DataError where too much failed or nothing was written."""
    info = DatasetInfo.from_json(files.read_json(files.join(job.output, record.DATASET_FILE)))
    where = files.join(job.output, tasks.DEAD_LETTERS_FOLDER)
    check_failures(info.counts, info.failures, max_failed_share=failures.max_failed_share, dead_letters=where)
    if not info.counts["written"]:
        raise DataError(f"no record was written: {dict(info.counts)}; check --article_field, --highlights_field and --split")
