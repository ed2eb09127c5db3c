"""dataset.json: it is read back, and every refusal."""

import dataclasses
from pathlib import Path

import pytest
from support.damaged_results import write_success

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
from precis.model.records.example import FEATURES, ORACLE_FEATURES
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer


def test_lengths_by_hand():
    # Eleven records of lengths 0, 10, ..., 100: the deciles are the k-th smallest with
    # k = ceil(11 * tenth / 10), at least 1.
    lengths = summarise_lengths({10 * tenth: 1 for tenth in range(11)})
    assert lengths == Lengths(50.0, 100, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    lengths = summarise_lengths({7: 9, 3: 1})
    assert lengths == Lengths(6.6, 7, [3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7])
    assert summarise_lengths({7: 9, 8: 4, 20: 1}, limit=7).cut == 5
    assert summarise_lengths({}) == Lengths(0.0, 0, [0] * 11)


TOKENIZER, OTHER = (Tokenizer([*RESERVED_TOKENS, word]) for word in "ab")
INFO = DatasetInfo(
    splits={
        "train": (
            Shard(shard_name("train", 0, 2), 5, 90, "ab"),
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
    tokenizer_fingerprint=TOKENIZER.fingerprint,
    fingerprint="ef",
)


@pytest.fixture
def folder(tmp_path) -> str:
    TOKENIZER.save(str(tmp_path / "tokenizer"))
    files.write_json(str(tmp_path / "dataset.json"), INFO.to_json())
    write_success(tmp_path / "dataset.json")
    return str(tmp_path)


def write(folder, content) -> None:
    files.write_json(files.join(folder, "dataset.json"), content)
    if isinstance(content, dict):
        write_success(Path(folder) / "dataset.json")


def test_a_description_reads_back(folder):
    loaded = load_dataset(folder)
    assert loaded == INFO
    assert (loaded.records("train"), loaded.records("test")) == (7, 0)
    written = files.read_json(files.join(folder, "dataset.json"))
    assert written["splits"]["train"]["records"] == 7
    expected = {"file": "train-00001-of-00002.tfrecord", "records": 2}
    expected |= {"bytes": 40, "sha256": "cd"}
    assert written["splits"]["train"]["shards"][1] == expected
    assert written["features"]["source"] == "int64"


def test_a_source_tokenizer_is_that_of_the_records(folder):
    later = {"task_prefix": "sum: ", "target": "headline"}
    later["source_tokenizer_fingerprint"] = OTHER.fingerprint
    changed = dataclasses.replace(INFO, **later)
    write(folder, changed.to_json())
    refused = "source_tokenizer: not the tokenizer that .* was made with; restore that "
    refused += "folder or run the same `precis prepare` command again, which repairs it"
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)
    OTHER.save(files.join(folder, "source_tokenizer"))
    assert load_dataset(folder) == changed
    # One that the description knows nothing of cut no source.
    write(folder, INFO.to_json())
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)


def test_folders_that_cannot_be_read_are_refused(folder, tmp_path):
    message = r"not a folder of records \(no dataset\.json\); name the"
    with pytest.raises(UsageError, match=message):
        load_dataset(str(tmp_path / "absent"))
    write(folder, {**INFO.to_json(), "format_version": 9})
    with pytest.raises(DataError, match="format_version is 9, but this precis reads 1"):
        load_dataset(folder)
    write(folder, INFO.to_json())
    OTHER.save(files.join(folder, "tokenizer"))
    with pytest.raises(DataError, match="tokenizer: not the tokenizer that"):
        load_dataset(folder)


CHANGES = [
    ("_SUCCESS", lambda old: None, "is missing: the result is not finished"),
    ("_SUCCESS", lambda old: b"", "has 0 bytes instead of 68"),
    ("_SUCCESS", lambda old: old[:-1], "has 67 bytes instead of 68"),
    ("_SUCCESS", lambda old: old + b"\n", "has 69 bytes instead of 68"),
    (
        "dataset.json",
        lambda old: old + b"\n",
        "its checksum differs from the checksum in _SUCC",
    ),
]


@pytest.mark.parametrize(("name", "change", "problem"), CHANGES)
def test_records_that_are_not_as_they_were_written_are_refused(
    folder, name, change, problem
):
    path = Path(folder) / name
    content = change(path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)
    message = f"^{path}: {problem}.*; run the same `precis .* again, which repairs it"
    with pytest.raises(DataError, match=message):
        load_dataset(folder)


SHARD = {"records": 1, "bytes": 1, "sha256": ""}


DAMAGED = [
    b"{",
    [],
    None,
    {"format_version": "1"},
    {"format_version": 1},
    {name: value for name, value in INFO.to_json().items() if name != "seed"},
    {**INFO.to_json(), "colour": 1},
    {**INFO.to_json(), "splits": []},
    {**INFO.to_json(), "max_source_tokens": "9"},
    {**INFO.to_json(), "splits": {"train": {"records": 1, "shards": [SHARD]}}},
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_description_is_refused(folder, content):
    path = Path(folder, "dataset.json")
    path.write_bytes(content) if isinstance(content, bytes) else write(folder, content)
    with pytest.raises(DataError, match=r"dataset\.json: damaged \("):
        load_dataset(folder)


def test_splits_and_labels_that_are_missing_are_refused():
    message = "these records have no split 'dev'; their splits are test, train"
    with pytest.raises(UsageError, match=message):
        INFO.records("dev")
    message = "^r: these records have no oracle labels; prepare them with `oracle_s"
    with pytest.raises(UsageError, match=message):
        require_oracle(INFO, "r")
    labelled = dataclasses.replace(INFO, features=FEATURES | ORACLE_FEATURES)
    require_oracle(labelled, "r")
