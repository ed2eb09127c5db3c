"""The first pass of `precis prepare`: word counts -> vocabulary, content hashes ->
duplicates.

    scan   task of the corpus -> _tasks/pairs/00003.arrow      its training pairs
                              -> _tasks/words/00003.parquet    how often words occur
                              -> _tasks/hashes/00003.parquet   places of its articles
    join   all of these       -> tokenizer/, source_tokenizer/
                              -> _tasks/duplicates.parquet     places of duplicates

DuckDB joins the files of all tasks, and writes to a temporary folder what does not fit
its memory.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from precis.model import files
from precis.model.config import SENTENCE_PAIRS
from precis.model.errors import DataError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.progress.counters import enter_step
from precis.model.rouge import ROUGE_SCORE, variant_of
from precis.model.text.article import Article
from precis.model.text.chunks import chunk_lists
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
from precis.model.tokenization.wordpiece import Tokenizer, show_line_breaks
from precis.pipelines.corpus.corpus import read_task
from precis.pipelines.corpus.dead_letters import (
    DeadLetterWriter,
    name_first,
    read_letters,
)
from precis.pipelines.corpus.listing import groups_of
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import DeadLetter, FileError, Task
from precis.pipelines.engines.tasks import TaskReport, TaskWorker
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.pair_files import CHUNKS, PairRow, pairs_name
from precis.pipelines.prepare.training_pairs import TrainingPair, read_pairs
from precis.pipelines.run.accounts import count_by_file
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
from precis.pipelines.run.result_files import (
    DEAD_LETTERS_FOLDER,
    PublishedFile,
    describe_file,
)

TRAIN_SPLIT = "train"
TEXTS = ("source", "target")
_SHOWN_DOCUMENTS = 64  # documents between two updates of the display
_BATCH_CHARACTERS = 4 << 20  # of the texts that are split or encoded at once
_ZSTD = pa.ipc.IpcWriteOptions(compression="zstd")
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
FROM (SELECT unnest(string_split(word, '')) AS character, count FROM counts)
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

    @property
    def learned(self) -> tuple[str, ...]:
        """The texts of a training pair from which the vocabulary is learned."""
        if self.options.tokenizer:
            return ()
        # With a tokenizer for sources, only targets need the vocabulary.
        return ("target",) if self.options.source_tokenizer else TEXTS

    def progress_size(self, task: Task) -> int:
        """The size of the task in bytes of the corpus."""
        return task.size_bytes


class ScanWorker(PassWorker):
    """Reads one task, and writes its training pairs, content hashes and word counts."""

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the files of a task. The report accounts for the records without a
        training pair; the second pass accounts for the others.

        Raises:
          DataError: a file of the task has changed or cannot be read. The job cannot
              continue, because vocabulary and duplicates depend on every file.
        """
        reader = read_task(task, self.corpus)
        hashes: list[dict[str, Any]] = []
        counts: list[pa.Table] = []
        used, skipped, reasons = (Counter[str]() for _ in range(3))
        rows = 0

        def pairs() -> Iterator[tuple[PairRow, TrainingPair]]:
            for record, article in enumerate(reader):
                if record % _SHOWN_DOCUMENTS == 0:
                    progress.advance_to(reader.position)
                if isinstance(article, DeadLetter):
                    dead_letters.write(article)
                    continue
                found = read_pairs(article, self.options)
                if isinstance(found, str):
                    skipped[article.document.source_file] += 1
                    reasons[found] += 1
                    continue
                used[article.document.source_file] += 1
                digest = bytes.fromhex(article.content_sha256)[:16]
                hashes.append({"hash": digest, "place": place_of(task.number, record)})
                for number, pair in enumerate(found):
                    row = self._row(article, pair, number)
                    position = tuple(reader.position)
                    yield row._replace(record=record, position=position), pair

        name = pairs_name(task.number)
        try:
            with (
                files.write_aside(files.join(self.job.output, name)) as file,
                pa.ipc.new_stream(file, self._schema, options=_ZSTD) as stream,
            ):
                for group in groups_of(pairs(), _characters, _BATCH_CHARACTERS):
                    batch = self._batch(group)
                    stream.write_batch(batch)
                    rows += len(group)
                    is_learned = [row.split == TRAIN_SPLIT for row, _ in group]
                    for each in self.learned:
                        counts.append(vocabulary.count_chunks(batch[each], is_learned))
        except FileError as failure:
            raise DataError(
                f"{failure}; run the command again once the file does not change any "
                "more, with another --output if its content is new"
            ) from failure
        progress.advance_to(reader.position)
        words = vocabulary.count_words_of_chunks(counts)
        tables = {
            "hashes": pa.Table.from_pylist(hashes, _HASHES),
            "words": pa.table([list(words), list(words.values())], schema=_WORDS),
        }
        published = [
            publish_keys(self.job.output, _name(kind, task.number), table.to_reader())
            for kind, table in tables.items()
        ]
        published.append(describe_file(self.job.output, name, rows=rows))
        figures = {"documents": reader.position.records}
        accounts = count_by_file(
            read=reader.read - used,
            skipped=skipped,
            other_split=reader.other_split,
            not_selected=reader.not_selected,
        )
        return TaskReport(accounts, published, figures, reasons)

    def _row(self, article: Article, pair: TrainingPair, number: int) -> PairRow:
        """The row of the pair of an article with this number."""
        document, language, labelled = article.document, article.language, None
        has_numbers = self.options.target in SENTENCE_PAIRS
        if count := self.options.oracle_sentences:
            texts = article.sentence_lines
            picks = oracle_sentences(texts, pair.target, count, language)
            labelled = texts, [pick.place for pick in picks]
        # Only the letters show that a text of unknown language is not English.
        if not language and variant_of(None, pair.target) != ROUGE_SCORE:
            language = "und"
        return PairRow(
            document.document_id + (f"#{number}" if has_numbers else ""),
            pair.target,
            labelled,
            language,
            document.split,
            document.source_file,
        )

    @property
    def _schema(self) -> pa.Schema:
        """The schema of the file of training pairs."""
        types = {
            name: CHUNKS if name in self.learned else pa.string() for name in TEXTS
        }
        return pa.schema({"row": pa.binary(), **types})

    def _batch(self, group: Sequence[tuple[PairRow, TrainingPair]]) -> pa.RecordBatch:
        """The rows of some training pairs."""
        columns = [pa.array([orjson.dumps(tuple(row)) for row, _ in group])]
        for name in TEXTS:
            texts = [getattr(pair, name) for _, pair in group]
            if name in self.learned:
                columns.append(chunk_lists(list(map(self._shown, texts))))
            else:
                columns.append(pa.array(texts))
        return pa.record_batch(columns, schema=self._schema)

    def _shown(self, text: str) -> str:
        """A text to learn from, with visible line breaks."""
        # With --clean none, the tokenizer normalises the source.
        text = text if self.are_normalised else normalise(text)
        if "\n" not in text and not self.options.lower_case:
            return text
        return show_line_breaks(text, lower_case=self.options.lower_case)


def _characters(of_pair: tuple[PairRow, TrainingPair]) -> int:
    return len(of_pair[1].source) + len(of_pair[1].target)


def _name(kind: str, task: int) -> str:
    """The path in the output of a file that the pass writes."""
    return files.join(TASKS_FOLDER, kind, f"{task:05d}.parquet")


def join_scanned(job: Job, options: PrepareOptions) -> None:
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
    target = load_tokenizer(given) if given else _learn(words, characters, options)
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
            + name_first(read_letters(files.join(options.output, DEAD_LETTERS_FOLDER)))
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
