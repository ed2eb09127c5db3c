"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

    scan    task of the corpus -> _tasks/scanned/00003   its hashes and word counts
    merge   bucket of hashes   -> _tasks/merged/00007    the duplicates of each task
            bucket of words    -> _tasks/merged/00012    its most frequent words

Hashes and words are cut into buckets and lie in files between the steps, so no process
holds those of the whole corpus.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import (
    TokenizerPair,
    load_tokenizer,
    save_tokenizers,
)
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import TaskReader, read_task
from precis.pipelines.corpus.task import EmptyArticle, FileFailure, Task, Unreadable
from precis.pipelines.engines.tasks import (
    RunTasks,
    Step,
    TaskResult,
    TaskWorker,
)
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.prepare.generator_result import GeneratorResult
from precis.pipelines.prepare.training_pairs import (
    Skipped,
    TrainingPair,
    read_pairs,
    sources_are_normalised,
)
from precis.pipelines.prepare.vocabulary_buckets import (
    HASH_BYTES,
    PLACE,
    WORD_BUCKETS,
    BucketTask,
    MergeWorker,
    ScanFigures,
    hash_groups,
    pack_words,
    publish_groups,
    read_words,
    scanned_path,
    word_buckets,
)
from precis.pipelines.run.checksummed_json import read_checksummed, write_checksummed
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.progress import TaskProgress

# Some million keys of the shortest documents, a hundred thousand of the usual ones.
_MOST_BUCKET_BYTES = 128 << 20
_MAX_BUCKETS = 1024
SCAN_FILE = "scan.json"
TRAIN_SPLIT = "train"
_MAX_WORDS_HELD = 1 << 18
_SHOWN_DOCUMENTS = 64  # the display moves on after so many


