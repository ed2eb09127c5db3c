"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

    scan   task of the corpus -> _tasks/words/00003.parquet    how often words occur
                              -> _tasks/hashes/00003.parquet   places of its articles
    join   all of these       -> tokenizer/, source_tokenizer/
                              -> _tasks/duplicates.parquet     places of duplicates

DuckDB joins the files of all tasks, and writes to a temporary folder what does not fit
its memory.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from precis.model import files
from precis.model.errors import DataError
from precis.model.progress.counters import enter_step
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    TokenizerPair,
    holds_tokenizer,
    load_tokenizer,
    save_tokenizers,
    tokenizer_files,
)
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.corpus import read_task
from precis.pipelines.corpus.dead_letters import (
    NAMED_LETTERS,
    DeadLetterWriter,
    name_first,
)
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter, FileError, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.training_pairs import TrainingPair, read_pairs
from precis.pipelines.run.job import TASKS_FOLDER, Job
from precis.pipelines.run.key_tables import (
    ROWS_AT_ONCE,
    load_keys,
    open_database,
    place_of,
    publish_keys,
    read_keys_of_task,
    record_of,
)
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile, describe_file

TRAIN_SPLIT = "train"
_SHOWN_DOCUMENTS = 64  # documents between two updates of the display
_HASHES = pa.schema([("hash", pa.binary(16)), ("place", pa.int64())])
_WORDS = pa.schema([("word", pa.string()), ("count", pa.int64())])
# The file with the places of duplicates while the job runs.
DUPLICATES_FILE = files.join(TASKS_FOLDER, "duplicates.parquet")
_COUNT = """
CREATE TEMP TABLE counts AS
SELECT word, sum(count)::BIGINT AS count FROM words GROUP BY word
"""
_MOST_FREQUENT = "SELECT word, count FROM counts ORDER BY count DESC, word LIMIT ?"
_CHARACTERS = """
SELECT character, sum(count)::BIGINT
FROM (SELECT unnest(regexp_extract_all(word, '(?s).')) AS character, count FROM counts)
GROUP BY character
"""
_DUPLICATES = """
SELECT place
FROM hashes JOIN (
    SELECT hash, min(place) AS first FROM hashes GROUP BY hash HAVING count(*) > 1
) USING (hash)
WHERE place > first
ORDER BY place
"""


@dataclasses.dataclass
class PassWorker(TaskWorker):
    """The settings that both passes share."""

    corpus: CorpusOptions
    options: PrepareOptions
    job: Job

    @property
    def are_normalised(self) -> bool:
        """Whether sources are already normalised for a tokenizer. With a prefix they
        may not be: its characters and the text's may compose.
        """
        return self.corpus.clean != "none" and not self.options.task_prefix

    def progress_size(self, task: Task) -> int:
        """The size of the task in bytes of the corpus."""
        return task.size_bytes


