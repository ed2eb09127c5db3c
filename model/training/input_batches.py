"""Batches for training from shards of records, in an order that depends on the seed and
the epoch alone.

The next batch is a function of the records, the settings, the epoch and the number of
batches before it, so a training that was interrupted goes on with exactly the batch
that would have been next.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from precis.model.training.batch_shapes import (
    BatchLimits,
    SpecialIds,
    batch_by_length,
    read_row,
)
from precis.model.training.mixture import Part, epoch_span, turns

_INTERLEAVED_SHARDS = 8  # read in turn where documents are shuffled


def epoch_batches(
    shards: list[str],
    *,
    limits: BatchLimits,
    ids: SpecialIds,
    seed: int,
    epoch: int,
    shuffle_documents: int,
    take: int = -1,
    mixture: Sequence[Part] = (),
) -> tf.data.Dataset:
    """One epoch in batches of similar source length, shuffled: all records of a split,
    or the share of each part of a mixture.

    Args:
      shards: local TFRecord files; of a mixture, those of all its parts.
      limits: shapes of the batches.
      ids: special ids.
      seed: fixes the order, together with the epoch.
      epoch: counted from 0.
      shuffle_documents: size of the shuffle buffer; 0 keeps the order of the files.
      take: stops after this many records; -1 takes all.
      mixture: the parts that the files belong to, if they are several; `mixture.py`
          says how an epoch of them is composed.

    Returns:
      A dataset of dictionaries:
          source     int32 [B, S]
          target     int32 [B, T], the start token first
          expected   int32 [B, T], the end token last
          shard      int32 [B], the position of each row's file in `shards`; -1 for a
                     row that is padding only
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
        lambda serialised, shard: read_row(serialised, shard, limits, ids),
        num_parallel_calls=2,
        deterministic=True,
    )
    dataset = batch_by_length(dataset, limits, ids)
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
    limits: BatchLimits,
    skip: int,
    **order: Any,
) -> Any:
    """`epoch_batches` without its first `skip` batches, each batch cut evenly over the
    replicas of a strategy.

    Every process reads all records and keeps the rows of its own replicas, so that the
    batches are those of a single device.
    """
    replicas = strategy.num_replicas_in_sync

    def rows_of_process(context: tf.distribute.InputContext) -> tf.data.Dataset:
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

    return strategy.distribute_datasets_from_function(rows_of_process)


def _hashed(name: str) -> int:
    """A seed of 32 bits from a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def _shard_order(count: int, name: str, is_shuffled: bool) -> np.ndarray:
    """The order in which a pass reads its files, int32 [count]; `name` seeds it."""
    order = np.arange(count, dtype="int32")
    if not is_shuffled:
        return order
    return np.random.default_rng(_hashed(name)).permutation(order)


def _documents(shards: list[str], order: Any, is_shuffled: bool) -> tf.data.Dataset:
    """One pass over some of the files: pairs of a serialised record and the position of
    its file in `shards`.

    Args:
      shards: all files.
      order: the positions of the files that are read, int32.
      is_shuffled: whether several files are read in turn.
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
    """The documents that an epoch takes from each part, in turn; the elements are those
    of `_documents`.
    """
    streams = []
    counts = []
    first_shard = 0
    for number, part in enumerate(mixture):
        start, end = epoch_span(mixture, number, epoch)
        # The passes of the first part have the seeds that epochs have without a
        # mixture. The other parts need seeds of their own: two sets made of one corpus
        # would otherwise give the same document at about the same time.
        seeds = [
            f"{seed}:{index}" + (f":{number}" if number else "")
            for index in range(start // part.records, -(-end // part.records))
        ]
        orders = [
            first_shard + _shard_order(part.shards, name, is_shuffled) for name in seeds
        ]
        passes = tf.data.Dataset.from_tensor_slices(
            np.reshape(orders, [-1, part.shards]).astype("int32")
        )
        documents = passes.flat_map(
            lambda order: _documents(shards, order, is_shuffled)
        )
        streams.append(documents.skip(start % part.records))
        counts.append(end - start)
        first_shard += part.shards
    return tf.data.Dataset.choose_from_datasets(
        streams, tf.data.Dataset.from_tensor_slices(turns(counts))
    )


def _split_rows(rows: tf.Tensor, parts: int) -> tf.Tensor:
    """[B, ...] -> [parts, B / parts, ...]."""
    return tf.reshape(
        rows,
        tf.concat([[parts, -1], tf.shape(rows)[1:]], axis=0),
    )
