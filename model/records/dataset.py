"""`dataset.json`: the description of a folder of records."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.example import FEATURES
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    load_tokenizers,
)

FORMAT_VERSION = 1
DATASET_FILE, SUCCESS_FILE = "dataset.json", "_SUCCESS"


def require_oracle(info: "DatasetInfo", folder: str) -> None:
    """Checks that records hold oracle labels.

    Raises:
      UsageError: they do not.
    """
    if "oracle" not in info.features:
        raise UsageError(
            f"{folder}: these records hold no oracle labels; prepare them with --oracle_sentences 5"
        )


class Shard(NamedTuple):
    """One TFRecord file of a split; `file` is its name within the folder."""

    file: str
    records: int
    bytes: int
    sha256: str


class Lengths(NamedTuple):
    """How long the sequences of a record set are, in tokens before the cut.

    Attributes:
      mean, max: over all records.
      deciles: 11 numbers: the least, the length that 10 % of the records do not exceed,
          20 %, ..., the greatest.
    """

    mean: float
    max: int
    deciles: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """The content of `dataset.json`: what the records are, where they are, and what
    they were made from.
    """

    format_version: int = FORMAT_VERSION
    # Name and type of every feature of a record.
    features: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: dict(FEATURES)
    )
    # The shards of each split, in order.
    splits: Mapping[str, tuple[Shard, ...]]
    source_lengths: Lengths
    target_lengths: Lengths
    # Documents by what became of them: read, written, duplicates, failed, skipped; and
    # why they were skipped.
    counts: Mapping[str, int]
    # Dead letters by stage and reason.
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    max_source_tokens: int
    max_target_tokens: int
    # The seed of the splits.
    seed: int
    # What stands before every article, and what of the reference is the target: a name
    # of `precis prepare --target`.
    task_prefix: str = ""
    target: str = "highlights"
    # Of the tokenizer that encoded the records; it lies in the same folder.
    tokenizer_fingerprint: str
    # Of the one that encoded the sources, where it is another.
    source_tokenizer_fingerprint: str | None = None
    # Of everything the records depend on; equal fingerprints mean equal bytes.
    fingerprint: str

    def records(self, split: str) -> int:
        """The number of records of a split.

        Raises:
          UsageError: there is no such split.
        """
        if split not in self.splits:
            raise UsageError(
                f"there is no split {split!r} in these records; they have {', '.join(sorted(self.splits))}"
            )
        return sum(shard.records for shard in self.splits[split])

    def to_json(self) -> dict[str, Any]:
        """The content of `dataset.json`."""
        content = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        splits = {
            split: [shard._asdict() for shard in shards]
            for split, shards in self.splits.items()
        }
        content["splits"] = {
            split: {"records": self.records(split), "shards": shards}
            for split, shards in splits.items()
        }
        for name in ("source_lengths", "target_lengths"):
            content[name] = {
                **content[name]._asdict(),
                "deciles": list(content[name].deciles),
            }
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "DatasetInfo":
        """The description that `to_json` gave; KeyError and TypeError where a field is
        missing or unknown.
        """
        values = dict(content)
        values["splits"] = {
            split: tuple(Shard(**shard) for shard in entry["shards"])
            for split, entry in content["splits"].items()
        }
        for name in ("source_lengths", "target_lengths"):
            values[name] = Lengths(
                **{**content[name], "deciles": tuple(content[name]["deciles"])}
            )
        return cls(**values)


def summarise_lengths(records_of_length: Mapping[int, int]) -> Lengths:
    """The statistics of lengths from how many records have each; all zero where there
    are no records.
    """
    total = sum(records_of_length.values())
    if not total:
        return Lengths(mean=0.0, max=0, deciles=(0,) * 11)
    lengths = np.array(sorted(records_of_length))
    cumulative = np.cumsum([records_of_length[length] for length in lengths.tolist()])
    ranks = [
        -(-total * tenth // 10) for tenth in range(11)
    ]  # Nearest rank, counted from 1: no interpolation.
    deciles = lengths[np.searchsorted(cumulative, ranks)].tolist()
    mean = sum(length * count for length, count in records_of_length.items()) / total
    return Lengths(mean=round(mean, 3), max=int(lengths[-1]), deciles=tuple(deciles))


def shard_name(split: str, index: int, count: int) -> str:
    """The file name of a shard, as in `train-00000-of-00016.tfrecord`."""
    return f"{split}-{index:05d}-of-{count:05d}.tfrecord"


def load_dataset(folder: str) -> DatasetInfo:
    """Reads the description of a folder of records and checks that the folder is
    complete and belongs together.

    Raises:
      UsageError: the folder holds no records.
      DataError: the folder is unfinished, of another format version, or a tokenizer is
          not the one that encoded the records.
    """
    path = files.join(folder, DATASET_FILE)
    again = "run the same `precis prepare` command again"
    if not files.exists(path):
        raise UsageError(
            f"{folder}: there are no records here (no {DATASET_FILE}); name the folder that `precis prepare` wrote"
        )
    if not files.exists(files.join(folder, SUCCESS_FILE)):
        raise DataError(
            f"{folder}: unfinished (no {SUCCESS_FILE}); {again}, it goes on where it stopped"
        )
    try:
        content = files.read_json(path)
        version = content["format_version"]
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format_version is {version} and this precis reads {FORMAT_VERSION}; {again}"
            )
        info = DatasetInfo.from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: damaged ({type(error).__name__}: {error}); {again} into an empty folder"
        ) from error
    tokenizers, target = load_tokenizers(folder), info.tokenizer_fingerprint
    for name, found, expected in (
        (TOKENIZER_FOLDER, tokenizers.target, target),
        (
            SOURCE_TOKENIZER_FOLDER,
            tokenizers.source,
            info.source_tokenizer_fingerprint or target,
        ),
    ):
        if found.fingerprint != expected:
            raise DataError(
                f"{files.join(folder, name)}: fingerprint {found.fingerprint[:12]} is not {expected[:12]}, that of the tokenizer the "
                f"records were encoded with; restore the tokenizer folder or {again} into an empty folder"
            )
    return info
