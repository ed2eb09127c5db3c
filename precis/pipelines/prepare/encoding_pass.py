"""The second pass of `precis prepare`: the training pairs of a task become TFRecord
shards, one per split, in corpus order.
"""

import collections
import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import DataError
from precis.model.records.dataset import shard_name
from precis.model.records.example import Example, LabelledSentences, frame, serialise
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.source import encode_sources, encode_targets
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.task import Position, Task
from precis.pipelines.engines.tasks import TaskReport
from precis.pipelines.prepare.pair_files import PairRow, pairs_name, texts_of
from precis.pipelines.prepare.vocabulary_pass import PassWorker, read_duplicates
from precis.pipelines.run.accounts import count_by_file
from precis.pipelines.run.progress import TaskProgress
from precis.pipelines.run.result_files import PublishedFile, describe_file

# Each split is an open file. With more, --split_field surely names a wrong field.
MAX_SPLITS = 64


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
        """Writes the shards of a task, from the training pairs of the first pass."""
        del dead_letters
        duplicates = read_duplicates(self.job, task.number)
        outcomes: dict[str, Counter[str]] = collections.defaultdict(Counter)
        source_lengths, target_lengths = Counter[int](), Counter[int]()
        tokens: Counter[str] = Counter()
        last, position = -1, Position()
        with (
            ShardWriter(self.options.output, task.number, self.job.tasks) as shards,
            files.open_read(
                files.join(self.job.output, pairs_name(task.number))
            ) as file,
        ):
            for batch in pa.ipc.open_stream(file):
                rows = [PairRow(*orjson.loads(row.as_py())) for row in batch["row"]]
                for row in rows:
                    # A document may have several pairs.
                    if row.record != last:
                        is_duplicate = row.record in duplicates
                        outcome = "duplicates" if is_duplicate else "written"
                        outcomes[outcome][row.source_file] += 1
                        last, position = row.record, Position(*row.position)
                is_kept = [row.record not in duplicates for row in rows]
                rows = list(itertools.compress(rows, is_kept))
                batch = batch if all(is_kept) else batch.filter(pa.array(is_kept))
                examples, lengths = self._encode(rows, batch)
                shards.write([row.split for row in rows], serialise(examples))
                source_lengths.update(each.source_tokens for each in examples)
                target_lengths.update(lengths)
                tokens.update(self._count_tokens(examples))
                whole = sum(each.source_tokens for each in examples) + sum(lengths)
                progress.add("tokens", whole)
                progress.advance_to(position)
        return TaskReport(
            file_counts=count_by_file(
                read=outcomes["written"] + outcomes["duplicates"], **outcomes
            ),
            files=shards.published(),
            figures={
                "documents": position.records,
                "source_lengths": source_lengths,
                "target_lengths": target_lengths,
                "record_tokens": tokens,
            },
        )

    def _encode(
        self, rows: Sequence[PairRow], batch: pa.RecordBatch
    ) -> tuple[list[Example], list[int]]:
        """The records of a batch, and the length of each target before the cut."""
        sources = encode_sources(
            self._tokenizers.source,
            texts_of(batch["source"]),
            max_source_tokens=self.options.max_source_tokens,
            are_normalised=self.are_normalised or "source" in self.learned,
        )
        targets = encode_targets(self._tokenizers.target, texts_of(batch["target"]))
        examples = [
            Example(
                row.document_id,
                source.ids,
                target[: self.options.max_target_tokens],
                source.source_tokens,
                row.highlights,
                row.labelled and LabelledSentences(*row.labelled),
                row.language,
            )
            for row, source, target in zip(rows, sources, targets, strict=True)
        ]
        return examples, list(map(len, targets))

    def _count_tokens(self, examples: Sequence[Example]) -> dict[str, int]:
        """The number of tokens in records, and of unknown tokens among them."""
        counts: dict[str, int] = {}
        for side in ("source", "target"):
            tokenizer = getattr(self._tokenizers, side)
            ids = [getattr(example, side) for example in examples]
            counts[side] = sum(map(len, ids))
            joined = np.concatenate([*ids, np.zeros(0, np.int32)])
            counts[f"unknown_{side}"] = int((joined == tokenizer.unknown_id).sum())
        return counts


class ShardWriter(contextlib.ExitStack):
    """The shards of one task, one per split, published together when the block ends."""

    def __init__(self, output: str, task: int, tasks: int) -> None:
        super().__init__()
        self._output = output
        self._task = task
        self._tasks = tasks
        self._files: dict[str, Any] = {}
        self._records: Counter[str] = Counter()

    def write(self, splits: Sequence[str], records: Sequence[bytes]) -> None:
        """Appends each record to the shard of its split."""
        for split, record in zip(splits, records, strict=True):
            if split not in self._files:
                self._open(split)
            self._files[split].write(frame(record))
        self._records.update(splits)

    def _open(self, split: str) -> None:
        if len(self._files) == MAX_SPLITS:
            raise DataError(
                f"the corpus has more than {MAX_SPLITS} splits, such as {split!r}; "
                "check --split_field"
            )
        path = files.join(self._output, self._name(split))
        self._files[split] = self.enter_context(files.write_aside(path))

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
