"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

    scan   task of the corpus -> _tasks/words/00003.parquet    how often it has a word
                              -> _tasks/hashes/00003.parquet   where its articles stand
    join   all of these       -> tokenizer/, source_tokenizer/
                              -> _tasks/duplicates.parquet     those that stand earlier
                              -> _tasks/scan.json

The files of all tasks are joined by DuckDB, which writes to a temporary folder what
does not fit its memory.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.counters import enter_step
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import (
    TokenizerPair,
    load_tokenizer,
    save_tokenizers,
)
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import DeadLetter, FileFailure, Task
from precis.pipelines.engines.tasks import RunTasks, Step, TaskResult, TaskWorker
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.prepare.training_pairs import (
    TrainingPair,
    read_pairs,
    sources_are_normalised,
)
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import (
    PublishedFile,
    describe_file,
    is_whole,
    read_checksummed,
    write_checksummed,
)

TRAIN_SPLIT = "train"
JOIN_STEP = "join"
_MAX_WORDS_HELD = 1 << 18
_SHOWN_DOCUMENTS = 64  # the display moves on after so many
# A place is a number: the task, and in the lower 32 bits the record.
_HASHES = pa.schema([("hash", pa.binary(16)), ("place", pa.int64())])
_WORDS = pa.schema([("word", pa.string()), ("count", pa.int64())])
_MEMORY = "512MB"
_ROWS_AT_ONCE = 100_000
_COUNTS = "SELECT word, sum(count)::BIGINT FROM words GROUP BY word"
_DUPLICATES = """
SELECT place
FROM hashes JOIN (
    SELECT hash, min(place) AS first FROM hashes GROUP BY hash HAVING count(*) > 1
) USING (hash)
WHERE place > first
ORDER BY place
"""


class ScanFigures(NamedTuple):
    """What the step `scan` reports: the documents that were read."""

    documents: int = 0

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ScanFigures":
        """The figures of a receipt."""
        return cls(content.get("documents", 0))


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
    step = Step(job, "scan", ScanFigures.from_json)
    worker = ScanWorker(corpus, options, job)
    _ = (
        pipeline
        | "ListTasks" >> beam.Create(tasks)
        | "ScanTasks" >> RunTasks(worker, step, processes=processes)
        | "AwaitScanned" >> beam.combiners.Count.Globally()
        | "JoinTasks" >> beam.Map(lambda _: publish_scan(options, job))
    )


class ScanWorker(TaskWorker):
    """Writes the content hashes and the word counts of one task."""

    def __init__(
        self, corpus: CorpusOptions, options: PrepareOptions, job: Job
    ) -> None:
        self._corpus = corpus
        self._options = options
        self._job = job
        self._are_normalised = sources_are_normalised(corpus, options)

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes

    def run(
        self, task: Task, progress: TaskProgress, letters: DeadLetterWriter
    ) -> TaskResult[ScanFigures]:
        """Writes the files of a task; dead letters are written by the second pass.

        Raises:
          DataError: a file of the task changed or cannot be read. The vocabulary and
              the duplicates depend on every file, so there is nothing to go on with.
        """
        del letters
        reader = read_task(task, self._corpus)
        hashes: list[dict[str, Any]] = []

        def texts() -> Iterator[str]:
            for record, article in enumerate(reader):
                if record % _SHOWN_DOCUMENTS == 0:
                    progress.advance_to(reader.position)
                if isinstance(article, DeadLetter):
                    continue
                pairs = read_pairs(article, self._options)
                if isinstance(pairs, str):
                    continue
                digest = bytes.fromhex(article.content_sha256)[:16]
                hashes.append({"hash": digest, "place": task.number << 32 | record})
                if article.document.split == TRAIN_SPLIT:
                    for pair in pairs:
                        yield from self._texts_to_learn(pair)

        try:
            # One call for the whole task, so that a word that comes again is cut once.
            words = vocabulary.count_words(texts(), lower_case=self._options.lower_case)
        except FileFailure as failure:
            raise DataError(
                f"{failure}; let the file rest and run the command again, with another "
                "--output where its content is not to be as it was"
            ) from failure
        progress.advance_to(reader.position)
        counts = pa.table([list(words), list(words.values())], schema=_WORDS)
        published = [
            _publish(self._job, _path(self._job, kind, task.number), table.to_reader())
            for kind, table in (
                ("hashes", pa.Table.from_pylist(hashes, _HASHES)),
                ("words", counts),
            )
        ]
        return TaskResult({}, published, ScanFigures(reader.position.records))

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