def build_scan(
    pipeline: beam.Pipeline,
    tasks: Sequence[Task],
    *,
    corpus: CorpusOptions,
    options: PrepareOptions,
    job: Job,
    processes: int = 1,
) -> None:
    """Adds the first pass: the tokenizer and the list of duplicates."""
    size = sum(task.size_bytes for task in tasks)
    buckets = min(max(1, -(-size // _MOST_BUCKET_BYTES)), _MAX_BUCKETS)
    scan = ScanWorker(corpus, options, job, buckets=buckets)
    merge = MergeWorker(job, buckets=buckets)
    scan_step = Step(job, "scan", ScanFigures.from_json)
    merge_step = Step(job, "merge", ScanFigures.from_json)
    _ = (
        pipeline
        | "ListTasks" >> beam.Create(tasks)
        | "ScanTasks" >> RunTasks(scan, scan_step, processes=processes)
        | "AwaitScanned" >> beam.combiners.Count.Globally()
        | "ListBuckets" >> beam.FlatMap(_bucket_tasks, buckets)
        | "SpreadBuckets" >> beam.Reshuffle()
        | "MergeBuckets" >> RunTasks(merge, merge_step, processes=processes)
        | "AwaitMerged" >> beam.combiners.Count.Globally()
        | "PublishScan" >> beam.Map(publish_scan, options, job, buckets)
    )


def _bucket_tasks(scanned: int, buckets: int) -> list[BucketTask]:
    """The tasks of the step `merge`, which begins when all tasks are scanned."""
    del scanned
    return [BucketTask(number) for number in range(buckets + WORD_BUCKETS)]


class ScanWorker(TaskWorker):
    """Writes the content hashes and the word counts of one task."""

    def __init__(
        self, corpus: CorpusOptions, options: PrepareOptions, job: Job, *, buckets: int
    ) -> None:
        """Stores its arguments.

        Args:
          corpus: how the corpus is read.
          options: of the records.
          job: the job.
          buckets: of hashes.
        """
        self._corpus = corpus
        self._options = options
        self._job = job
        self._buckets = buckets
        self._are_normalised = sources_are_normalised(corpus, options)

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes

    def run(
        self, task: Task, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[ScanFigures]:
        """Writes the file of a task; dead letters are written by the second pass.

        Raises:
          DataError: a file of the task changed or cannot be read. The vocabulary and
              the duplicates depend on every file, so there is nothing to go on with.
        """
        del letters
        reader = read_task(task, self._corpus)
        texts = GeneratorResult(self._scan_documents(task.number, reader, progress))
        try:
            # One call for the whole task, so that a word that comes again is cut once.
            words = vocabulary.count_words(texts, lower_case=self._options.lower_case)
        except FileFailure as failure:
            raise DataError(
                f"{failure}; let the file rest and run the command again, with another "
                "--output where its content is not to be as it was"
            ) from failure
        places = np.array(texts.result, PLACE)
        groups = hash_groups(places, self._buckets)
        groups |= {
            self._buckets + bucket: pack_words(counts)
            for bucket, counts in enumerate(word_buckets(words))
        }
        path = scanned_path(self._job.output, task.number)
        documents = reader.position.records
        return publish_groups(self._job, path, groups, documents=documents)

    def _scan_documents(
        self, task: int, reader: TaskReader, progress: TaskProgress
    ) -> Generator[str, None, list[tuple[bytes, int, int]]]:
        """Yields the texts to learn words from; returns the places of all documents."""
        places = []
        for position, article in enumerate(reader):
            if position % _SHOWN_DOCUMENTS == 0:
                progress.advance_to(reader.position)
            if isinstance(article, EmptyArticle | Unreadable):
                continue
            pairs = read_pairs(article, self._options)
            if not isinstance(pairs, Skipped):
                digest = bytes.fromhex(article.content_sha256)[:HASH_BYTES]
                places.append((digest, task, position))
                if article.document.split == TRAIN_SPLIT:
                    for pair in pairs:
                        yield from self._texts_to_learn(pair)
        progress.advance_to(reader.position)
        return places

    def _texts_to_learn(self, pair: TrainingPair) -> tuple[str, ...]:
        """The texts of a training example that the vocabulary is learned from."""
        if self._options.tokenizer:
            return ()
        # A tokenizer for the sources leaves the targets to the vocabulary.
        if self._options.source_tokenizer:
            return (pair.target,)
        # The tokenizer normalises a source that --clean none left as it stands.
        source = pair.source if self._are_normalised else normalise(pair.source)
        return source, pair.target


def publish_tokenizers(
    counts: Iterable[Mapping[str, int]], options: PrepareOptions
) -> dict[str, str | None]:
    """Writes the tokenizer folders.

    Returns:
      The fingerprints of the tokenizers by their names in dataset.json.

    Raises:
      DataError: there are no words to learn from.
    """
    if options.tokenizer:
        target = load_tokenizer(options.tokenizer)
    else:
        target = _learn_tokenizer(counts, options)
    has_source = bool(options.source_tokenizer)
    source = load_tokenizer(options.source_tokenizer) if has_source else target
    save_tokenizers(options.output, TokenizerPair(source, target))
    return {
        "tokenizer_fingerprint": target.fingerprint,
        "source_tokenizer_fingerprint": source.fingerprint if has_source else None,
    }


def _learn_tokenizer(
    counts: Iterable[Mapping[str, int]], options: PrepareOptions
) -> Tokenizer:
    words: dict[str, int] = {}
    characters: Counter[str] = Counter()
    for bucket in counts:  # All of them may be two million words.
        characters.update(vocabulary.count_characters(bucket))
        words |= bucket
        if len(words) > _MAX_WORDS_HELD:
            words = vocabulary.most_frequent(words)
    if not words:
        raise DataError(
            "the corpus has no training document with a text and "
            f"{options.target} to learn a vocabulary from; check --article_field, "
            "--highlights_field and --split, or give a --tokenizer"
        )
    pieces = vocabulary.learn(
        vocabulary.most_frequent(words),
        size=options.vocabulary_size,
        lower_case=options.lower_case,
        reserved=(*RESERVED_TOKENS, *options.reserved),
        characters=characters,
    )
    return Tokenizer(pieces, lower_case=options.lower_case)


def publish_scan(merged: int, options: PrepareOptions, job: Job, buckets: int) -> None:
    """Writes the tokenizers, and down that the pass is complete."""
    del merged
    fingerprints = publish_tokenizers(read_words(job.output, buckets=buckets), options)
    write_checksummed(scan_path(job), {**fingerprints, "buckets": buckets})


def scan_path(job: Job) -> str:
    """Where the result of the pass lies while the job runs.

    It holds the fingerprints of the tokenizers, and the number of buckets.
    """
    return files.join(job.output, TASKS_FOLDER, SCAN_FILE)


def read_scan(job: Job, fields: Mapping[str, type]) -> dict[str, Any]:
    """The result of the pass.

    Args:
      job: the job.
      fields: those that are needed, with their types.

    Raises:
      DataError: the file is damaged.
    """
    return read_checksummed(
        scan_path(job),
        way_out="remove it, and the same command makes it again",
        fields=fields,
    )
