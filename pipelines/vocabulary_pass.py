"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

Every task is read once. Its word counts and hashes are cut into buckets, so that no
step holds those of the whole corpus in one place.
"""

import hashlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

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
from precis.pipelines.checksummed_json import read_checksummed, write_checksummed
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import EmptyArticle, FileFailure, Task, Unreadable
from precis.pipelines.generator_result import GeneratorResult
from precis.pipelines.job import TASKS_FOLDER, Job
from precis.pipelines.local_processes import in_processes
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.progress import TaskProgress
from precis.pipelines.training_pairs import TrainingPair, read_pair

SCAN_FILE = "scan.json"
TRAIN_SPLIT = "train"

_WORD_BUCKETS = 32  # pieces that word counts are summed in, apart from each other
_HASH_BUCKETS = 64
_HASH_BYTES = 16
# One document's content hash and where it stands.
_PLACE = np.dtype([("hash", f"S{_HASH_BYTES}"), ("task", "<i4"), ("record", "<i4")])


# A bucket's number, and word counts or packed `_PLACE` records.
TaggedWords = beam.pvalue.TaggedOutput[Literal["words"], tuple[int, dict[str, int]]]
TaggedHashes = beam.pvalue.TaggedOutput[Literal["hashes"], tuple[int, bytes]]


class DocumentPlace(NamedTuple):
    """The content hash of a document, and where it stands in the corpus."""

    digest: bytes
    task: int
    record: int


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
    scan = in_processes(_ScanTask(corpus, options), processes, size=_size)
    scanned = (
        pipeline
        | "ListTasks" >> beam.Create(tasks)
        | "ScanTasks" >> beam.ParDo(scan).with_outputs("words", "hashes")
    )
    fingerprints = (
        scanned.words
        | "SumWordCounts" >> beam.CombinePerKey(vocabulary.merge_counts)
        | "KeepFrequentWords"
        >> beam.MapTuple(lambda _, counts: vocabulary.most_frequent(counts))
        | "GatherWordCounts" >> beam.combiners.ToList()
        | "PublishTokenizers" >> beam.Map(publish_tokenizers, options)
    )
    _ = (
        scanned.hashes
        | "GroupHashes" >> beam.GroupByKey()
        | "FindDuplicates" >> beam.MapTuple(lambda _, packed: find_duplicates(packed))
        | "GatherDuplicates" >> beam.combiners.ToList()
        # Waits for the tokenizers, as the scan file says that the pass is complete.
        | "PublishScan"
        >> beam.Map(publish_scan, job, beam.pvalue.AsSingleton(fingerprints))
    )


def _size(task: Task) -> int:
    return task.size_bytes


class _ScanTask(beam.DoFn):
    """Scans one task."""

    def __init__(self, corpus: CorpusOptions, options: PrepareOptions) -> None:
        self._corpus = corpus
        self._options = options

    def process(self, task: Task) -> Iterator[TaggedWords | TaggedHashes]:
        return scan_task(task, self._corpus, self._options)


def scan_task(
    task: Task, corpus: CorpusOptions, options: PrepareOptions
) -> Iterator[TaggedWords | TaggedHashes]:
    """Word counts and content hashes of a task's documents, each cut into buckets.

    Raises:
      DataError: a file of the task changed or cannot be read. The vocabulary and the
          duplicates depend on every file, so there is nothing to go on with.
    """
    texts = GeneratorResult(_scan_documents(task, corpus, options))
    try:
        # One call for the whole task, so that a word that comes again is cut only once.
        words = vocabulary.count_words(texts, lower_case=options.lower_case)
    except FileFailure as failure:
        raise DataError(
            f"{failure}; let the file rest and run the command again, with another "
            "--output where its content is not to be as it was"
        ) from failure
    for bucket, counts in enumerate(_word_buckets(words)):
        yield TaggedWords("words", (bucket, counts))
    for bucket, packed in _hash_buckets(texts.result):
        yield TaggedHashes("hashes", (bucket, packed))


def _scan_documents(
    task: Task, corpus: CorpusOptions, options: PrepareOptions
) -> Generator[str, None, list[DocumentPlace]]:
    """Yields the texts to learn words from; returns the places of all documents."""
    places = []
    bar = TaskProgress(task.size_bytes)
    reader = read_task(task, corpus)
    for position, article in enumerate(reader):
        bar.advance_to(reader.position)
        if isinstance(article, EmptyArticle | Unreadable):
            continue
        pair = read_pair(article, options)
        if isinstance(pair, TrainingPair):
            digest = bytes.fromhex(article.content_sha256)[:_HASH_BYTES]
            places.append(DocumentPlace(digest, task.number, position))
            if article.document.split == TRAIN_SPLIT:
                yield from _texts_to_learn(pair, options)
    bar.finish()
    return places


def _texts_to_learn(pair: TrainingPair, options: PrepareOptions) -> tuple[str, ...]:
    """The texts of a training example that the vocabulary is learned from."""
    if options.tokenizer:
        return ()
    # A tokenizer for the sources leaves the targets to the vocabulary.
    if options.source_tokenizer:
        return (pair.target,)
    # The tokenizer normalises a source that --clean none left as it stands.
    return normalise(pair.source), pair.target


def _word_buckets(words: Counter[str]) -> list[dict[str, int]]:
    buckets: list[dict[str, int]] = [{} for _ in range(_WORD_BUCKETS)]
    for word, count in words.items():
        digest = hashlib.md5(word.encode(), usedforsecurity=False).digest()
        buckets[digest[0] % _WORD_BUCKETS][word] = count
    return buckets


def _hash_buckets(places: Iterable[DocumentPlace]) -> Iterator[tuple[int, bytes]]:
    """The buckets that are not empty, each as packed `_PLACE` records."""
    buckets: list[list[DocumentPlace]] = [[] for _ in range(_HASH_BUCKETS)]
    for place in places:
        buckets[place.digest[0] % _HASH_BUCKETS].append(place)
    for number, bucket in enumerate(buckets):
        if bucket:
            yield number, np.array(bucket, _PLACE).tobytes()


def find_duplicates(packed: Iterable[bytes]) -> dict[int, list[int]]:
    """The records of one hash bucket whose article stands earlier in the corpus.

    Args:
      packed: the bucket's `_PLACE` records, in any number of parts.

    Returns:
      For each task with duplicates the positions of those records.
    """
    places = np.concatenate([np.frombuffer(part, _PLACE) for part in packed])
    places = places[np.lexsort((places["record"], places["task"], places["hash"]))]
    repeated = places[1:][places["hash"][1:] == places["hash"][:-1]]
    tasks = repeated["task"].tolist()
    records = repeated["record"].tolist()
    duplicates: dict[int, list[int]] = {}
    for task, record in zip(tasks, records, strict=True):
        duplicates.setdefault(task, []).append(record)
    return duplicates


def publish_tokenizers(
    counts: list[Counter[str]], options: PrepareOptions
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


def _learn_tokenizer(counts: list[Counter[str]], options: PrepareOptions) -> Tokenizer:
    words = vocabulary.merge_counts(counts)
    if not words:
        raise DataError(
            "the corpus has no training document with a text and "
            f"{options.target} to learn a vocabulary from; check --article_field, "
            "--highlights_field and --split, or give a --tokenizer"
        )
    pieces = vocabulary.learn(
        words,
        size=options.vocabulary_size,
        lower_case=options.lower_case,
        reserved=(*RESERVED_TOKENS, *options.reserved),
    )
    return Tokenizer(pieces, lower_case=options.lower_case)


def publish_scan(
    parts: list[Mapping[int, list[int]]],
    job: Job,
    fingerprints: Mapping[str, str | None],
) -> None:
    """Writes down what the second pass needs."""
    duplicates: dict[int, list[int]] = {}
    for part in parts:
        for task, records in part.items():
            duplicates.setdefault(task, []).extend(records)
    ordered = {task: sorted(records) for task, records in duplicates.items()}
    write_checksummed(scan_path(job), {**fingerprints, "duplicates": ordered})


def scan_path(job: Job) -> str:
    """Where the result of the pass lies while the job runs.

    It holds the fingerprints of the tokenizers, and the duplicates of each task.
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
