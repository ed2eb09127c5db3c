"""The second pass of `precis prepare`: each task becomes TFRecord shards, one a split.

Documents are encoded some hundred at a time and written in the order of the corpus.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import DataError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.dataset import shard_name
from precis.model.records.example import Example, LabelledSentences, serialise
from precis.model.records.tfrecord import frame
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.source import encode_sources
from precis.model.tokenization.target import encode_targets
from precis.pipelines.corpus.dead_letters import (
    LetterFile,
    empty_article_letter,
    unreadable_letter,
)
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import read_task
from precis.pipelines.corpus.task import EmptyArticle, Task, Unreadable
from precis.pipelines.corpus.task_reader import TaskReader
from precis.pipelines.engines.tasks import (
    TaskResult,
    TaskWorker,
)
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.targets import SENTENCE_PAIRS
from precis.pipelines.prepare.chosen_sources import SourceChooser
from precis.pipelines.prepare.training_pairs import (
    Skipped,
    TrainingPair,
    read_pairs,
    sources_are_normalised,
)
from precis.pipelines.prepare.vocabulary_buckets import read_duplicates
from precis.pipelines.prepare.vocabulary_pass import read_scan
from precis.pipelines.run.accounts import source_counts
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile, describe_file

# Each split is an open file. A corpus with more has a --split_field that names none.
MAX_SPLITS = 64
_WINDOW_DOCUMENTS = 256  # encoded in one call


class TrainingDocument(NamedTuple):
    """An article and texts that a network learns from.

    Attributes:
      article: the document.
      pair: the texts.
      number: of the pair among those of the article; None where there is one for each.
    """

    article: Article
    pair: TrainingPair
    number: int | None = None

    @property
    def record_id(self) -> str:
        """The id of the record: the document's, and the number of the pair."""
        document_id = self.article.document.document_id
        return document_id if self.number is None else f"{document_id}#{self.number}"


class Duplicate(NamedTuple):
    """A document whose article stands earlier in the corpus."""

    document_id: str


class EncodedDocument(NamedTuple):
    """A record of a split.

    Attributes:
      split: the document's split.
      example: the record.
      target_tokens: the length of the target before the cut.
    """

    split: str
    example: Example
    target_tokens: int


class LengthCounts(NamedTuple):
    """Records by their length in tokens before the cut."""

    source_lengths: Mapping[int, int]
    target_lengths: Mapping[int, int]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "LengthCounts":
        """The counts of a receipt, zero where it is empty; JSON has made its keys
        strings.
        """
        lengths = {
            name: {int(length): n for length, n in content.get(name, {}).items()}
            for name in cls._fields
        }
        return cls(**lengths)


