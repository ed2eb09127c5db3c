"""Batches: every record once, in an order fixed by seed and epoch, and in the shapes of
the settings; several record sets evenly mixed; shards that are checked and copied.
"""

import dataclasses
import itertools
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
import tensorflow as tf
from support.damaged_results import edit_description

from precis.model.errors import DataError, UsageError
from precis.model.network.config import SOURCE_PADDING
from precis.model.records.dataset import load_dataset
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.batches import (
    BatchSettings,
    distributed_batches,
    epoch_batches,
    length_buckets,
    mixed_turns,
)
from precis.model.training.record_sets import check_shards, open_records
from precis.model.training.strategy import make_strategy

STAGING = "nothing is copied here"
LIMITS = {"max_source_tokens": 192, "max_target_tokens": 48, "batch_tokens": 1500}
SETTINGS = BatchSettings(**LIMITS, target_pad=0, start=2, end=3)


@pytest.fixture(scope="module")
def shards(records_folder) -> list[str]:
    info = load_dataset(records_folder)
    return check_shards(records_folder, info, "train", staging=STAGING)


def read_all(shards) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Source and target of every record, read by TensorFlow's own parser of the
    protobuf message.
    """
    rows = []
    for path in shards:
        for serialised in tf.data.TFRecordDataset(path).as_numpy_iterator():
            feature = tf.train.Example.FromString(serialised).features.feature
            source, target = (
                tuple(feature[name].int64_list.value) for name in ("source", "target")
            )
            rows.append((source, target))
    return rows


@pytest.fixture(scope="module")
def records(shards) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    rows = read_all(shards)
    assert len(rows) == 60 and len(set(rows)) == 60
    return rows


def batches_of(sets, settings=SETTINGS, **order) -> list[dict[str, np.ndarray]]:
    order = {"seed": 1, "epoch": 0, "shuffle_documents": 100, **order}
    return list(epoch_batches(sets, settings, **order).as_numpy_iterator())


def rows_of(batches) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Source and target of each row that is not padding, in order.

    The start and end tokens of the targets are checked and removed.
    """
    rows = []
    for batch in batches:
        parts = (batch[name] for name in ("source", "target", "expected"))
        for source, target, expected in zip(*parts, strict=True):
            length = (source != SOURCE_PADDING).sum()
            assert (source[length:] == SOURCE_PADDING).all()
            target, expected = target[target != 0], expected[expected != 0]
            if not length:
                assert not len(target) and not len(expected)
                continue
            assert target[0] == SETTINGS.start and expected[-1] == SETTINGS.end
            assert target[1:].tolist() == expected[:-1].tolist()
            rows.append((tuple(source[:length].tolist()), tuple(target[1:].tolist())))
    return rows


@pytest.mark.parametrize(("shuffle_documents", "pieces"), [(0, 4), (7, 1), (100, 4)])
def test_every_record_comes_once(shards, records, shuffle_documents, pieces):
    settings = SETTINGS._replace(pieces=pieces)
    batches = batches_of([shards], settings, shuffle_documents=shuffle_documents)
    assert sorted(rows_of(batches)) == sorted(records)
    assert all(len(batch["source"]) % pieces == 0 for batch in batches)
    # The documents of a batch do not depend on the pieces.
    others = batches_of([shards], shuffle_documents=shuffle_documents)
    found, expected = ([rows_of([batch]) for batch in of] for of in (batches, others))
    assert found == expected


def test_the_order_depends_on_the_seed_and_the_epoch(shards):
    orders = [
        rows_of(batches_of([shards], seed=seed, epoch=epoch))
        for seed, epoch in ((1, 0), (1, 1), (2, 0), (1, 10), (11, 0))
    ]
    assert all(one != other for one, other in itertools.combinations(orders, 2))
    assert orders[0] == rows_of(batches_of([shards], seed=1, epoch=0))


