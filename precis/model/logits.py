"""Helpers for logits over the vocabulary, shared by networks, search and loss."""

from typing import Any

from precis.model.backend import ops, write_rows


def log_norm(logits: Any) -> Any:
    """Computes log(sum(exp(logits))) over the last axis, which is kept.

    One softmax and two maxima are faster than the usual passes: the largest probability
    is exp(largest logit - norm), and it is at least 1 / V, so its logarithm is safe.
    """
    largest = ops.max(logits, axis=-1, keepdims=True)
    return largest - ops.log(
        ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True)
    )


def lower_chosen(logits: Any, ids: Any, is_chosen: Any, value: float) -> Any:
    """Lowers logits of chosen tokens to a value, where they are above it.

    Args:
      logits: float32 [B, K, V]; is written in place.
      ids: int32 [B, K, M], token ids; one may stand there twice.
      is_chosen: bool [B, K, M].
      value: the highest logit of a chosen token.
    """
    places = _chosen_places(logits, ids, is_chosen)
    lowered = ops.minimum(read_places(logits, places), value)
    return write_places(logits, places, lowered)


def restore_chosen(lowered: Any, logits: Any, ids: Any, is_chosen: Any) -> Any:
    """Gives chosen tokens their logits back.

    Args:
      lowered: float32 [B, K, V], at most as large as `logits`; is written in place.
      logits: float32 [B, K, V].
      ids, is_chosen: as for `lower_chosen`.
    """
    places = _chosen_places(logits, ids, is_chosen)
    return write_places(lowered, places, read_places(logits, places))


def _chosen_places(logits: Any, ids: Any, is_chosen: Any) -> Any:
    """Where the logits of chosen tokens stand among all, int32 [N].

    An update takes a hundred times as long as to see that there is none, and few tokens
    are chosen.
    """
    (chosen,) = ops.nonzero(ops.reshape(is_chosen, (-1,)))
    chosen = ops.cast(chosen, "int32")
    hypotheses = chosen // ops.shape(ids)[-1]
    tokens = ops.take(ops.reshape(ids, (-1,)), chosen)
    return hypotheses * ops.shape(logits)[-1] + tokens


def logit_places(logits: Any, ids: Any) -> Any:
    """Where the logits of token ids stand among all.

    Args:
      logits: [B, K, V].
      ids: int32, broadcast to [B, K, M].

    Returns:
      int32 [B, K, M], from 0 to before B * K * V.
    """
    batch, beams, size = ops.shape(logits)
    hypotheses = ops.arange(batch * beams, dtype="int32")
    return ops.reshape(hypotheses, (batch, beams, 1)) * size + ids


def read_places(logits: Any, places: Any) -> Any:
    """The logits [B, K, V] at some places, which `logit_places` finds; float32 of the
    shape of the places.
    """
    return ops.take(ops.reshape(logits, (-1,)), places)


def write_places(logits: Any, places: Any, values: Any) -> Any:
    """Logits with other values at some places.

    Args:
      logits: float32 [B, K, V]; is written in place.
      places: int32 of any shape, from `logit_places`; where one stands twice, its
        values are equal.
      values: float32 of the same shape.
    """
    written = write_rows(
        ops.reshape(logits, (-1, 1)),
        ops.reshape(places, (-1,)),
        ops.reshape(values, (-1, 1)),
    )
    return ops.reshape(written, ops.shape(logits))


def reduce_logits(logits: Any, ids: Any, values: Any, reduction: str) -> Any:
    """Logits of token ids joined with values; a token may stand there twice.

    Args:
      logits: float32 [B, K, V].
      ids: int32 [B, K, M].
      values: float32 [B, K, M].
      reduction: how, as in `ops.scatter_update`.
    """
    batch, beams, size = ops.shape(logits)
    hypotheses = ops.reshape(
        ops.arange(batch * beams, dtype="int32"), (batch, beams, 1)
    )
    # Two indices: in a training one place may be beyond what int32 holds.
    places = ops.stack([ops.broadcast_to(hypotheses, ops.shape(ids)), ids], axis=-1)
    joined = ops.scatter_update(
        ops.reshape(logits, (-1, size)),
        ops.reshape(places, (-1, 2)),
        ops.reshape(values, (-1,)),
        reduction=reduction,
    )
    return ops.reshape(joined, ops.shape(logits))
