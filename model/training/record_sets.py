"""The record sets that a training reads: one, or several in given proportions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.model.records.dataset import DatasetInfo, load_dataset
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.training.mixture import Part, check_mixture
from precis.model.training.shards import check_shards


class RecordSets(NamedTuple):
    """Record sets whose token ids mean the same. Validation uses the first set.

    Attributes:
      folders: where `precis prepare` wrote each set.
      infos: the description in the `dataset.json` of each set.
      weights: the proportions of the sets' documents in a mixture.
      tokenizers: the tokenizers that all sets share.
    """

    folders: tuple[str, ...]
    infos: tuple[DatasetInfo, ...]
    weights: tuple[float, ...]
    tokenizers: TokenizerPair

    @property
    def task_prefixes(self) -> tuple[str, ...]:
        """The texts before the articles of the sets, each text once."""
        return tuple(dict.fromkeys(info.task_prefix for info in self.infos))

    @property
    def identity(self) -> Any:
        """The fingerprint of the set, or of all sets with their weights; as JSON."""
        fingerprints = [info.fingerprint for info in self.infos]
        if len(fingerprints) == 1:
            return fingerprints[0]
        return {"sets": fingerprints, "weights": list(self.weights)}

    def parts(self) -> list[Part]:
        """The sets as parts of a mixture for `epoch_batches`; none for a single set."""
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
        paths = []
        sets = zip(self.folders, self.infos, strict=True)
        for number, (folder, info) in enumerate(sets):
            copies = files.join(staging, str(number))
            paths += check_shards(folder, info, "train", staging=copies)
        return paths

    def limit(self, name: str) -> int:
        """The least of the sets' `max_source_tokens` or `max_target_tokens`."""
        return min(getattr(info, name) for info in self.infos)


def open_records(folders: Sequence[str], weights: Sequence[float] = ()) -> RecordSets:
    """Opens record sets that are trained on together.

    Args:
      folders: the outputs of `precis prepare`.
      weights: the proportions of their documents; by default, the number of training
          documents of each set.

    Raises:
      UsageError: a folder holds no records, or the sets cannot be mixed.
      DataError: a folder is unfinished or damaged.
    """
    infos = [load_dataset(folder) for folder in folders]
    check_mixture(infos, folders)
    if weights and (len(weights) != len(folders) or min(weights) <= 0):
        listed = ", ".join(f"{weight:g}" for weight in weights)
        raise UsageError(
            f"--mixture gives each of the {len(folders)} record sets a number above 0, "
            f"not {listed}; {folders[0]} is the first"
        )
    sizes = [max(info.records("train"), 1) for info in infos]
    return RecordSets(
        folders=tuple(folders),
        infos=tuple(infos),
        weights=tuple(weights or sizes),
        tokenizers=load_tokenizers(folders[0]),
    )
