"""The second pass of `precis prepare`: a task becomes TFRecord shards, one per split.

Some hundred documents are encoded at a time, and written in corpus order.
"""

import collections
import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.config import SENTENCE_PAIRS
from precis.model.errors import DataError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.dataset import shard_name
from precis.model.records.example import Example, LabelledSentences, frame, serialise
from precis.model.rouge import ROUGE_SCORE, variant_of
from precis.model.text.article import Article
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.source import encode_sources, encode_targets
from precis.pipelines.corpus.corpus import read_task
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import DeadLetter, Task
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.prepare.training_pairs import TrainingPair, read_pairs
from precis.pipelines.prepare.vocabulary_pass import PassWorker, read_duplicates
from precis.pipelines.run.accounts import count_by_file
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile, describe_file

# Each split is an open file. With more, --split_field surely names a wrong field.
MAX_SPLITS = 64
_WINDOW_DOCUMENTS = 256  # number of documents that one call encodes


# An article; the texts of a pair; and a suffix of the record's id, the number of the
# pair if the article has several.
TrainingDocument = tuple[Article, TrainingPair, str]


@dataclasses.dataclass
class EncodeWorker(PassWorker):
    """Encodes the documents of a task and writes its shards."""

    shared: Shared = dataclasses.field(default_factory=Shared)

    def load(self) -> None:
        """Loads the tokenizers."""
        self._tokenizers: TokenizerPair = self.shared.acquire(
            lambda: load_tokenizers(self.options.output)
        )

    def run(
        self, task: Task, progress: TaskProgress, dead_letters: DeadLetterWriter
    ) -> TaskReport:
        """Writes the shards of a task."""
        duplicates = read_duplicates(self.job, task.number)
        has_numbers = self.options.target in SENTENCE_PAIRS
        outcomes: dict[str, Counter[str]] = collections.defaultdict(Counter)
        reasons: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        reader = read_task(task, self.corpus)
        window: list[TrainingDocument] = []
        with ShardWriter(self.options.output, task.number, self.job.tasks) as shards:

            def write_window() -> None:
                for split, example, target_tokens in self._encode(window):
                    progress.add("tokens", shards.write(split, example, target_tokens))
                    tokens.update(self._count_tokens(example))
                progress.advance_to(reader.position)
                window.clear()

            for position, article in enumerate(reader):
                if isinstance(article, DeadLetter):
                    dead_letters.write(article)
                    continue
                pairs, outcome = read_pairs(article, self.options), "written"
                if isinstance(pairs, str):
                    reasons[pairs] += 1
                    outcome = "skipped"
                elif position in duplicates:
                    outcome = "duplicates"
                else:
                    for n, pair in enumerate(pairs):
                        window.append((article, pair, f"#{n}" if has_numbers else ""))
                outcomes[outcome][article.document.source_file] += 1
                if len(window) >= _WINDOW_DOCUMENTS:
                    write_window()
            write_window()
        return TaskReport(
            file_counts=count_by_file(
                read=reader.read,
                other_split=reader.other_split,
                not_selected=reader.not_selected,
                **outcomes,
            ),
            counts=reasons,
            files=shards.published(),
            figures={
                "source_lengths": shards.source_lengths,
                "target_lengths": shards.target_lengths,
                "record_tokens": tokens,
            },
        )

    def _encode(
        self, window: Sequence[TrainingDocument]
    ) -> Iterator[tuple[str, Example, int]]:
        """Yields the split, record, and target length before the cut, of each pair."""
        sources = encode_sources(
            self._tokenizers.source,
            (pair.source for _, pair, _ in window),
            max_source_tokens=self.options.max_source_tokens,
            are_normalised=self.are_normalised,
        )
        targets = encode_targets(
            self._tokenizers.target, (pair.target for _, pair, _ in window)
        )
        for document, source, target in zip(window, sources, targets, strict=True):
            article, pair, number = document
            example = Example(
                article.document.document_id + number,
                source.ids,
                target[: self.options.max_target_tokens],
                source.source_tokens,
                pair.target,
                self._label(article, pair),
                _language_of(article, pair),
            )
            yield article.document.split, example, len(target)

    def _count_tokens(self, example: Example) -> dict[str, int]:
        """The number of tokens in a record, and of unknown tokens among them."""
        source, target = self._tokenizers.source, self._tokenizers.target
        return {
            "source": len(example.source),
            "target": len(example.target),
            "unknown_source": int((example.source == source.unknown_id).sum()),
            "unknown_target": int((example.target == target.unknown_id).sum()),
        }

    def _label(self, article: Article, pair: TrainingPair) -> LabelledSentences | None:
        """The sentences, split as by `precis summarize`, with oracle labels."""
        if not self.options.oracle_sentences:
            return None
        texts = article.sentence_lines
        count, language = self.options.oracle_sentences, article.language
        picks = oracle_sentences(texts, pair.target, count, language)
        return LabelledSentences(texts, tuple(pick.place for pick in picks))


def _language_of(article: Article, pair: TrainingPair) -> str | None:
    """The language of a record: `und` if it is not known, but the letters show that it
    is not English.
    """
    is_latin = variant_of(None, pair.target) == ROUGE_SCORE
    return article.language or (None if is_latin else "und")


class ShardWriter(contextlib.ExitStack):
    """The shards of one task, one per split, published together when the block ends.

    Attributes:
      source_lengths, target_lengths: lengths in tokens, before the cut, of the records
          written so far.
    """

    def __init__(self, output: str, task: int, tasks: int) -> None:
        super().__init__()
        self.source_lengths: Counter[int] = Counter()
        self.target_lengths: Counter[int] = Counter()
        self._output = output
        self._task = task
        self._tasks = tasks
        self._files: dict[str, Any] = {}
        self._records: Counter[str] = Counter()

    def write(self, split: str, example: Example, target_tokens: int) -> int:
        """Appends a record to the shard of its split.

        Returns:
          The number of tokens of its source and target before the cut.
        """
        if split not in self._files:
            if len(self._files) == MAX_SPLITS:
                raise DataError(
                    f"the corpus has more than {MAX_SPLITS} splits, such as {split!r}; "
                    "check --split_field"
                )
            path = files.join(self._output, self._name(split))
            self._files[split] = self.enter_context(files.write_aside(path))
        self._files[split].write(frame(serialise(example)))
        self._records[split] += 1
        self.source_lengths[example.source_tokens] += 1
        self.target_lengths[target_tokens] += 1
        return example.source_tokens + target_tokens

    def _name(self, split: str) -> str:
        return shard_name(split, self._task, self._tasks)

    def published(self) -> list[PublishedFile]:
        """The file of each split; it exists only after the block."""
        return [
            {
                "split": split,
                **describe_file(self._output, self._name(split), rows=rows),
            }
            for split, rows in sorted(self._records.items())
        ]