class ScanWorker(PassWorker):
    """Writes the content hashes and word counts of one task."""

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the files of a task; the second pass writes the dead letters.

        Raises:
          DataError: a file of the task has changed or cannot be read. The job cannot
              continue, because vocabulary and duplicates depend on every file.
        """
        del dead_letters
        reader = read_task(task, self.corpus)
        hashes: list[dict[str, Any]] = []
        lost: list[DeadLetter] = []

        def texts() -> Iterator[str]:
            for record, article in enumerate(reader):
                if record % _SHOWN_DOCUMENTS == 0:
                    progress.advance_to(reader.position)
                if isinstance(article, DeadLetter):
                    if len(lost) < NAMED_LETTERS:
                        lost.append(article._replace(raw=None))
                    continue
                pairs = read_pairs(article, self.options)
                if isinstance(pairs, str):
                    continue
                digest = bytes.fromhex(article.content_sha256)[:16]
                hashes.append({"hash": digest, "place": place_of(task.number, record)})
                if article.document.split == TRAIN_SPLIT:
                    for pair in pairs:
                        yield from self._texts_to_learn(pair)

        try:
            # One call for the whole task, so that repeated words are split only once.
            words = vocabulary.count_words(texts(), lower_case=self.options.lower_case)
        except FileError as failure:
            raise DataError(
                f"{failure}; run the command again once the file does not change any "
                "more, with another --output if its content is new"
            ) from failure
        progress.advance_to(reader.position)
        tables = {
            "hashes": pa.Table.from_pylist(hashes, _HASHES),
            "words": pa.table([list(words), list(words.values())], schema=_WORDS),
        }
        published = [
            publish_keys(self.job.output, _name(kind, task.number), table.to_reader())
            for kind, table in tables.items()
        ]
        figures = {
            "documents": reader.position.records,
            "first_letters": [letter._asdict() for letter in lost],
        }
        return TaskReport({}, published, figures)

    def _texts_to_learn(self, pair: TrainingPair) -> tuple[str, ...]:
        """The texts of a training pair from which the vocabulary is learned."""
        if self.options.tokenizer:
            return ()
        # With a tokenizer for sources, only targets need the vocabulary.
        if self.options.source_tokenizer:
            return (pair.target,)
        # With --clean none, the tokenizer normalises the source.
        source = pair.source if self.are_normalised else normalise(pair.source)
        return source, pair.target


def _name(kind: str, task: int) -> str:
    """The path in the output of a file that the pass writes."""
    return files.join(TASKS_FOLDER, kind, f"{task:05d}.parquet")


def join_scanned(
    reports: Sequence[TaskReport], job: Job, options: PrepareOptions
) -> None:
    """Writes the tokenizers and the duplicates from the files of all tasks.

    Raises:
      DataError: there are no words to learn from.
    """
    enter_step("join")
    output = job.output
    with open_database() as connection:
        for table, schema in (("words", _WORDS), ("hashes", _HASHES)):
            names = (_name(table, number) for number in range(job.tasks))
            paths = (files.join(output, name) for name in names)
            load_keys(connection, table, schema, paths)
        places = connection.sql(_DUPLICATES).to_arrow_reader(ROWS_AT_ONCE)
        publish_keys(output, DUPLICATES_FILE, places)
        connection.execute(_COUNT)
        most = [vocabulary.MAX_WORDS]
        words = dict(connection.execute(_MOST_FREQUENT, most).fetchall())
        characters = dict(connection.execute(_CHARACTERS).fetchall())
    given = options.tokenizer
    reports = sorted(reports, key=lambda report: report.task)
    letters = chain(*(report.figures["first_letters"] for report in reports))
    target = (
        load_tokenizer(given) if given else _learn(words, characters, options, letters)
    )
    of_sources = options.source_tokenizer
    source = load_tokenizer(of_sources) if of_sources else target
    save_tokenizers(output, TokenizerPair(source, target))


def describe_tokenizers(output: str) -> list[PublishedFile]:
    """Describes the tokenizer files in the output."""
    return [
        describe_file(output, files.join(folder, name), rows=0)
        for folder in (TOKENIZER_FOLDER, SOURCE_TOKENIZER_FOLDER)
        if holds_tokenizer(files.join(output, folder))
        for name in tokenizer_files(files.join(output, folder))
    ]


def _learn(
    words: Mapping[str, int],
    characters: Mapping[str, int],
    options: PrepareOptions,
    letters: Iterable[Mapping[str, Any]],
) -> Tokenizer:
    """Learns a tokenizer from words and their characters; if there are none, the dead
    letters may explain why.
    """
    if not words:
        readable = " that ROUGE can read, for --oracle_sentences," * bool(
            options.oracle_sentences
        )
        raise DataError(
            "the corpus has no training documents with a text and "
            f"{options.target}{readable} to learn a vocabulary from; check "
            "--article_field, --highlights_field and --split, or name a --tokenizer"
            + name_first(letters)
        )
    pieces = vocabulary.learn(
        words,
        size=options.vocabulary_size,
        lower_case=options.lower_case,
        characters=characters,
    )
    return Tokenizer(pieces, lower_case=options.lower_case)


def read_duplicates(job: Job, task: int) -> set[int]:
    """The records of a task whose article occurs earlier in the corpus."""
    table = read_keys_of_task(files.join(job.output, DUPLICATES_FILE), task)
    return {*map(record_of, table.column("place").to_pylist())}