class EncodeWorker(TaskWorker):
    """Turns one task into shards."""

    def __init__(
        self, corpus: CorpusOptions, options: PrepareOptions, job: Job
    ) -> None:
        self._corpus = corpus
        self._options = options
        self._job = job
        self._are_normalised = sources_are_normalised(corpus, options)
        self._shared = Shared()

    def progress_size(self, task: Task) -> int:
        """Progress is counted in bytes of the corpus."""
        return task.size_bytes

    def load(self) -> None:
        """Loads the tokenizers."""
        import_tensorflow()
        self._tokenizers: TokenizerPair = self._shared.acquire(
            lambda: load_tokenizers(self._options.output)
        )
        self._chooser = None
        if self._options.extractive:
            self._chooser = SourceChooser(self._options, self._tokenizers.source)
        self._buckets = read_scan(self._job, {"buckets": int})["buckets"]

    def run(
        self, task: Task, progress: TaskProgress, letters: LetterFile
    ) -> TaskResult[LengthCounts]:
        """Writes the shards of a task."""
        counts: Counter[str] = Counter()
        outcomes: dict[str, Counter[str]] = {
            name: Counter() for name in ("written", "duplicates", "skipped")
        }
        window: list[TrainingDocument] = []
        with ShardWriter(self._options.output, task.number, self._job.tasks) as shards:
            reader = read_task(task, self._corpus)
            for source_file, outcome in self._outcomes(task, reader, letters):
                if isinstance(outcome, Skipped):
                    counts[outcome.reason] += 1
                    outcomes["skipped"][source_file] += 1
                elif isinstance(outcome, Duplicate):
                    outcomes["duplicates"][source_file] += 1
                else:
                    window += outcome
                    outcomes["written"][source_file] += 1
                if len(window) >= _WINDOW_DOCUMENTS:
                    progress.add_tokens(shards.write(self._encode(window)))
                    progress.advance_to(reader.position)
                    window = []
            progress.add_tokens(shards.write(self._encode(window)))
            progress.advance_to(reader.position)
        return TaskResult(
            sources=source_counts(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **outcomes,
            ),
            counts=counts,
            files=shards.published,
            figures=shards.lengths,
        )

    def _outcomes(
        self, task: Task, reader: TaskReader, letters: LetterFile
    ) -> Iterator[tuple[str, list[TrainingDocument] | Skipped | Duplicate]]:
        """What becomes of each record that is no dead letter, with its source file."""
        duplicates = read_duplicates(
            self._job.output, task.number, buckets=self._buckets
        )
        for position, article in enumerate(reader):
            if isinstance(article, Unreadable):
                letters.write(unreadable_letter(article))
                continue
            if isinstance(article, EmptyArticle):
                letters.write(empty_article_letter(article))
                continue
            source_file = article.document.source_file
            pairs = read_pairs(article, self._options)
            if isinstance(pairs, Skipped):
                yield source_file, pairs
            elif position in duplicates:
                yield source_file, Duplicate(article.document.document_id)
            elif self._options.target == SENTENCE_PAIRS:
                yield (
                    source_file,
                    [
                        TrainingDocument(article, pair, number)
                        for number, pair in enumerate(pairs)
                    ],
                )
            else:
                yield source_file, [TrainingDocument(article, pair) for pair in pairs]

    def _encode(self, window: list[TrainingDocument]) -> Iterator[EncodedDocument]:
        """The records of some documents."""
        sources = encode_sources(
            self._tokenizers.source,
            (document.pair.source for document in window),
            max_source_tokens=self._options.max_source_tokens,
            are_normalised=self._are_normalised,
        )
        targets = encode_targets(
            self._tokenizers.target, (document.pair.target for document in window)
        )
        for document, source, target in zip(window, sources, targets, strict=True):
            article, pair, _ = document
            if self._chooser is not None:
                source = self._chooser.choose(article, source)
            example = Example(
                document.record_id,
                source.ids,
                target[: self._options.max_target_tokens],
                source.source_tokens,
                pair.target,
                self._label(article, pair),
            )
            yield EncodedDocument(article.document.split, example, len(target))

    def _label(self, article: Article, pair: TrainingPair) -> LabelledSentences | None:
        """The sentences as `precis summarize` cuts them, and those of the oracle."""
        if not self._options.oracle_sentences:
            return None
        texts = article.sentence_lines
        picks = oracle_sentences(texts, pair.target, self._options.oracle_sentences)
        return LabelledSentences(texts, tuple(pick.place for pick in picks))


class ShardWriter(contextlib.ExitStack):
    """The shards of one task, one a split, published together when the block ends."""

    def __init__(self, output: str, task: int, tasks: int) -> None:
        super().__init__()
        self._output = output
        self._task = task
        self._tasks = tasks
        self._files: dict[str, Any] = {}
        self._records: Counter[str] = Counter()
        self._source_lengths: Counter[int] = Counter()
        self._target_lengths: Counter[int] = Counter()

    def write(self, documents: Iterable[EncodedDocument]) -> int:
        """Appends each record to the shard of its split.

        Returns:
          The tokens of their sources and targets before the cut.
        """
        tokens = 0
        for split, example, target_tokens in documents:
            self._shard(split).write(frame(serialise(example)))
            self._records[split] += 1
            self._source_lengths[example.source_tokens] += 1
            self._target_lengths[target_tokens] += 1
            tokens += example.source_tokens + target_tokens
        return tokens

    def _shard(self, split: str) -> Any:
        """The open file of a split."""
        if split not in self._files:
            if len(self._files) == MAX_SPLITS:
                raise DataError(
                    f"the corpus has more than {MAX_SPLITS} splits, {split!r} among "
                    "them; check --split_field"
                )
            path = files.join(self._output, self._name(split))
            self._files[split] = self.enter_context(files.write_aside(path))
        return self._files[split]

    def _name(self, split: str) -> str:
        return shard_name(split, self._task, self._tasks)

    @property
    def records(self) -> int:
        """Records written so far."""
        return self._records.total()

    @property
    def lengths(self) -> LengthCounts:
        """The lengths of the records written so far."""
        return LengthCounts(dict(self._source_lengths), dict(self._target_lengths))

    @property
    def published(self) -> list[PublishedFile]:
        """The file of each split; they are there only after the block."""
        published: list[PublishedFile] = []
        for split in sorted(self._files):
            rows = self._records[split]
            file = describe_file(self._output, self._name(split), rows=rows)
            published.append({"split": split, **file})
        return published
