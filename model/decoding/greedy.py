"""Greedy search: the most likely token at every step."""

from collections.abc import Callable
from typing import Any

from keras import ops

from model.config import DecodingConfig
from model.decoding.rules import Hypotheses, continuation_log_probs, length_penalty


def greedy_search(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    cache: Any,
    *,
    batch: Any,
    config: DecodingConfig,
    start_id: int,
    end_id: int,
    pad_id: int,
    suppressed: Any,
) -> Hypotheses:
    """Writes one summary per document; the arguments are those of `beam_search`, for one beam.

    It is not beam search of width 1, which goes on after an end that was only the second choice.
    """
    length = config.max_summary_tokens

    def going(index: Any, tokens: Any, log_probs: Any, ended: Any, _: Any) -> Any:
        return ops.logical_and(index < length, ops.logical_not(ops.all(ended)))

    def advance(index: Any, tokens: Any, log_probs: Any, ended: Any, cache: Any) -> tuple[Any, ...]:
        logits, cache = step(ops.take(tokens, index, axis=2), cache, index)
        scores = continuation_log_probs(logits, tokens, index, config=config, end_id=end_id, suppressed=suppressed)  # [B, 1, V]
        best = ops.where(ended, pad_id, ops.cast(ops.argmax(scores, axis=-1), "int32"))  # [B, 1]
        log_probs = log_probs + ops.where(ended, 0.0, ops.max(scores, axis=-1))
        tokens = ops.slice_update(tokens, [0, 0, index + 1], best[..., None])
        return index + 1, tokens, log_probs, ops.logical_or(ended, ops.equal(best, end_id)), cache

    first = ops.full((batch, 1, 1), start_id, dtype="int32")
    tokens = ops.concatenate([first, ops.full((batch, 1, length), pad_id, dtype="int32")], axis=2)
    nothing = ops.zeros((batch, 1), dtype="float32")
    state = (ops.convert_to_tensor(0, "int32"), tokens, nothing, ops.zeros((batch, 1), dtype="bool"), cache)
    _, tokens, log_probs, ended, _ = ops.while_loop(going, advance, state)
    written = tokens[:, :, 1:]
    lengths = ops.sum(ops.cast(ops.not_equal(written, pad_id), "int32"), axis=-1)
    return Hypotheses(written, log_probs / length_penalty(lengths, config.length_penalty), log_probs, ended)
