"""The shapes of batches: records cut to the limits, collected by length, and padded.

one row of a batch after its record was read, for targets of up to 8 tokens
source     5 9 7 4 PAD PAD PAD ...       padded to a length of `length_buckets`
target     START 7 8 PAD PAD PAD PAD PAD
expected   7 8 END PAD PAD PAD PAD PAD   padded to a multiple of 8, as the target
"""

from typing import NamedTuple

import tensorflow as tf

from precis.model.network.config import SOURCE_PADDING
from precis.model.records.example import feature_spec


class BatchLimits(NamedTuple):
    """The settings that decide the shapes of batches.

    Attributes:
      max_source_tokens: longer sources are cut.
      max_target_tokens: longer targets are cut.
      batch_tokens: padded source and target tokens of a batch, at most, unless one row
          is more.
      pieces: the number of equal pieces that a batch is cut into; rows of padding fill
          the batch up. The documents of a batch do not depend on it.
      fixed_shapes: whether all batches have one shape, known before any is read.
      source_end_tokens: the number of special tokens at the end of every source; they
          stay when a source is cut.
    """

    max_source_tokens: int
    max_target_tokens: int
    batch_tokens: int
    pieces: int
    fixed_shapes: bool
    source_end_tokens: int = 0


class SpecialIds(NamedTuple):
    """The ids that frame targets and fill them up. SOURCE_PADDING fills sources up.

    Attributes:
      target_pad: fills targets up.
      start: the first token of a target.
      end: the token that is expected after a target.
    """

    target_pad: int
    start: int
    end: int

    @property
    def padding(self) -> dict[str, int]:
        """The id that fills each sequence of a batch up."""
        return {
            "source": SOURCE_PADDING,
            "target": self.target_pad,
            "expected": self.target_pad,
        }


def length_buckets(longest: int) -> list[int]:
    """The lengths that sources are padded to: multiples of 8 that grow by about a
    quarter, and `longest` as the last.

        length_buckets(100) -> [32, 40, 48, 56, 64, 80, 96, 100]
    """
    buckets = []
    length = 32
    while length < longest:
        buckets.append(length)
        length = max(length + 8, int(length * 1.25) // 8 * 8)
    return [*buckets, longest]


def source_lengths(limits: BatchLimits) -> list[int]:
    """The lengths that sources of these limits are padded to."""
    if limits.fixed_shapes:
        return [limits.max_source_tokens]
    return length_buckets(limits.max_source_tokens)


def bucket_rows(bucket: int, limits: BatchLimits) -> int:
    """The number of documents in a full batch of sources padded to `bucket`."""
    return max(limits.batch_tokens // (bucket + limits.max_target_tokens + 1), 1)


def read_row(
    serialised: tf.Tensor, shard: tf.Tensor, limits: BatchLimits, ids: SpecialIds
) -> dict[str, tf.Tensor]:
    """One record as a row of each tensor of a batch, cut but not padded.

        target of the record     7 8
        target of the row        START 7 8
        expected of the row      7 8 END

    Args:
      serialised: the record, a string scalar.
      shard: the position of its file, int32 scalar.
      limits: of which the lengths count.
      ids: of which the start and the end count.
    """
    features = tf.io.parse_single_example(serialised, feature_spec())
    source = features["source"]
    kept_end = min(limits.source_end_tokens, limits.max_source_tokens)
    text_end = tf.size(source) - kept_end
    text = source[:text_end][: limits.max_source_tokens - kept_end]
    source = tf.concat([text, source[text_end:]], axis=0)
    target = tf.cast(features["target"][: limits.max_target_tokens], tf.int32)
    return {
        "source": tf.cast(source, tf.int32),
        "target": tf.concat([[ids.start], target], axis=0),
        "expected": tf.concat([target, [ids.end]], axis=0),
        "shard": shard,
    }


def batch_by_length(
    dataset: tf.data.Dataset, limits: BatchLimits, ids: SpecialIds
) -> tf.data.Dataset:
    """Collects rows of `read_row` into padded batches of similar source length."""
    buckets = source_lengths(limits)
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
        padding_values={**ids.padding, "shard": 0},
    )
    return dataset.map(
        lambda batch: _pad_batch(batch, buckets, rows, limits, ids.padding),
        num_parallel_calls=2,
        deterministic=True,
    )


def _pad_batch(
    batch: dict[str, tf.Tensor],
    buckets: list[int],
    rows: list[int],
    limits: BatchLimits,
    padding: dict[str, int],
) -> dict[str, tf.Tensor]:
    """Pads a batch in both directions.

    Sources are padded to their bucket and targets to a multiple of 8; rows of padding
    are added up to a multiple of the pieces. With `fixed_shapes`, targets are padded to
    the longest allowed and rows to a full batch, and the shapes are part of the type.

    Args:
      batch: sequences of one bucket, each padded to the longest of them.
      buckets: the lengths of the buckets.
      rows: the rows of a full batch of each bucket.
      limits: as in `epoch_batches`.
      padding: the id that fills each sequence up.
    """
    count, width = tf.unstack(tf.shape(batch["source"]))
    bucket = tf.searchsorted(tf.constant(buckets), [width])[0]
    longest_target = tf.shape(batch["target"])[1]
    max_width = limits.max_target_tokens + 1
    if limits.fixed_shapes:
        min_rows = tf.gather(rows, bucket)
        target_width = max_width
    else:
        min_rows = count
        # The network has no positions beyond the longest target allowed.
        target_width = tf.minimum(-(-longest_target // 8) * 8, max_width)
    all_rows = -(-min_rows // limits.pieces) * limits.pieces
    added_rows = [[0, all_rows - count]]

    def pad(name: str, to_width: tf.Tensor) -> tf.Tensor:
        return tf.pad(
            batch[name],
            added_rows + [[0, to_width - tf.shape(batch[name])[1]]],
            constant_values=padding[name],
        )

    padded = {
        "source": pad("source", tf.gather(buckets, bucket)),
        "target": pad("target", target_width),
        "expected": pad("expected", target_width),
        "shard": tf.pad(batch["shard"], added_rows, constant_values=-1),
    }
    if not limits.fixed_shapes:
        return padded
    full = -(-rows[0] // limits.pieces) * limits.pieces
    widths = {"source": buckets[0], "target": max_width, "expected": max_width}
    return {
        name: tf.ensure_shape(rows, [full, widths[name]] if name in widths else [full])
        for name, rows in padded.items()
    }
