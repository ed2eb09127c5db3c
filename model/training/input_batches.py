"""Batches for training from a folder of records, in an order that depends on the seed
and the epoch alone.

Which batch comes next is a function of (records, settings, epoch, number of batches
before it), so a training that was interrupted goes on with exactly the batch it would
have had.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from precis.model import files
from precis.model.errors import DataError
from precis.model.records.dataset import DatasetInfo
from precis.model.records.example import feature_spec
from precis.model.training.mixture import Part, epoch_span, turns

_INTERLEAVED_SHARDS = 8  # read in turn where documents are shuffled


class Limits(NamedTuple):
    """What shapes batches.

    Attributes:
      max_source_tokens, max_target_tokens: longer sequences are cut.
      batch_tokens: padded source and target tokens of a batch, at most, unless one row
          is more.
      pieces: how many equal pieces a batch is cut into; rows of padding fill up the
          last. The documents of a batch do not depend on it.
      fixed_shapes: whether batches of a bucket all have one shape.
      source_end_tokens: how many special tokens end every source, and still do when it
          is cut.
    """

    max_source_tokens: int
    max_target_tokens: int
    batch_tokens: int
    pieces: int
    fixed_shapes: bool
    source_end_tokens: int = 0


class SpecialIds(NamedTuple):
    """The ids that frame a target and fill rows up.

    Attributes:
      pad, start, end: the target's.
      source_pad: fills sources up; None where it is `pad`, as with one tokenizer for
          both.
    """

    pad: int
    start: int
    end: int
    source_pad: int | None = None

    @property
    def fillers(self) -> dict[str, int]:
        """What fills each sequence of a batch up."""
        return {
            "source": self.pad if self.source_pad is None else self.source_pad,
            "target": self.pad,
            "expected": self.pad,
        }


def check_shards(
    folder: str, info: DatasetInfo, split: str, *, staging: str
) -> list[str]:
    """The local paths of a split's shards, each checked against the checksum in
    `dataset.json`.

    Shards on an object store are copied to the folder `staging` first, as TensorFlow
    reads those only with credentials of its own.

    Raises:
      UsageError: there is no such split.
      DataError: the split holds no records, or a shard is missing or damaged.
    """
    if not info.records(split):
        raise DataError(
            f"{folder}: the split {split!r} holds no records; prepare a larger corpus or other shares of the splits"
        )
    paths = []
    for shard in info.splits[split]:
        path = files.join(folder, shard.file)
        again = "run the same `precis prepare` command into an empty folder"
        if not files.exists(path):
            raise DataError(f"{path}: the shard is missing; {again}")
        if not files.is_local(path):
            path = _stage(path, os.path.join(staging, shard.file))
        if files.sha256_file(path) != shard.sha256:
            raise DataError(
                f"{files.join(folder, shard.file)}: the checksum differs from dataset.json's, so the shard is damaged; {again}"
            )
        paths.append(path)
    return paths


def _stage(path: str, copy: str) -> str:
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with files.open_read(path) as source, open(copy, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def length_buckets(longest: int) -> list[int]:
    """Lengths that sources are padded to: multiples of 8 that grow by about a quarter,
    the last one `longest`.

    length_buckets(100) -> [32, 40, 48, 56, 64, 80, 96, 100]
    """
    buckets, length = [], 32
    while length < longest:
        buckets.append(length)
        length = max(length + 8, int(length * 1.25) // 8 * 8)
    return [*buckets, longest]


def epoch_batches(
    shards: list[str],
    *,
    limits: Limits,
    ids: SpecialIds,
    seed: int,
    epoch: int,
    shuffle_documents: int,
    take: int = -1,
    mixture: Sequence[Part] = (),
) -> tf.data.Dataset:
    """All records of a split once, or those that a mixture gives to an epoch, shuffled,
    in batches of similar source length.

    Args:
      shards: local TFRecord files, of a mixture those of all its parts.
      limits: shapes of the batches.
      ids: special ids.
      seed, epoch: together they fix the order.
      shuffle_documents: size of the shuffle buffer; 0 keeps the order of the files.
      take: stops after this many records; -1 takes all.
      mixture: the record sets that the files belong to, if they are several;
          `mixture.py` says what an epoch of them is.

    Returns:
      A dataset of dictionaries: source int32 [B, S], target int32 [B, T] with the start
          token first, expected int32 [B, T] with the end
      token last, shard int32 [B] the position of each row's file in `shards`. Rows of
      padding only fill a batch up; their shard is -1.
    """
    is_shuffled = shuffle_documents > 0
    if mixture:
        dataset = _mixed_documents(
            shards, mixture, seed=seed, epoch=epoch, is_shuffled=is_shuffled
        )
    else:
        order = _shard_order(len(shards), f"{seed}:{epoch}", is_shuffled)
        dataset = _documents(shards, order, is_shuffled)
    if is_shuffled:
        dataset = dataset.shuffle(
            shuffle_documents,
            seed=_hashed(f"{seed}:{epoch}"),
            reshuffle_each_iteration=False,
        )
    dataset = dataset.take(take).map(
        lambda serialised, shard: _read_row(serialised, shard, limits, ids),
        num_parallel_calls=2,
        deterministic=True,
    )
    dataset = _batch_by_length(dataset, limits, ids)
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    return dataset.with_options(options)


def distributed_batches(
    strategy: tf.distribute.Strategy,
    shards: list[str],
    *,
    limits: Limits,
    skip: int,
    **order: Any,
) -> Any:
    """`epoch_batches` without its first `skip` batches, each batch cut evenly over the
    replicas of a strategy.

    Every process reads all records and keeps the rows of its own replicas, so that the
    batches are those of a single device.
    """
    replicas = strategy.num_replicas_in_sync

    def own_rows(context: tf.distribute.InputContext) -> tf.data.Dataset:
        batches = epoch_batches(shards, limits=limits, **order).skip(skip)
        if replicas > 1:
            count = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * count
            batches = batches.map(
                lambda batch: {
                    name: _split_rows(rows, replicas)[first : first + count]
                    for name, rows in batch.items()
                }
            )
            batches = batches.unbatch()
        return batches.prefetch(4)

    return strategy.distribute_datasets_from_function(own_rows)


def _hashed(name: str) -> int:
    """A seed of 32 bits."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def _shard_order(count: int, name: str, is_shuffled: bool) -> np.ndarray:
    """The order in which a pass reads its files, int32 [count]; `name` seeds it."""
    order = np.arange(count, dtype="int32")
    return (
        np.random.default_rng(_hashed(name)).permutation(order)
        if is_shuffled
        else order
    )


