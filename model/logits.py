"""Helpers for logits over the vocabulary, shared by networks, search and loss."""

from typing import Any

from keras import ops


def log_norm(logits: Any) -> Any:
    """Computes log(sum(exp(logits))) over the last axis, which is kept.

    One softmax and two maxima are faster than the usual passes: the largest probability
    is exp(largest logit - norm), and it is at least 1 / V, so its logarithm is safe.
    """
    largest = ops.max(logits, axis=-1, keepdims=True)
    return largest - ops.log(
        ops.max(ops.softmax(logits, axis=-1), axis=-1, keepdims=True)
    )


def logit_indices(ids: Any) -> Any:
    """Indices into logits [B, K, V] of token ids [B, K, M]: int32 [B * K * M, 3]."""
    batch, beams, count = ops.shape(ids)
    rows = ops.broadcast_to(
        ops.arange(batch, dtype="int32")[:, None, None], (batch, beams, count)
    )
    columns = ops.broadcast_to(
        ops.arange(beams, dtype="int32")[None, :, None], (batch, beams, count)
    )
    return ops.reshape(ops.stack([rows, columns, ids], axis=-1), (-1, 3))