def _path(job: Job, kind: str, task: int) -> str:
    return files.join(job.output, TASKS_FOLDER, kind, f"{task:05d}.parquet")


def duplicates_path(job: Job) -> str:
    """Where the places of duplicates lie while the job runs."""
    return files.join(job.output, TASKS_FOLDER, "duplicates.parquet")


def _publish(job: Job, path: str, batches: pa.RecordBatchReader) -> PublishedFile:
    """Publishes a file of the pass, a row group for each batch."""
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(file, batches.schema, compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    name = path.removeprefix(files.join(job.output, ""))
    return describe_file(job.output, name, rows=0)


def publish_scan(options: PrepareOptions, job: Job) -> None:
    """Writes the tokenizers and the duplicates, and down that the pass is complete."""
    enter_step(JOIN_STEP)
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect(f"{folder}/scan.duckdb") as connection:
            connection.execute(f"SET memory_limit = '{_MEMORY}'")
            _load(connection, "words", job)
            _load(connection, "hashes", job)
            found = connection.sql(_DUPLICATES).to_arrow_reader(_ROWS_AT_ONCE)
            duplicates = _publish(job, duplicates_path(job), found)
            words = connection.sql(_COUNTS).to_arrow_reader(_ROWS_AT_ONCE)
            counts = (
                dict(zip(*batch.to_pydict().values(), strict=True)) for batch in words
            )
            fingerprints = publish_tokenizers(counts, options)
    write_checksummed(scan_path(job), {**fingerprints, "duplicates": duplicates})


def _load(connection: duckdb.DuckDBPyConnection, kind: str, job: Job) -> None:
    """Makes a table of the files of all tasks."""
    for number in range(job.tasks):
        with files.open_read(_path(job, kind, number)) as file:
            rows = pq.read_table(file, use_threads=False, pre_buffer=False)
        connection.register("rows_of_task", rows)
        verb = f"INSERT INTO {kind}" if number else f"CREATE TABLE {kind} AS"
        connection.execute(f"{verb} SELECT * FROM rows_of_task")


def publish_tokenizers(
    counts: Iterable[Mapping[str, int]], options: PrepareOptions
) -> dict[str, str | None]:
    """Writes the tokenizer folders.

    Args:
      counts: of the words to learn from, each in one of the mappings.
      options: of the records.

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
    for part in counts:  # All of them may be many million words.
        characters.update(vocabulary.count_characters(part))
        words |= part
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


def scan_path(job: Job) -> str:
    """Where the result of the pass lies while the job runs.

    It holds the fingerprints of the tokenizers and describes the file of duplicates.
    """
    return files.join(job.output, TASKS_FOLDER, "scan.json")


def read_scan(job: Job) -> dict[str, Any]:
    """The result of the pass; empty where it is not complete, or not as it was.

    Raises:
      DataError: the file is damaged.
    """
    path = scan_path(job)
    if not files.exists(path):
        return {}
    way_out = "remove it, and the same command makes it again"
    fields = {"tokenizer_fingerprint": str, "duplicates": dict}
    scan = read_checksummed(path, way_out=way_out, fields=fields)
    return scan if is_whole(job.output, scan["duplicates"]) else {}


def read_duplicates(job: Job, task: int) -> set[int]:
    """The records of a task whose article stands earlier in the corpus."""
    places = [("place", ">=", task << 32), ("place", "<", task + 1 << 32)]
    with files.open_read(duplicates_path(job)) as file:
        table = pq.read_table(file, filters=places, use_threads=False, pre_buffer=False)
    return {place & 0xFFFFFFFF for place in table.column("place").to_pylist()}
