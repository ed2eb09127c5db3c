"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

Every task is read once. Its word counts and hashes are cut into buckets, so that no
step holds those of the whole corpus in one place.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import Tokenizers, load_tokenizer, save_tokenizers
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.pipelines import progress, tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import Task, Unreadable
from precis.pipelines.options import PrepareOptions
from precis.pipelines.targets import TARGETS
from precis.pipelines.tasks import Job

SCAN_FILE = "scan.json"
TRAIN_SPLIT = "train"

_WORD_BUCKETS = 32  # pieces that word counts are summed in, apart from each other
_HASH_BUCKETS = 64
_HASH_BYTES = 16
# One document's content hash and where it stands.
_PLACE = np.dtype([("hash", f"S{_HASH_BYTES}"), ("task", "<i4"), ("record", "<i4")])


class Pair(NamedTuple):
    """The texts of a training example, normalised: what the network reads, and what it
    should write.
    """

    source: str
    target: str


class Skipped(NamedTuple):
    """A document that is no training example, and why."""

    reason: str


def build_scan(
    pipeline: beam.Pipeline,
    found: Sequence[Task],
    *,
    corpus: CorpusOptions,
    options: PrepareOptions,
    job: Job,
) -> None:
    """Adds the first pass: the tokenizer and the list of duplicates."""
    scanned = (
        pipeline
        | "ListTasks" >> beam.Create(found)
        | "ScanTasks"
        >> beam.FlatMap(scan_task, corpus, options).with_outputs("words", "hashes")
    )
    learned = (
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
        | "PublishScan" >> beam.Map(publish_scan, job, beam.pvalue.AsSingleton(learned))
    )


def scan_task(
    task: Task, corpus: CorpusOptions, options: PrepareOptions
) -> Iterator[beam.pvalue.TaggedOutput]:
    """Word counts and content hashes of a task's documents, each cut into buckets."""
    places: list[list[tuple[bytes, int, int]]] = [[] for _ in range(_HASH_BUCKETS)]
    # One call for the whole task: words that come again are cut only once.
    words = vocabulary.count_words(
        _scan_texts(task, corpus, options, places), lower_case=options.lower_case
    )
    for bucket, counts in enumerate(_word_buckets(words)):
        yield beam.pvalue.TaggedOutput("words", (bucket, counts))
    for bucket, own in enumerate(places):
        if own:
            yield beam.pvalue.TaggedOutput(
                "hashes", (bucket, np.array(own, _PLACE).tobytes())
            )


def _scan_texts(
    task: Task,
    corpus: CorpusOptions,
    options: PrepareOptions,
    places: list[list[tuple[bytes, int, int]]],
) -> Iterator[str]:
    """The texts to learn words from; adds each document's hash and place to its bucket
    in `places`.
    """
    bar = progress.TaskProgress(task.size_bytes)
    for position, article in enumerate(read_task(task, corpus)):
        if isinstance(article, Unreadable):
            continue
        pair = read_pair(article, options)
        if isinstance(pair, Pair):
            digest = bytes.fromhex(article.content_sha256)[:_HASH_BYTES]
            places[digest[0] % _HASH_BUCKETS].append((digest, task.number, position))
            if article.document.split == TRAIN_SPLIT and not options.tokenizer:
                # A tokenizer for the sources leaves the targets to the vocabulary.
                yield from (pair.target,) if options.source_tokenizer else pair
        bar.advance(1, len(article.document.article))
    bar.finish()


def _word_buckets(words: Counter[str]) -> list[dict[str, int]]:
    buckets: list[dict[str, int]] = [{} for _ in range(_WORD_BUCKETS)]
    for word, count in words.items():
        buckets[
            hashlib.md5(word.encode(), usedforsecurity=False).digest()[0]
            % _WORD_BUCKETS
        ][word] = count
    return buckets


def read_pair(article: Article, options: PrepareOptions) -> Pair | Skipped:
    """The texts of an article, or the reason it has none to learn from."""
    if not article.body:
        return Skipped("without_text")
    highlights = normalise(article.document.highlights or "")
    if not highlights:
        return Skipped("without_highlights")
    target = TARGETS[options.target](article, highlights)
    if not target:
        return Skipped(f"without_{options.target}")
    return Pair(options.task_prefix + article.body, target)


def find_duplicates(packed: Any) -> dict[int, list[int]]:
    """The records of one hash bucket whose article stands earlier in the corpus, by
    task.
    """
    places = np.concatenate([np.frombuffer(part, _PLACE) for part in packed])
    places = places[np.lexsort((places["record"], places["task"], places["hash"]))]
    again = places[1:][places["hash"][1:] == places["hash"][:-1]]
    duplicates: dict[int, list[int]] = {}
    for task, number in zip(
        again["task"].tolist(), again["record"].tolist(), strict=True
    ):
        duplicates.setdefault(task, []).append(number)
    return duplicates


def publish_tokenizers(
    counts: list[Counter[str]], options: PrepareOptions
) -> dict[str, str | None]:
    """Writes the tokenizer folders and returns the fingerprints by their names in
    dataset.json.

    Raises:
      DataError: there are no words to learn from.
    """
    target = (
        load_tokenizer(options.tokenizer)
        if options.tokenizer
        else _learn_tokenizer(counts, options)
    )
    source = (
        load_tokenizer(options.source_tokenizer) if options.source_tokenizer else target
    )
    save_tokenizers(options.output, Tokenizers(source, target))
    return {
        "tokenizer_fingerprint": target.fingerprint,
        "source_tokenizer_fingerprint": source.fingerprint
        if options.source_tokenizer
        else None,
    }


def _learn_tokenizer(counts: list[Counter[str]], options: PrepareOptions) -> Tokenizer:
    words = vocabulary.merge_counts(counts)
    if not words:
        raise DataError(
            f"the corpus has no training document with a text and {options.target} to learn a vocabulary from; "
            "check --article_field, --highlights_field and --split, or give a --tokenizer"
        )
    reserved = (*RESERVED_TOKENS, *options.reserved)
    pieces = vocabulary.learn(
        words,
        size=options.vocabulary_size,
        lower_case=options.lower_case,
        reserved=reserved,
    )
    return Tokenizer(pieces, lower_case=options.lower_case)


def publish_scan(
    parts: list[dict[int, list[int]]], job: Job, fingerprints: dict[str, str | None]
) -> None:
    """Writes down what the second pass needs."""
    duplicates: dict[int, list[int]] = {}
    for part in parts:
        for task, numbers in part.items():
            duplicates.setdefault(task, []).extend(numbers)
    files.write_json(
        scan_path(job),
        {
            **fingerprints,
            "duplicates": {
                task: sorted(numbers) for task, numbers in duplicates.items()
            },
        },
    )


def scan_path(job: Job) -> str:
    """Where the result of the pass lies while the job runs: the tokenizers'
    fingerprints, and each task's duplicates.
    """
    return files.join(job.output, tasks.TASKS_FOLDER, SCAN_FILE)
