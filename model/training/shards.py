"""The shards of records as local files, checked before they are read."""

import os
import shutil

from precis.model import files
from precis.model.errors import DataError
from precis.model.records.dataset import DATASET_FILE, DatasetInfo


def check_shards(
    folder: str, info: DatasetInfo, split: str, *, staging: str
) -> list[str]:
    """The local paths of a split's shards, each checked against its checksum in
    `dataset.json`.

    Shards on an object store are first copied to the folder `staging`, as TensorFlow
    would need credentials of its own to read them there.

    Raises:
      UsageError: there is no such split.
      DataError: the split holds no records, or a shard is missing, damaged or outside
          of the folder.
    """
    if not info.records(split):
        raise DataError(
            f"{folder}: the split {split!r} holds no records; "
            "prepare a larger corpus or other shares of the splits"
        )
    description = files.join(folder, DATASET_FILE)
    paths = []
    for shard in info.splits[split]:
        path = files.path_within(folder, shard.file, listed_in=description)
        way_out = "run the same `precis prepare` command again, which repairs it"
        if not files.exists(path):
            raise DataError(f"{path}: the shard is missing; {way_out}")
        if not files.is_local(path):
            path = _copy(path, os.path.join(staging, shard.file))
        if files.sha256_file(path) != shard.sha256:
            raise DataError(
                f"{files.join(folder, shard.file)}: the checksum differs from "
                f"dataset.json's, so the shard is damaged; {way_out}"
            )
        paths.append(path)
    return paths


def _copy(path: str, copy: str) -> str:
    """Copies a file to a local path and returns that path."""
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with files.open_read(path) as source, open(copy, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy
