"""Batches: every record once, in an order fixed by seed and epoch, and in the shapes of
the limits.
"""

import numpy as np
import pytest
import tensorflow as tf

from precis.model.network.config import SOURCE_PADDING
from precis.model.records.dataset import load_dataset
from precis.model.training.batch_shapes import (
    BatchLimits,
    SpecialIds,
    bucket_rows,
    length_buckets,
)
from precis.model.training.input_batches import distributed_batches, epoch_batches
from precis.model.training.shards import check_shards
from precis.model.training.strategy import make_strategy

STAGING = "nothing is copied here"
IDS = SpecialIds(target_pad=0, start=2, end=3)
LIMITS = BatchLimits(
    max_source_tokens=192,
    max_target_tokens=48,
    batch_tokens=1500,
    pieces=1,
    fixed_shapes=False,
)


@pytest.fixture(scope="module")
def shards(records_folder) -> list[str]:
    return check_shards(
        records_folder, load_dataset(records_folder), "train", staging=STAGING
    )


@pytest.fixture(scope="module")
def records(shards) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Source, target and shard number of every record, read by TensorFlow's own parser
    of the protobuf message.
    """
    rows = []
    for number, path in enumerate(shards):
        for serialised in tf.data.TFRecordDataset(path).as_numpy_iterator():
            feature = tf.train.Example.FromString(serialised).features.feature
            rows.append(
                (
                    tuple(feature["source"].int64_list.value),
                    tuple(feature["target"].int64_list.value),
                    number,
                )
            )
    assert len(rows) == 60 and len(set(rows)) == 60
    return rows


def batches_of(
    shards, *, limits=LIMITS, seed=1, epoch=0, shuffle_documents=100, take=-1
) -> list[dict[str, np.ndarray]]:
    batches = epoch_batches(
        shards,
        limits=limits,
        ids=IDS,
        seed=seed,
        epoch=epoch,
        shuffle_documents=shuffle_documents,
        take=take,
    )
    return list(batches.as_numpy_iterator())


def rows_of(batches) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Source, target and shard number of each row that is not padding, in order.

    The start and end tokens of the targets are checked and removed.
    """
    rows = []
    for batch in batches:
        for source, target, expected, shard in zip(
            batch["source"],
            batch["target"],
            batch["expected"],
            batch["shard"],
            strict=True,
        ):
            if shard == -1:
                assert (
                    (source == SOURCE_PADDING).all()
                    and not target.any()
                    and not expected.any()
                )
                continue
            target, expected = (
                target[target != IDS.target_pad],
                expected[expected != IDS.target_pad],
            )
            assert target[0] == IDS.start and expected[-1] == IDS.end
            assert target[1:].tolist() == expected[:-1].tolist()
            rows.append(
                (
                    tuple(source[source != SOURCE_PADDING].tolist()),
                    tuple(target[1:].tolist()),
                    int(shard),
                )
            )
    return rows


def same(batches, others) -> bool:
    return len(batches) == len(others) and all(
        np.array_equal(batch[name], other[name])
        for batch, other in zip(batches, others, strict=True)
        for name in batch
    )


@pytest.mark.parametrize(("shuffle_documents", "pieces"), [(0, 4), (7, 1), (100, 4)])
def test_every_record_comes_once_with_the_number_of_its_shard(
    shards, records, shuffle_documents, pieces
):
    batches = batches_of(
        shards,
        shuffle_documents=shuffle_documents,
        limits=LIMITS._replace(pieces=pieces),
    )
    assert sorted(rows_of(batches)) == sorted(records)
    assert all(len(batch["source"]) % pieces == 0 for batch in batches)


def test_the_order_depends_on_the_seed_and_the_epoch(shards):
    first = batches_of(shards, seed=1, epoch=0)
    assert same(first, batches_of(shards, seed=1, epoch=0))
    for seed, epoch in ((1, 1), (2, 0)):
        assert rows_of(batches_of(shards, seed=seed, epoch=epoch)) != rows_of(first)
    assert rows_of(batches_of(shards, seed=1, epoch=10)) != rows_of(
        batches_of(shards, seed=11, epoch=0)
    )


def test_take_without_shuffling_is_the_beginning_of_the_files(shards, records):
    assert sorted(rows_of(batches_of(shards, shuffle_documents=0, take=30))) == sorted(
        records[:30]
    )


def test_skip_goes_on_with_the_next_batch(shards):
    every = batches_of(shards, seed=5, epoch=3)
    assert len(every) > 4
    order = {"ids": IDS, "seed": 5, "epoch": 3, "shuffle_documents": 100}
    for skip in (0, 3, len(every)):
        rest = list(
            distributed_batches(
                make_strategy("one"), shards, limits=LIMITS, skip=skip, **order
            )
        )
        assert same(
            [{name: rows.numpy() for name, rows in batch.items()} for batch in rest],
            every[skip:],
        )


