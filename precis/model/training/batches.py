"""Training batches from shards of records, in an order that depends only on the seed
and the epoch.

A batch depends only on the records, the settings, the epoch and its number, so an
interrupted training resumes with exactly the next batch.

one row of a batch, for targets of up to 8 tokens
source     5 9 7 4 PAD PAD PAD ...       padded to a length of `length_buckets`
target     START 7 8 PAD PAD PAD PAD PAD
expected   7 8 END PAD PAD PAD PAD PAD   padded to a multiple of 8, like the target

An epoch of several record sets has all documents of each set, evenly mixed:

    sets of 6 and 2 documents    0 0 1 0 0 0 1 0
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from precis.model.network.config import SOURCE_PADDING
from precis.model.records.example import feature_spec

_INTERLEAVED_SHARDS = 8  # shards that are read in turn if documents are shuffled


class BatchSettings(NamedTuple):
    """The shapes of batches, and the ids that they are padded with.

    Attributes:
      max_source_tokens: the length at which sources are cut.
      max_target_tokens: the length at which targets are cut.
      batch_tokens: the maximum of padded source and target tokens in a batch, unless a
          single row has more.
      target_pad: the padding of targets; sources are padded with SOURCE_PADDING.
      start: the first token of a target.
      end: the token that is expected after a target.
      pieces: the number of equal parts that a batch is cut into; rows of padding are
          added for it. The documents of a batch do not depend on it.
      fixed_shapes: whether all batches have one shape that is known in advance.
      source_end_tokens: the number of special tokens at the end of every source, which
          are kept when a source is cut.
    """

    max_source_tokens: int
    max_target_tokens: int
    batch_tokens: int
    target_pad: int
    start: int
    end: int
    pieces: int = 1
    fixed_shapes: bool = False
    source_end_tokens: int = 0

    @property
    def padding(self) -> dict[str, int]:
        """The padding of each sequence of a batch."""
        pad = self.target_pad
        return {"source": SOURCE_PADDING, "target": pad, "expected": pad}


def epoch_batches(
    sets: Sequence[Sequence[str]],
    settings: BatchSettings,
    *,
    seed: int,
    epoch: int,
    shuffle_documents: int,
    documents: Sequence[int] = (),
    take: int = -1,
) -> tf.data.Dataset:
    """One epoch in batches of similar source length, shuffled.

    Args:
      sets: local TFRecord files of each record set.
      settings: shapes and special ids.
      seed: determines the order, together with the epoch.
      epoch: the number of the epoch, from 0.
      shuffle_documents: the size of the shuffle buffer; 0 keeps the order of the files.
      documents: the number of documents of each set; needed only for several sets.
      take: the maximum number of records; -1 takes all.

    Returns:
      A dataset of dictionaries:
          source     int32 [B, S]
          target     int32 [B, T], the start token first
          expected   int32 [B, T], the end token last
    """
    is_shuffled = shuffle_documents > 0
    # Each set has its own name, or two sets made from one corpus would give the same
    # document at about the same time.
    streams = [
        _read_documents(
            shards, f"{seed}:{epoch}" + (f":{number}" if number else ""), is_shuffled
        )
        for number, shards in enumerate(sets)
    ]
    dataset = streams[0]
    if len(streams) > 1:
        turns = tf.data.Dataset.from_tensor_slices(mixed_turns(documents))
        dataset = tf.data.Dataset.choose_from_datasets(streams, turns)
    if is_shuffled:
        dataset = dataset.shuffle(
            shuffle_documents,
            seed=_hashed(f"{seed}:{epoch}"),
            reshuffle_each_iteration=False,
        )
    dataset = dataset.take(take).map(
        lambda serialised: _read_row(serialised, settings), num_parallel_calls=2
    )
    options = tf.data.Options()
    options.deterministic = True
    return _batch_by_length(dataset, settings).with_options(options)


def distributed_batches(
    strategy: tf.distribute.Strategy, *arguments: Any, skip: int, **order: Any
) -> Any:
    """`epoch_batches` without the first `skip` batches, with each batch split evenly
    among the replicas of a strategy.
    """
    replicas = strategy.num_replicas_in_sync

    def rows_of_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
        batches = epoch_batches(*arguments, **order).skip(skip)
        if replicas > 1:
            count = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * count
            batches = batches.map(
                lambda batch: {
                    name: split_rows(rows, replicas)[first : first + count]
                    for name, rows in batch.items()
                }
            ).unbatch()
        return batches.prefetch(4)

    return strategy.distribute_datasets_from_function(rows_of_host)


def mixed_turns(counts: Sequence[int]) -> np.ndarray:
    """The number of the set that each document of an epoch comes from, int64 [sum of
    counts].

    The documents of each set are evenly spread over the epoch.

        mixed_turns([6, 2]) -> 0 0 1 0 0 0 1 0

    Args:
      counts: the number of documents of each set.
    """
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(places, kind="stable")]


def _hashed(name: str) -> int:
    """A 32-bit seed from a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def _read_documents(
    shards: Sequence[str], name: str, is_shuffled: bool
) -> tf.data.Dataset:
    """The serialised records of a set.

    Args:
      shards: the files.
      name: the seed of the order of the files.
      is_shuffled: whether the files are in random order and several are read in turn.
    """
    if not is_shuffled:
        return tf.data.TFRecordDataset(list(shards))
    order = np.random.default_rng(_hashed(name)).permutation(len(shards))
    dataset = tf.data.Dataset.from_tensor_slices([shards[place] for place in order])
    return dataset.interleave(
        tf.data.TFRecordDataset, cycle_length=min(_INTERLEAVED_SHARDS, len(shards))
    )


