"""The record sets that a training reads: one, or several with the same tokenizers.
Shards are checked, and copied if they are not local.
"""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import say
from precis.model.records.dataset import DATASET_FILE, DatasetInfo, load_dataset
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers

_ONE_LANGUAGE = 0.95  # of the articles


class RecordSets(NamedTuple):
    """Record sets that are trained on together. Validation uses the first set.

    Attributes:
      folders: the folder of each set.
      infos: the content of `dataset.json` of each set.
      tokenizers: the tokenizers that all sets share.
    """

    folders: tuple[str, ...]
    infos: tuple[DatasetInfo, ...]
    tokenizers: TokenizerPair

    @property
    def task_prefixes(self) -> tuple[str, ...]:
        """The distinct task prefixes of the sets."""
        return tuple(dict.fromkeys(info.task_prefix for info in self.infos))

    @property
    def identity(self) -> Any:
        """The fingerprint of the set, or of all sets; as JSON."""
        fingerprints = [info.fingerprint for info in self.infos]
        return fingerprints[0] if len(fingerprints) == 1 else {"sets": fingerprints}

    def shards(self, *, staging: str) -> list[list[str]]:
        """The local paths of the training shards of each set, checked; `staging` and
        errors are as for `check_shards`.
        """
        sets = zip(self.folders, self.infos, strict=True)
        return [
            check_shards(
                folder, info, "train", staging=os.path.join(staging, str(number))
            )
            for number, (folder, info) in enumerate(sets)
        ]

    def limit(self, name: str) -> int:
        """The minimum of `max_source_tokens` or `max_target_tokens` over the sets."""
        return min(getattr(info, name) for info in self.infos)


def open_records(folders: Sequence[str]) -> RecordSets:
    """Opens record sets that are trained on together.

    Args:
      folders: the outputs of `precis prepare`.

    Raises:
      UsageError: a folder holds no records, or the sets were encoded with different
          tokenizers.
      DataError: a folder is unfinished or damaged.
    """
    infos = [load_dataset(folder) for folder in folders]
    for info, folder in zip(infos, folders, strict=True):
        for flag in ("tokenizer", "source_tokenizer"):
            actual, expected = (
                getattr(each, f"{flag}_fingerprint") or "none"
                for each in (info, infos[0])
            )
            if actual != expected:
                way_out = f"with `{flag}={folders[0]}`"
                if expected == "none":
                    way_out = f"without `{flag}=`"
                raise UsageError(
                    f"{folder} and {folders[0]} cannot be combined, as their "
                    f"tokenizers differ ({flag} {actual[:12]} and {expected[:12]}); "
                    f"prepare {folder} again {way_out}"
                )
    return RecordSets(tuple(folders), tuple(infos), load_tokenizers(folders[0]))


def check_shards(
    folder: str, info: DatasetInfo, split: str, *, staging: str
) -> list[str]:
    """The local paths of a split's shards, after checking them against the checksums in
    `dataset.json`.

    Shards on an object store are first copied to the folder `staging`, as TensorFlow
    would need separate credentials to read them there.

    Raises:
      UsageError: the split holds no records.
      DataError: a shard is missing, damaged or outside of the folder.
    """
    if not sum(shard.records for shard in info.splits.get(split, ())):
        raise UsageError(
            f"{folder} has no records of the split {split!r}; prepare again with "
            "another `output=`, and a larger corpus, a larger `validation_share=` or "
            "a `split_field=` that names the splits"
        )
    description = files.join(folder, DATASET_FILE)
    way_out = "run the same `precis prepare` command again, which repairs it"
    paths = []
    for shard in info.splits[split]:
        path = origin = files.path_within(folder, shard.file, listed_in=description)
        if not files.exists(path):
            raise DataError(f"{path}: missing; {way_out}")
        if not files.is_local(path):
            path = os.path.join(staging, shard.file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with files.open_read(origin) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        if files.sha256_file(path) != shard.sha256:
            raise DataError(
                f"{origin}: damaged, as its checksum differs from dataset.json; "
                f"{way_out}"
            )
        paths.append(path)
    return paths


def say_languages(languages: Sequence[str]) -> None:
    """Says that the ROUGE of the validation is a mean over several languages, if not
    nearly all articles have one language.
    """
    named = Counter(languages).most_common()
    if named[0][1] < _ONE_LANGUAGE * len(languages):
        listed = ", ".join(sorted(name for name, _ in named))
        say(
            f"the ROUGE of the validation is a mean over {len(named)} languages, whose "
            f"scores are not comparable: {listed}"
        )
