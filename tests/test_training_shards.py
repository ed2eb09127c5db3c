"""Shards of records: checked against their checksums, and copied from object stores."""

import dataclasses
import json
import uuid
from pathlib import Path

import fsspec
import pytest

from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import load_dataset
from precis.model.training.shards import check_shards

STAGING = "nothing is copied here"


def test_an_unknown_split_is_refused(records_folder):
    with pytest.raises(
        UsageError,
        match="there is no split 'test' in these records; they have train, validation",
    ):
        check_shards(
            records_folder, load_dataset(records_folder), "test", staging=STAGING
        )


def test_a_split_without_records_is_refused(records_folder):
    info = load_dataset(records_folder)
    empty = dataclasses.replace(info, splits={**info.splits, "train": ()})
    with pytest.raises(
        DataError, match="the split 'train' holds no records; prepare a larger corpus"
    ):
        check_shards(records_folder, empty, "train", staging=STAGING)


def test_a_missing_shard_is_refused(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    (Path(folder) / "train-00001-of-00003.tfrecord").unlink()
    with pytest.raises(
        DataError,
        match="train-00001-of-00003.tfrecord: the shard is missing; "
        "run the same `precis prepare`",
    ):
        check_shards(folder, load_dataset(folder), "train", staging=STAGING)


def test_a_shard_outside_of_the_folder_is_refused(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    description = Path(folder) / "dataset.json"
    content = json.loads(description.read_text())
    content["splits"]["train"]["shards"][0]["file"] = "../x.tfrecord"
    description.write_text(json.dumps(content))
    with pytest.raises(
        DataError,
        match="dataset.json: it names the file '../x.tfrecord', which does not lie "
        "within",
    ):
        check_shards(folder, load_dataset(folder), "train", staging=STAGING)


def test_a_damaged_shard_is_refused(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    shard = Path(folder) / "train-00002-of-00003.tfrecord"
    content = bytearray(shard.read_bytes())
    content[200] ^= 1
    shard.write_bytes(content)
    with pytest.raises(
        DataError,
        match="train-00002-of-00003.tfrecord: the checksum differs from dataset.json's",
    ):
        check_shards(folder, load_dataset(folder), "train", staging=STAGING)
    assert check_shards(
        folder, load_dataset(folder), "validation", staging=STAGING
    ) == [f"{folder}/validation-00000-of-00001.tfrecord"]


def test_shards_on_an_object_store_are_copied_here(records_folder, tmp_path):
    folder = f"memory://bucket-{uuid.uuid4().hex}/records"
    remote = fsspec.filesystem("memory")
    remote.put(records_folder, folder, recursive=True)
    staging = tmp_path / "one" / "of several"
    paths = check_shards(folder, load_dataset(folder), "train", staging=str(staging))
    assert all(Path(path).parent == staging for path in paths)
    originals = check_shards(
        records_folder, load_dataset(records_folder), "train", staging=STAGING
    )
    assert [Path(path).read_bytes() for path in paths] == [
        Path(path).read_bytes() for path in originals
    ]
    assert len(paths) == 3
    remote.pipe(f"{folder}/train-00000-of-00003.tfrecord", b"damaged")
    with pytest.raises(
        DataError,
        match=rf"{folder}/train-00000-of-00003.tfrecord: the checksum differs",
    ):
        check_shards(folder, load_dataset(folder), "train", staging=str(tmp_path))
