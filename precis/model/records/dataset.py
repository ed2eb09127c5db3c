"""dataset.json: the description of a folder of records.

dataset.json                     this description
_SUCCESS                         written last; without it the folder is unfinished
tokenizer/                       the tokenizer of targets, and usually of sources
source_tokenizer/                the tokenizer of sources, if it is a different one
train-00000-of-00016.tfrecord    a shard of a split
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.finished import success_damage
from precis.model.records.example import FEATURES
from precis.model.tokenization.folder import open_tokenizers

FORMAT_VERSION = 1
DATASET_FILE = "dataset.json"
# The types of fields that are checked when a description is read.
_FIELDS = {
    "features": dict,
    "splits": dict,
    "counts": dict,
    "max_source_tokens": int,
    "max_target_tokens": int,
    "tokenizer_fingerprint": str,
    "fingerprint": str,
}
_AGAIN = "run the same `precis prepare` command again"


@dataclasses.dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split.

    Attributes:
      file: its name within the folder.
      records: the number of records.
      bytes: the size of the file.
      sha256: the checksum of the file, in hexadecimal.
    """

    file: str
    records: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Statistics of the lengths of sources or targets, in tokens before the cut.

    Attributes:
      mean, max: over all records.
      deciles: the percentiles 0, 10, 20, ..., 100 of the lengths.
      cut: the number of records that were longer than the maximum and were cut.
    """

    mean: float
    max: int
    deciles: Sequence[int]
    cut: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """The content of dataset.json.

    Attributes:
      format_version: the format of the description and the records.
      features: name and type of every feature of a record.
      splits: the shards of each split, in order.
      source_lengths, target_lengths: the lengths in all records.
      unknown_shares: the share of unknown tokens among the tokens of all sources and
          targets in the records, which are cut, as {"source": 0.002, "target": 0.0}.
      counts: the number of documents read, written, duplicates, failed and skipped;
          and of skipped documents by reason.
      failures: the number of dead letters by stage and reason.
      sources: the counts of each corpus file that lost documents.
      files: the files of the tokenizers, each with its name, bytes and sha256.
      dead_letters: the files of dead letters, in the same form.
      max_source_tokens, max_target_tokens: the lengths at which sources and targets
          are cut.
      seed: the seed of the splits.
      task_prefix: the text before every article.
      target: the part of the reference that is the target, as `target` of
          `precis prepare`.
      tokenizer_fingerprint: the fingerprint of the tokenizer of targets.
      source_tokenizer_fingerprint: the fingerprint of the tokenizer of sources; None if
          it is the same.
      fingerprint: the hash of everything that the records depend on. Equal fingerprints
          mean equal bytes.
      provenance: the command that made the records, its flags and its other inputs.
    """

    format_version: int = FORMAT_VERSION
    features: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: dict(FEATURES)
    )
    splits: Mapping[str, tuple[Shard, ...]]
    source_lengths: Lengths
    target_lengths: Lengths
    unknown_shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    counts: Mapping[str, int]
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    sources: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    files: Sequence[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    dead_letters: Sequence[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    max_source_tokens: int
    max_target_tokens: int
    seed: int
    task_prefix: str = ""
    target: str = "highlights"
    tokenizer_fingerprint: str
    source_tokenizer_fingerprint: str | None = None
    fingerprint: str
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def records(self, split: str) -> int:
        """The number of records of a split.

        Raises:
          UsageError: the records do not have this split.
        """
        if split not in self.splits:
            raise UsageError(
                f"these records have no split {split!r}; their splits are "
                f"{', '.join(sorted(self.splits))}"
            )
        return sum(shard.records for shard in self.splits[split])

    def to_json(self) -> dict[str, Any]:
        """The content of dataset.json."""
        content = dataclasses.asdict(self)
        content["splits"] = {
            split: {"records": self.records(split), "shards": shards}
            for split, shards in content["splits"].items()
        }
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "DatasetInfo":
        """The description from the result of `to_json`.

        Raises:
          KeyError, TypeError, ValueError: a field is missing, unknown or has the wrong
              type.
        """
        files.check_fields(content, _FIELDS)
        splits = {
            split: tuple(Shard(**shard) for shard in entry["shards"])
            for split, entry in content["splits"].items()
        }
        lengths = {
            name: Lengths(**content[name])
            for name in ("source_lengths", "target_lengths")
        }
        return cls(**{**content, "splits": splits, **lengths})

    def facts(self) -> dict[str, Any]:
        """The facts about the records for a model card, as JSON; they do not depend on
        the folder.
        """
        lengths = {
            side: {
                "mean": values.mean,
                "longest": values.max,
                "median": values.deciles[5],
                "records cut": values.cut,
                "limit": limit,
            }
            for side, values, limit in (
                ("source tokens", self.source_lengths, self.max_source_tokens),
                ("target tokens", self.target_lengths, self.max_target_tokens),
            )
        }
        return {
            "corpus": str(self.provenance.get("flags", {}).get("corpus", "")),
            "records": {split: self.records(split) for split in sorted(self.splits)},
            "documents": dict(sorted(self.counts.items())),
            **lengths,
            "target": self.target,
            "task prefix": self.task_prefix,
            "fingerprint": self.fingerprint,
        }


def summarise_lengths(
    records_of_length: Mapping[int, int], *, limit: int | None = None
) -> Lengths:
    """The statistics of lengths.

    Args:
      records_of_length: the number of records of each length, in tokens; if empty, all
          statistics are zero.
      limit: the length at which records were cut; None if none was cut.
    """
    total = sum(records_of_length.values())
    if not total:
        return Lengths(mean=0.0, max=0, deciles=[0] * 11)
    lengths = np.array(sorted(records_of_length))
    counts = np.array([records_of_length[length] for length in lengths.tolist()])
    # The nearest rank, counted from 1, without interpolation.
    ranks = [-(-total * tenth // 10) for tenth in range(11)]
    deciles = lengths[np.searchsorted(np.cumsum(counts), ranks)].tolist()
    return Lengths(
        mean=round(int(lengths @ counts) / total, 3),
        max=int(lengths[-1]),
        deciles=deciles,
        cut=0 if limit is None else int(counts[lengths > limit].sum()),
    )


def shard_name(split: str, index: int, count: int) -> str:
    """The file name of a shard, as in train-00000-of-00016.tfrecord."""
    return f"{split}-{index:05d}-of-{count:05d}.tfrecord"


def load_dataset(folder: str) -> DatasetInfo:
    """Reads the description of a folder of records and checks the folder.

    Raises:
      UsageError: the folder holds no records.
      DataError: the folder is unfinished, has another format version, or its tokenizer
          is not the one that encoded the records.
    """
    path = files.join(folder, DATASET_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: not a folder of records (no {DATASET_FILE}); name the "
            "`output=` of `precis prepare`"
        )
    way_out = f"{_AGAIN}, which repairs it"
    fields = {"format_version": int}
    content = files.read_object(path, way_out=way_out, fields=fields)
    damaged, problem = success_damage(path, content)
    if damaged:
        raise DataError(f"{files.join(folder, damaged)}: {problem}; {way_out}")
    with files.naming_damage(path, way_out=way_out):
        if content["format_version"] != FORMAT_VERSION:
            raise ValueError(
                f"format_version is {content['format_version']}, but this precis "
                f"reads {FORMAT_VERSION}"
            )
        info = DatasetInfo.from_json(content)
    open_tokenizers(folder, content, way_out=f"restore that folder or {way_out}")
    return info


def require_oracle(info: DatasetInfo, folder: str) -> None:
    """Checks that records hold oracle labels.

    Raises:
      UsageError: they do not.
    """
    if "oracle" not in info.features:
        raise UsageError(
            f"{folder}: these records have no oracle labels; prepare them with "
            "`oracle_sentences=5`"
        )