def test_batches_hold_similar_lengths_and_no_more_tokens_than_allowed(shards):
    buckets = length_buckets(192)
    heights: dict[int, list[int]] = {}
    for batch in batches_of(shards):
        height, width = batch["source"].shape
        longest_target = int((batch["target"] != IDS.target_pad).sum(axis=1).max())
        assert (
            batch["target"].shape
            == batch["expected"].shape
            == (height, min(-(-longest_target // 8) * 8, 49))
        )
        assert height * (width + batch["target"].shape[1]) <= LIMITS.batch_tokens
        shorter = max([bucket for bucket in buckets if bucket < width], default=0)
        lengths = (batch["source"] != SOURCE_PADDING).sum(axis=1)
        assert width in buckets and ((lengths > shorter) & (lengths <= width)).all()
        heights.setdefault(width, []).append(height)
    assert len(heights) > 4
    for bucket, bucket_heights in heights.items():
        full = 1500 // (bucket + 49)
        *complete, last = bucket_heights
        assert all(height == full for height in complete) and 1 <= last <= full


def test_length_buckets():
    assert length_buckets(100) == [32, 40, 48, 56, 64, 80, 96, 100]
    assert length_buckets(16) == [16]
    assert length_buckets(32) == [32]
    assert length_buckets(33) == [32, 33]


@pytest.mark.parametrize(
    ("bucket", "pieces", "rows"),
    [(51, 1, 15), (51, 4, 15), (51, 16, 15), (5000, 1, 1), (5000, 3, 1)],
)
def test_rows_of_a_batch(bucket, pieces, rows):
    # 1500 // (51 + 48 + 1) = 15
    assert bucket_rows(bucket, LIMITS._replace(pieces=pieces)) == rows


@pytest.mark.parametrize("pieces", [8])
def test_batches_hold_the_same_documents_whatever_the_pieces(shards, pieces):
    def documents(limits):
        batches = batches_of(shards, limits=limits)
        assert all(batch["source"].shape[0] % limits.pieces == 0 for batch in batches)
        sources = [batch["source"][batch["shard"] >= 0].tolist() for batch in batches]
        return [sorted(rows) for rows in sources]

    assert documents(LIMITS._replace(pieces=pieces)) == documents(LIMITS)


def test_fixed_shapes_are_one_shape_known_beforehand(shards, records):
    limits = LIMITS._replace(fixed_shapes=True, pieces=4)
    batches = batches_of(shards, limits=limits)
    assert sorted(rows_of(batches)) == sorted(records)
    # 1500 // (192 + 49) = 6 rows, filled up to a multiple of 4.
    expected = {"source": (8, 192), "target": (8, 49), "expected": (8, 49)}
    expected["shard"] = (8,)
    for batch in batches:
        assert {name: rows.shape for name, rows in batch.items()} == expected
    spec = distributed_batches(
        make_strategy("one"),
        shards,
        limits=limits,
        skip=0,
        ids=IDS,
        seed=1,
        epoch=0,
        shuffle_documents=100,
    ).element_spec
    assert {name: tuple(rows.shape) for name, rows in spec.items()} == expected


def test_long_sequences_are_cut(shards, records):
    batches = batches_of(
        shards, limits=LIMITS._replace(max_source_tokens=24, max_target_tokens=13)
    )
    assert sorted(rows_of(batches)) == sorted(
        (source[:24], target[:13], shard) for source, target, shard in records
    )
    assert {batch["source"].shape[1] for batch in batches} == {24}
    # No wider than the positions of the network.
    assert {batch["target"].shape[1] for batch in batches} == {14}


def test_special_tokens_that_end_a_source_stay_when_it_is_cut(shards, records):
    limits = LIMITS._replace(max_source_tokens=24, source_end_tokens=2)
    rows = rows_of(batches_of(shards, limits=limits))
    assert sorted(rows) == sorted(
        (source if len(source) <= 24 else source[:22] + source[-2:], *rest)
        for source, *rest in records
    )
    assert any(len(source) < 24 for source, _, _ in rows)


def test_sources_are_filled_up_with_the_id_of_no_token(shards, records):
    limits = LIMITS._replace(pieces=4, fixed_shapes=True)
    lengths = {tuple(source): len(source) for source, _, _ in records}
    rows = 0
    for batch in batches_of(shards, limits=limits):
        for source, shard in zip(batch["source"].tolist(), batch["shard"], strict=True):
            tokens = tuple(token for token in source if token != SOURCE_PADDING)
            rows += shard == -1
            length = 0 if shard == -1 else lengths[tokens]
            assert source[length:] == [SOURCE_PADDING] * (len(source) - length)
    assert rows > 0  # whole rows are filled up too
