"""Greedy search: the most likely token at every step."""

from typing import Any, NamedTuple

from keras import ops

from precis.model.cache import Cache
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.constraints import score_next
from precis.model.search.contract import Hypotheses, Network
from precis.model.search.scores import length_penalty
from precis.model.search.state import extend
from precis.model.search.supported import (
    Support,
    follow_facts,
    keep_facts,
    start_facts,
)


class GreedyState(NamedTuple):
    """All that a step changes.

    Attributes:
      index: int32 scalar, the number of tokens written so far.
      tokens: int32 [B, 1, T + 1], start token first.
      log_probs: float32 [B, 1].
      has_ended: bool [B, 1].
      cache: of the network.
    """

    index: Any
    tokens: Any
    log_probs: Any
    has_ended: Any
    cache: Cache


def greedy_search(
    network: Network,
    memory: Any,
    *,
    batch: Any,
    config: SearchConfig,
    special: SpecialTokens,
    support: Support | None = None,
) -> Hypotheses:
    """Writes one summary per document; the arguments are those of `beam_search`.

    It is not beam search of width 1, which continues after an end token that was only
    the second best.
    """
    length = config.max_summary_tokens

    def is_running(*values: Any) -> Any:
        state = GreedyState(*values)
        any_open = ops.logical_not(ops.all(state.has_ended))
        return ops.logical_and(state.index < length, any_open)

    def advance(*values: Any) -> GreedyState:
        index, tokens, log_probs, has_ended, cache = GreedyState(*values)
        last = ops.take(tokens, index, axis=2)
        written = follow_facts(cache, last)
        logits, cache = network.step(last, cache, index)
        cache = keep_facts(cache, written)
        scores = score_next(
            logits, tokens, index, cache, config=config, special=special
        )
        best = ops.cast(ops.argmax(scores.logits, axis=-1), "int32")  # [B, 1]
        best = ops.where(has_ended, special.pad_id, best)
        log_prob = ops.max(scores.logits, axis=-1) - scores.norm[..., 0]
        return GreedyState(
            index=index + 1,
            tokens=extend(tokens, best, index),
            log_probs=log_probs + ops.where(has_ended, 0.0, log_prob),
            has_ended=ops.logical_or(has_ended, ops.equal(best, special.end_id)),
            cache=cache,
        )

    start = ops.full((batch, 1, 1), special.start_id, dtype="int32")
    padding = ops.full((batch, 1, length), special.pad_id, dtype="int32")
    state = GreedyState(
        index=ops.convert_to_tensor(0, "int32"),
        tokens=ops.concatenate([start, padding], axis=2),
        log_probs=ops.zeros((batch, 1), dtype="float32"),
        has_ended=ops.zeros((batch, 1), dtype="bool"),
        cache=start_facts(network.start(memory, 1, length), support, 1),
    )
    state = GreedyState(*ops.while_loop(is_running, advance, state))
    tokens = state.tokens[:, :, 1:]
    # The end token tells the length. Padding does not: a network may write the padding
    # token, or its end token may be the padding token.
    end = ops.argmax(ops.equal(tokens, special.end_id), axis=-1)
    lengths = ops.where(state.has_ended, end + 1, length)
    scores = state.log_probs / length_penalty(lengths, config)
    return Hypotheses(tokens, scores, state.log_probs, state.has_ended)