def split_rows(rows: tf.Tensor, parts: int) -> tf.Tensor:
    """Splits rows into equal parts: [B, ...] -> [parts, B / parts, ...]."""
    return tf.reshape(rows, tf.concat([[parts, -1], tf.shape(rows)[1:]], axis=0))


def length_buckets(longest: int) -> list[int]:
    """The lengths that sources are padded to: multiples of 8 that grow by about a
    quarter, and finally `longest`.

        length_buckets(100) -> [32, 40, 48, 56, 64, 80, 96, 100]
    """
    buckets = []
    length = 32
    while length < longest:
        buckets.append(length)
        length = max(length + 8, int(length * 1.25) // 8 * 8)
    return [*buckets, longest]


def _read_row(serialised: tf.Tensor, settings: BatchSettings) -> dict[str, tf.Tensor]:
    """Reads one record, a string scalar, as a row of each tensor of a batch, cut but
    not padded.

        target of the record     7 8
        target of the row        START 7 8
        expected of the row      7 8 END
    """
    features = tf.io.parse_single_example(serialised, feature_spec())
    source = features["source"]
    kept_end = min(settings.source_end_tokens, settings.max_source_tokens)
    text_end = tf.size(source) - kept_end
    text = source[:text_end][: settings.max_source_tokens - kept_end]
    source = tf.concat([text, source[text_end:]], axis=0)
    target = tf.cast(features["target"][: settings.max_target_tokens], tf.int32)
    return {
        "source": tf.cast(source, tf.int32),
        "target": tf.concat([[settings.start], target], axis=0),
        "expected": tf.concat([target, [settings.end]], axis=0),
    }


def _batch_by_length(
    dataset: tf.data.Dataset, settings: BatchSettings
) -> tf.data.Dataset:
    """Collects rows of `_read_row` into padded batches of similar source length."""
    longest = settings.max_source_tokens
    buckets = [longest] if settings.fixed_shapes else length_buckets(longest)
    longest_row = settings.max_target_tokens + 1
    rows = [
        max(settings.batch_tokens // (bucket + longest_row), 1) for bucket in buckets
    ]
    dataset = dataset.bucket_by_sequence_length(
        element_length_func=lambda row: tf.size(row["source"]),
        bucket_boundaries=[bucket + 1 for bucket in buckets[:-1]],
        bucket_batch_sizes=rows,
        padded_shapes={name: [None] for name in settings.padding},  # pyright: ignore[reportArgumentType]  # A list is a shape.
        padding_values=settings.padding,
    )
    return dataset.map(
        lambda batch: _pad_batch(batch, buckets, rows, settings), num_parallel_calls=2
    )


def _pad_batch(
    batch: dict[str, tf.Tensor],
    buckets: list[int],
    rows: list[int],
    settings: BatchSettings,
) -> dict[str, tf.Tensor]:
    """Pads the sequences of a batch, and adds rows of padding.

    Sources are padded to the length of their bucket, targets to a multiple of 8, and
    rows to a multiple of the pieces. With `fixed_shapes`, targets are padded to the
    maximum length and rows to a full batch, and the shapes are static.

    Args:
      batch: sequences of one bucket, each padded to the longest of them.
      buckets: the lengths of the buckets.
      rows: the number of rows of a full batch for each bucket.
      settings: as in `epoch_batches`.
    """
    pieces = settings.pieces
    count, width = tf.unstack(tf.shape(batch["source"]))
    # The network has no positions after the maximum target length.
    target_width = settings.max_target_tokens + 1
    if settings.fixed_shapes:
        source_width = buckets[0]
        all_rows = -(-rows[0] // pieces) * pieces
    else:
        source_width = tf.gather(
            buckets, tf.searchsorted(tf.constant(buckets), [width])[0]
        )
        longest_target = tf.shape(batch["target"])[1]
        target_width = tf.minimum(-(-longest_target // 8) * 8, target_width)
        all_rows = -(-count // pieces) * pieces
    widths = {"source": source_width, "target": target_width, "expected": target_width}
    padded = {}
    for name, to_width in widths.items():
        sequences = batch[name]
        padded[name] = tf.pad(
            sequences,
            [[0, all_rows - count], [0, to_width - tf.shape(sequences)[1]]],
            constant_values=settings.padding[name],
        )
        if settings.fixed_shapes:
            padded[name] = tf.ensure_shape(padded[name], [all_rows, to_width])
    return padded