def _documents(shards: list[str], order: Any, is_shuffled: bool) -> tf.data.Dataset:
    """One pass over some of the files: serialised records, each with the position of
    its file; int32 `order` says which.
    """
    dataset = tf.data.Dataset.from_tensor_slices((tf.gather(shards, order), order))
    return dataset.interleave(
        lambda path, shard: tf.data.TFRecordDataset(path).map(
            lambda serialised: (serialised, shard)
        ),
        cycle_length=min(_INTERLEAVED_SHARDS, order.shape[0]) if is_shuffled else 1,
    )


def _mixed_documents(
    shards: list[str],
    mixture: Sequence[Part],
    *,
    seed: int,
    epoch: int,
    is_shuffled: bool,
) -> tf.data.Dataset:
    """What an epoch takes from each part, in turn; elements as those of `_documents`."""
    streams, counts, before = [], [], 0
    for number, part in enumerate(mixture):
        start, end = epoch_span(mixture, number, epoch)
        # The first part's passes are seeded as epochs are without a mixture; the
        # others' not, or two sets made of one corpus would give the same document at
        # about the same time.
        names = [
            f"{seed}:{index}" + (f":{number}" if number else "")
            for index in range(start // part.records, -(-end // part.records))
        ]
        orders = [
            before + _shard_order(part.shards, name, is_shuffled) for name in names
        ]
        passes = tf.data.Dataset.from_tensor_slices(
            np.reshape(orders, [-1, part.shards]).astype("int32")
        )
        streams.append(
            passes.flat_map(lambda order: _documents(shards, order, is_shuffled)).skip(
                start % part.records
            )
        )
        counts.append(end - start)
        before += part.shards
    return tf.data.Dataset.choose_from_datasets(
        streams, tf.data.Dataset.from_tensor_slices(turns(counts))
    )


def _split_rows(rows: tf.Tensor, parts: int) -> tf.Tensor:
    """[B, ...] -> [parts, B / parts, ...]."""
    return tf.reshape(
        rows,
        tf.concat([[parts, tf.shape(rows)[0] // parts], tf.shape(rows)[1:]], axis=0),
    )


def bucket_rows(bucket: int, limits: Limits) -> int:
    """The number of documents in a full batch of sources padded to `bucket`."""
    return max(limits.batch_tokens // (bucket + limits.max_target_tokens + 1), 1)


def _read_row(
    serialised: tf.Tensor, shard: tf.Tensor, limits: Limits, ids: SpecialIds
) -> dict[str, tf.Tensor]:
    """One record as the rows of a batch, not padded yet.

    target 7 8 -> target START 7 8, expected 7 8 END
    """
    features = tf.io.parse_single_example(serialised, feature_spec())
    source, kept = (
        features["source"],
        min(limits.source_end_tokens, limits.max_source_tokens),
    )
    text_end = tf.size(source) - kept
    source = tf.concat(
        [source[:text_end][: limits.max_source_tokens - kept], source[text_end:]],
        axis=0,
    )
    target = tf.cast(features["target"][: limits.max_target_tokens], tf.int32)
    return {
        "source": tf.cast(source, tf.int32),
        "target": tf.concat([[ids.start], target], axis=0),
        "expected": tf.concat([target, [ids.end]], axis=0),
        "shard": shard,
    }


def _batch_by_length(
    dataset: tf.data.Dataset, limits: Limits, ids: SpecialIds
) -> tf.data.Dataset:
    buckets = length_buckets(limits.max_source_tokens)
    rows = [bucket_rows(bucket, limits) for bucket in buckets]
    dataset = dataset.bucket_by_sequence_length(
        element_length_func=lambda row: tf.size(row["source"]),
        bucket_boundaries=[bucket + 1 for bucket in buckets[:-1]],
        bucket_batch_sizes=rows,
        padded_shapes={
            "source": [None],
            "target": [None],
            "expected": [None],
            "shard": [],
        },
        padding_values={**ids.fillers, "shard": 0},
    )
    return dataset.map(
        lambda batch: _pad_batch(batch, buckets, rows, limits, ids.fillers),
        num_parallel_calls=2,
        deterministic=True,
    )


def _pad_batch(
    batch: dict[str, tf.Tensor],
    buckets: list[int],
    rows: list[int],
    limits: Limits,
    fillers: dict[str, int],
) -> dict[str, tf.Tensor]:
    """Pads sources to their bucket, targets to a multiple of 8 or to the longest
    allowed, and rows to a multiple of the pieces.
    """
    count, width = tf.unstack(tf.shape(batch["source"]))
    bucket = tf.searchsorted(tf.constant(buckets), [width])[0]
    longest = tf.shape(batch["target"])[1]
    most = tf.constant(limits.max_target_tokens + 1)
    if limits.fixed_shapes:
        least_rows, target_width = tf.gather(rows, bucket), most
    else:
        # No wider than the longest allowed: the network has no positions beyond.
        least_rows, target_width = count, tf.minimum(-(-longest // 8) * 8, most)
    filling = [[0, -(-least_rows // limits.pieces) * limits.pieces - count]]

    def fill(name: str, to_width: tf.Tensor) -> tf.Tensor:
        return tf.pad(
            batch[name],
            filling + [[0, to_width - tf.shape(batch[name])[1]]],
            constant_values=fillers[name],
        )

    return {
        "source": fill("source", tf.gather(buckets, bucket)),
        "target": fill("target", target_width),
        "expected": fill("expected", target_width),
        "shard": tf.pad(batch["shard"], filling, constant_values=-1),
    }
