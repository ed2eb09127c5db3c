"""dataset.json: it is read back, and every refusal."""

import dataclasses
import json

import pytest

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import (
    DatasetInfo,
    Lengths,
    Shard,
    load_dataset,
    require_oracle,
    shard_name,
    summarise_lengths,
)
from precis.model.records.example import (
    FEATURES,
    ORACLE_FEATURES,
)
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer


def test_records_without_labels_are_refused_where_they_are_needed(info):
    with pytest.raises(
        UsageError,
        match=(
            "^r: these records hold no oracle labels; "
            "prepare them with --oracle_sentences 5$"
        ),
    ):
        require_oracle(info, "r")
    require_oracle(
        dataclasses.replace(info, features=FEATURES | ORACLE_FEATURES),
        "r",
    )


def test_lengths_by_hand():
    # Eleven records of lengths 0, 10, ..., 100: the deciles are the k-th smallest with
    # k = ceil(11 * tenth / 10), at least 1.
    lengths = summarise_lengths({10 * tenth: 1 for tenth in range(11)})
    assert lengths == Lengths(50.0, 100, (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    lengths = summarise_lengths({7: 9, 3: 1})
    assert lengths == Lengths(6.6, 7, (3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7))
    assert summarise_lengths({7: 9, 8: 4, 20: 1}, limit=7).cut == 5
    assert summarise_lengths({}) == Lengths(0.0, 0, (0,) * 11)


def test_shard_name():
    assert shard_name("train", 3, 16) == "train-00003-of-00016.tfrecord"


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer([*RESERVED_TOKENS, "a"])


@pytest.fixture
def info(tokenizer) -> DatasetInfo:
    return DatasetInfo(
        splits={
            "train": (
                Shard("train-00000-of-00002.tfrecord", 5, 90, "ab"),
                Shard("train-00001-of-00002.tfrecord", 2, 40, "cd"),
            ),
            "test": (),
        },
        source_lengths=summarise_lengths({700: 7}),
        target_lengths=summarise_lengths({50: 6, 60: 1}),
        counts={"read": 8, "written": 7, "duplicates": 1, "failed": 0, "skipped": 0},
        max_source_tokens=512,
        max_target_tokens=64,
        seed=7,
        tokenizer_fingerprint=tokenizer.fingerprint,
        fingerprint="ef",
    )


@pytest.fixture
def folder(info, tokenizer, tmp_path) -> str:
    tokenizer.save(str(tmp_path / "tokenizer"))
    files.write_json(str(tmp_path / "dataset.json"), info.to_json())
    files.write_bytes(str(tmp_path / "_SUCCESS"), b"")
    return str(tmp_path)


def test_a_description_reads_back(info, folder):
    loaded = load_dataset(folder)
    assert loaded == info
    assert (loaded.records("train"), loaded.records("test")) == (7, 0)
    written = files.read_json(files.join(folder, "dataset.json"))
    assert written["splits"]["train"]["records"] == 7
    assert written["splits"]["train"]["shards"][1] == {
        "file": "train-00001-of-00002.tfrecord",
        "records": 2,
        "bytes": 40,
        "sha256": "cd",
    }
    assert written["features"]["source"] == "int64"


def test_an_unknown_split_is_refused(info):
    with pytest.raises(
        UsageError, match="no split 'dev' in these records; they have test, train"
    ):
        info.records("dev")


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"there are no records here \(no dataset\.json\); name the folder",
    ):
        load_dataset(str(tmp_path / "absent"))


def test_an_unfinished_folder_is_refused(folder):
    files.remove(files.join(folder, "_SUCCESS"))
    with pytest.raises(
        DataError,
        match=(
            r"unfinished \(no _SUCCESS\); run the same `precis prepare` command again"
        ),
    ):
        load_dataset(folder)


def test_another_format_version_is_refused(info, folder):
    files.write_json(
        files.join(folder, "dataset.json"),
        dataclasses.replace(info, format_version=9).to_json(),
    )
    with pytest.raises(DataError, match="format_version is 9 and this precis reads 1"):
        load_dataset(folder)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        '{"format_version": "1"}',
        '{"format_version": 1}',
        "drop seed",
        "add colour",
        "split list",
        "number of tokens as text",
        "shard without a file",
    ],
)
def test_a_damaged_description_is_refused(info, folder, content):
    if content == "drop seed":
        content = json.dumps(
            {name: value for name, value in info.to_json().items() if name != "seed"}
        )
    elif content == "add colour":
        content = json.dumps({**info.to_json(), "colour": 1})
    elif content == "split list":
        content = json.dumps({**info.to_json(), "splits": []})
    elif content == "number of tokens as text":
        content = json.dumps({**info.to_json(), "max_source_tokens": "9"})
    elif content == "shard without a file":
        shard = {"records": 1, "bytes": 1, "sha256": ""}
        splits = {"train": {"records": 1, "shards": [shard]}}
        content = json.dumps({**info.to_json(), "splits": splits})
    files.write_bytes(files.join(folder, "dataset.json"), content.encode())
    with pytest.raises(DataError, match=r"dataset\.json: damaged \("):
        load_dataset(folder)


def test_a_description_without_later_fields_reads_back(info, folder):
    content = info.to_json()
    for name in ("task_prefix", "target", "source_tokenizer_fingerprint"):
        del content[name]
    files.write_json(files.join(folder, "dataset.json"), content)
    loaded = load_dataset(folder)
    assert loaded == info and (
        loaded.task_prefix,
        loaded.target,
        loaded.source_tokenizer_fingerprint,
    ) == ("", "highlights", None)


def test_prefix_target_and_source_tokenizer_are_read_back(info, folder):
    source = Tokenizer([*RESERVED_TOKENS, "b"])
    changes = {
        "task_prefix": "sum: ",
        "target": "headline",
        "source_tokenizer_fingerprint": source.fingerprint,
    }
    changed = dataclasses.replace(info, **changes)
    files.write_json(files.join(folder, "dataset.json"), changed.to_json())
    refused = (
        "source_tokenizer: fingerprint .* is not .*, "
        "that of the tokenizer the records were encoded with; restore the"
    )
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)
    source.save(files.join(folder, "source_tokenizer"))
    assert load_dataset(folder) == changed
    # One that the description knows nothing of cut no source.
    files.write_json(files.join(folder, "dataset.json"), info.to_json())
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)


def test_another_tokenizer_is_refused(folder):
    Tokenizer([*RESERVED_TOKENS, "b"]).save(files.join(folder, "tokenizer"))
    with pytest.raises(
        DataError,
        match=(
            "tokenizer: fingerprint .* is not .*, that of the tokenizer the records "
            "were encoded with"
        ),
    ):
        load_dataset(folder)
