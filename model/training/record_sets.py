"""The record sets that a training reads: one, or several in given proportions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.model.records.dataset import DatasetInfo, load_dataset
from precis.model.tokenization.folder import Tokenizers, load_tokenizers
from precis.model.training.input_batches import check_shards
from precis.model.training.mixture import Part, check_mixture


class RecordSets(NamedTuple):
    """Record sets whose token ids mean the same; the first is the one that is validated
    on.

    Attributes:
      folders: what `precis prepare` wrote.
      infos: what each says of itself.
      weights: the proportions of their documents.
      tokenizers: of all of them.
    """

    folders: tuple[str, ...]
    infos: tuple[DatasetInfo, ...]
    weights: tuple[float, ...]
    tokenizers: Tokenizers

    @property
    def task_prefixes(self) -> tuple[str, ...]:
        """What stands before the articles of each set, each text once."""
        return tuple(dict.fromkeys(info.task_prefix for info in self.infos))

    @property
    def identity(self) -> Any:
        """What a training with them depends on."""
        first, *others = (info.fingerprint for info in self.infos)
        return (
            {"sets": [first, *others], "weights": list(self.weights)}
            if others
            else first
        )

    def parts(self) -> list[Part]:
        """The sets as `epoch_batches` mixes them; none where there is one."""
        if len(self.infos) == 1:
            return []
        pairs = zip(self.infos, self.weights, strict=True)
        return [
            Part(len(info.splits["train"]), info.records("train"), weight)
            for info, weight in pairs
        ]

    def shards(self, *, staging: str) -> list[str]:
        """The local paths of all training shards, checked; the arguments and errors are
        those of `check_shards`.
        """
        pairs = enumerate(zip(self.folders, self.infos, strict=True))
        return [
            path
            for number, (folder, info) in pairs
            for path in check_shards(
                folder, info, "train", staging=files.join(staging, str(number))
            )
        ]

    def limit(self, name: str) -> int:
        """The least of the sets' `max_source_tokens` or `max_target_tokens`."""
        return min(getattr(info, name) for info in self.infos)


def open_records(folders: Sequence[str], weights: Sequence[float] = ()) -> RecordSets:
    """Opens record sets that are trained on together.

    Args:
      folders: what `precis prepare` wrote.
      weights: the proportions of their documents; without them, each set counts by its
          size.

    Raises:
      UsageError: a folder holds no records, or the sets cannot be mixed.
      DataError: a folder is unfinished or damaged.
    """
    infos = [load_dataset(folder) for folder in folders]
    check_mixture(infos, folders)
    if weights and (len(weights) != len(folders) or min(weights) <= 0):
        listed = ", ".join(f"{weight:g}" for weight in weights)
        raise UsageError(
            f"--mixture gives each of the {len(folders)} record sets a number above 0, not {listed}; {folders[0]} is the first"
        )
    own = weights or [max(info.records("train"), 1) for info in infos]
    return RecordSets(
        tuple(folders), tuple(infos), tuple(own), load_tokenizers(folders[0])
    )
