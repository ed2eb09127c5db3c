"""Helpers for logits over the vocabulary, shared by networks, search and loss."""

from typing import Any

from precis.model.backend import ops, write_rows


def log_norm(logits: Any) -> Any:
    """Computes log(sum(exp(logits))) over the last axis, which is kept.

    A softmax and two maxima are faster than the usual passes. The largest probability
    is exp(largest logit - norm) and at least 1 / V, so its logarithm is finite.
    """
    largest = ops.max(logits, axis=-1, keepdims=True)
    return largest - ops.log(
        ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True)
    )


def lower_chosen(logits: Any, ids: Any, is_chosen: Any, value: float) -> Any:
    """Lowers the logits of chosen tokens to at most a value.

    Args:
      logits: float32 [B, K, V]; overwritten in place.
      ids: int32 [B, K, M], token ids, perhaps with repetitions.
      is_chosen: bool [B, K, M].
      value: the maximum of a chosen logit.
    """
    places = _chosen_places(logits, ids, is_chosen)
    lowered = ops.minimum(read_places(logits, places), value)
    return write_places(logits, places, lowered)


def restore_chosen(lowered: Any, logits: Any, ids: Any, is_chosen: Any) -> Any:
    """Restores the logits of chosen tokens.

    Args:
      lowered: float32 [B, K, V], at most as large as `logits`; overwritten in place.
      logits: float32 [B, K, V].
      ids, is_chosen: as for `lower_chosen`.
    """
    places = _chosen_places(logits, ids, is_chosen)
    return write_places(lowered, places, read_places(logits, places))


def _chosen_places(logits: Any, ids: Any, is_chosen: Any) -> Any:
    """The places of the logits of chosen tokens in flattened logits, int32 [N].

    Only chosen tokens, as they are few and an update is slow.
    """
    (chosen,) = ops.nonzero(ops.reshape(is_chosen, (-1,)))
    chosen = ops.cast(chosen, "int32")
    hypotheses = chosen // ops.shape(ids)[-1]
    tokens = ops.take(ops.reshape(ids, (-1,)), chosen)
    return hypotheses * ops.shape(logits)[-1] + tokens


def logit_places(logits: Any, ids: Any) -> Any:
    """The places of the logits of token ids in flattened logits.

    Args:
      logits: [B, K, V].
      ids: int32, broadcast to [B, K, M].

    Returns:
      int32 [B, K, M], from 0 to B * K * V - 1.
    """
    batch, beams, size = ops.shape(logits)
    hypotheses = ops.arange(batch * beams, dtype="int32")
    return ops.reshape(hypotheses, (batch, beams, 1)) * size + ids


def read_places(logits: Any, places: Any) -> Any:
    """The logits [B, K, V] at places from `logit_places`; float32 of the shape of
    `places`.
    """
    return ops.take(ops.reshape(logits, (-1,)), places)


def write_places(logits: Any, places: Any, values: Any) -> Any:
    """Replaces the logits at some places.

    Args:
      logits: float32 [B, K, V]; overwritten in place.
      places: int32 of any shape, from `logit_places`; repeated places must have equal
        values.
      values: float32 of the same shape.
    """
    written = write_rows(
        ops.reshape(logits, (-1, 1)),
        ops.reshape(places, (-1,)),
        ops.reshape(values, (-1, 1)),
    )
    return ops.reshape(written, ops.shape(logits))


def reduce_logits(logits: Any, ids: Any, values: Any, reduction: str) -> Any:
    """Combines the logits of token ids, which may repeat, with values.

    Args:
      logits: float32 [B, K, V].
      ids: int32 [B, K, M].
      values: float32 [B, K, M].
      reduction: the operation, as in `ops.scatter_update`.
    """
    batch, beams, size = ops.shape(logits)
    hypotheses = ops.reshape(
        ops.arange(batch * beams, dtype="int32"), (batch, beams, 1)
    )
    # Two indices, as in training a flat place may exceed int32.
    places = ops.stack([ops.broadcast_to(hypotheses, ops.shape(ids)), ids], axis=-1)
    joined = ops.scatter_update(
        ops.reshape(logits, (-1, size)),
        ops.reshape(places, (-1, 2)),
        ops.reshape(values, (-1,)),
        reduction=reduction,
    )
    return ops.reshape(joined, ops.shape(logits))
