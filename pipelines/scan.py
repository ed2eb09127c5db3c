"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes -> duplicates.

Every task is read once. Its word counts and hashes are cut into buckets, so that no step holds those of the whole corpus in one place.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from model import files, record, vocabulary
from model.errors import DataError
from model.text import body, content_sha256, normalise
from model.tokenizer import RESERVED_TOKENS, Tokenizer
from pipelines import progress, tasks
from pipelines.corpus.document import Document, Task, Unreadable
from pipelines.corpus.source import CorpusOptions, read_task
from pipelines.options import PrepareOptions
from pipelines.tasks import Job

SCAN_FILE = "scan.json"
TRAIN_SPLIT = "train"

_WORD_BUCKETS = 32  # pieces that word counts are summed in, apart from each other
_HASH_BUCKETS = 64
_HASH_BYTES = 16
# One document's content hash and where it stands.
_PLACE = np.dtype([("hash", f"S{_HASH_BYTES}"), ("task", "<i4"), ("record", "<i4")])


class Pair(NamedTuple):
    """The texts of a training example, normalised: what the network reads, and what it should write."""

    article: str
    highlights: str


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
        | "KeepFrequentWords" >> beam.MapTuple(lambda _, counts: vocabulary.most_frequent(counts))
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
        reserved = (*RESERVED_TOKENS, *options.reserved)
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
    files.write_json(scan_path(job), content)


def scan_path(job: Job) -> str:
    """Where the result of the pass lies while the job runs: the tokenizer's fingerprint, and each task's duplicates."""
    return files.join(job.output, tasks.TASKS_FOLDER, SCAN_FILE)