def test_take_without_shuffling_is_the_beginning_of_the_files(shards, records):
    batches = batches_of([shards], shuffle_documents=0, take=30)
    assert sorted(rows_of(batches)) == sorted(records[:30])


def test_batches_hold_similar_lengths_and_no_more_tokens_than_allowed(shards):
    buckets = length_buckets(192)
    heights: dict[int, list[int]] = {}
    for batch in batches_of([shards]):
        height, width = batch["source"].shape
        longest_target = int((batch["target"] != 0).sum(axis=1).max())
        target_shape = (height, min(-(-longest_target // 8) * 8, 49))
        assert batch["target"].shape == batch["expected"].shape == target_shape
        assert height * (width + batch["target"].shape[1]) <= SETTINGS.batch_tokens
        shorter = max([bucket for bucket in buckets if bucket < width], default=0)
        lengths = (batch["source"] != SOURCE_PADDING).sum(axis=1)
        assert width in buckets and ((lengths > shorter) & (lengths <= width)).all()
        heights.setdefault(width, []).append(height)
    assert len(heights) > 4
    assert length_buckets(100) == [32, 40, 48, 56, 64, 80, 96, 100]
    assert [length_buckets(size) for size in (16, 32, 33)] == [[16], [32], [32, 33]]
    for bucket, bucket_heights in heights.items():
        full = 1500 // (bucket + 49)
        *complete, last = bucket_heights
        assert all(height == full for height in complete) and 1 <= last <= full


def test_fixed_shapes_are_one_shape_known_beforehand(shards, records):
    settings = SETTINGS._replace(fixed_shapes=True, pieces=4)
    batches = batches_of([shards], settings)
    assert sorted(rows_of(batches)) == sorted(records)
    # 1500 // (192 + 49) = 6 rows, filled up to a multiple of 4.
    expected = {"source": (8, 192), "target": (8, 49), "expected": (8, 49)}
    for batch in batches:
        assert {name: rows.shape for name, rows in batch.items()} == expected
    order = {"seed": 1, "epoch": 0, "shuffle_documents": 100, "skip": 0}
    spec = distributed_batches(make_strategy("one"), [shards], settings, **order)
    shapes = {name: tuple(rows.shape) for name, rows in spec.element_spec.items()}
    assert shapes == expected


@pytest.mark.parametrize("end_tokens", [0, 2])
def test_long_sequences_are_cut_before_the_special_tokens_at_their_end(
    shards, records, end_tokens
):
    limits = {"max_source_tokens": 24, "max_target_tokens": 13}
    settings = SETTINGS._replace(source_end_tokens=end_tokens, **limits)
    batches = batches_of([shards], settings)

    def cut(source):
        end = source[len(source) - end_tokens :]
        return source[: 24 - end_tokens] + end if len(source) > 24 else source

    expected = ((cut(source), target[:13]) for source, target in records)
    assert sorted(rows_of(batches)) == sorted(expected)
    assert {batch["source"].shape[1] for batch in batches} == {24}
    # No wider than the positions of the network.
    assert {batch["target"].shape[1] for batch in batches} == {14}


# Several record sets


def test_turns_are_evenly_spread_by_hand():
    assert mixed_turns([4, 4]).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    # The documents stand at 1/12 3/12 5/12 7/12 9/12 11/12 and at 3/12 9/12.
    assert mixed_turns([6, 2]).tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert mixed_turns([1, 3, 2]).tolist() == [1, 2, 0, 1, 2, 1]


def test_all_documents_of_several_sets_come_once_an_epoch_evenly_mixed(shards):
    # The second set has no document of the first, which comes again as the third.
    sets = [shards[1:], shards[:1], shards[1:]]
    counts = [len(read_all(each)) for each in sets]
    second = {(source[:8], target) for source, target in read_all(shards[:1])}
    # One bucket, so that rows come in the order of the stream.
    settings = SETTINGS._replace(max_source_tokens=8)
    order = {"documents": counts, "shuffle_documents": 1, "epoch": 1}
    rows = rows_of(batches_of(sets, settings, **order))
    every = sum(map(read_all, sets), [])
    assert sorted(rows) == sorted((source[:8], target) for source, target in every)
    turns = mixed_turns(counts)
    assert [row in second for row in rows] == (turns == 1).tolist()
    # Two sets of one corpus have orders of their own.
    first, third = (
        [row for row, turn in zip(rows, turns, strict=True) if turn == wanted]
        for wanted in (0, 2)
    )
    assert sorted(first) == sorted(third) and first != third


DIFFERENT = [
    ("tokenizer", False, "with `tokenizer="),
    ("source_tokenizer", False, "without `source_tokenizer=`"),
    ("source_tokenizer", True, "with `source_tokenizer="),
]


@pytest.mark.parametrize(("flag", "is_first", "way_out"), DIFFERENT)
def test_sets_of_different_tokenizers_are_refused(
    records_folder, copy_records, tmp_path, flag, is_first, way_out
):
    other = Path(copy_records(tmp_path / "other"))
    assert len(open_records([records_folder, str(other)]).identity["sets"]) == 2
    tokenizer = Tokenizer([*RESERVED_TOKENS, "▁a"])
    tokenizer.save(str(other / flag))
    changed = {f"{flag}_fingerprint": tokenizer.fingerprint}
    edit_description(other / "dataset.json", lambda content: content.update(changed))
    first, second = [str(other), records_folder][:: 1 if is_first else -1]
    if way_out.startswith("with "):
        way_out += f"{first}`"
    with pytest.raises(
        UsageError,
        match=rf"^{second} and {first} cannot be combined, as their tokenizers "
        rf"differ \({flag} .* and .*\); prepare {second} again {way_out}$",
    ):
        open_records([first, second])


# Shards


def test_shards_that_cannot_be_trained_on_are_refused(copy_records, tmp_path):
    folder = copy_records(tmp_path / "records")
    info = load_dataset(folder)
    train = info.splits["train"]
    damaged, missing = train[2].file, train[1].file
    content = bytearray(Path(folder, damaged).read_bytes())
    content[200] ^= 1
    Path(folder, damaged).write_bytes(content)
    Path(folder, missing).unlink()
    outside = dataclasses.replace(train[0], file="../x.tfrecord")
    others = {"validation": info.splits["validation"]}
    for splits, error, message in (
        ({}, UsageError, "records has no records of the split 'train'; prepare again"),
        ({"train": ()}, UsageError, "records has no records of the split 'train'; p"),
        ({"train": train[1:2]}, DataError, f"{missing}: missing; run the"),
        (
            {"train": train[2:]},
            DataError,
            f"{damaged}: damaged, as its checksum differs from data",
        ),
        ({"train": [outside]}, DataError, "dataset.json: it lists the file '../x.tfre"),
    ):
        described = dataclasses.replace(info, splits={**others, **splits})
        with pytest.raises(error, match=message):
            check_shards(folder, described, "train", staging=STAGING)
    path = f"{folder}/{info.splits['validation'][0].file}"
    assert check_shards(folder, info, "validation", staging=STAGING) == [path]


def test_shards_on_an_object_store_are_copied_here(records_folder, shards, tmp_path):
    folder = f"memory://bucket-{uuid.uuid4().hex}/records"
    remote = fsspec.filesystem("memory")
    remote.put(records_folder, folder, recursive=True)
    staging = tmp_path / "one" / "of several"
    info = load_dataset(folder)
    paths = check_shards(folder, info, "train", staging=str(staging))
    assert all(Path(path).parent == staging for path in paths) and len(paths) == 3
    for path, original in zip(paths, shards, strict=True):
        assert Path(path).read_bytes() == Path(original).read_bytes()
    remote.pipe(f"{folder}/train-00000-of-00003.tfrecord", b"damaged")
    message = rf"{folder}/train-00000.*: damaged, as its checksum"
    with pytest.raises(DataError, match=message):
        check_shards(folder, info, "train", staging=str(tmp_path))
