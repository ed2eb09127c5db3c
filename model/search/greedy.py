"""Greedy search: the most likely token at every step."""

from typing import Any

from keras import ops

from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.rules import Hypotheses, Network, length_penalty, score_next


def greedy_search(
    network: Network,
    memory: Any,
    *,
    batch: Any,
    config: SearchConfig,
    special: SpecialTokens,
) -> Hypotheses:
    """Writes one summary per document; the arguments are those of `beam_search`.

    It is not beam search of width 1, which goes on after an end that was only the
    second choice.
    """
    length = config.max_summary_tokens

    def going(index: Any, tokens: Any, log_probs: Any, ended: Any, _: Any) -> Any:
        return ops.logical_and(index < length, ops.logical_not(ops.all(ended)))

    def advance(
        index: Any, tokens: Any, log_probs: Any, ended: Any, cache: Any
    ) -> tuple[Any, ...]:
        logits, cache = network.step(ops.take(tokens, index, axis=2), cache, index)
        scores = score_next(logits, tokens, index, config=config, special=special)
        best = ops.where(
            ended, special.pad_id, ops.cast(ops.argmax(scores.logits, axis=-1), "int32")
        )  # [B, 1]
        log_prob = ops.max(scores.logits, axis=-1) - scores.norm[..., 0]
        log_probs = log_probs + ops.where(ended, 0.0, log_prob)
        tokens = ops.where(ops.arange(length + 1) == index + 1, best[..., None], tokens)
        return (
            index + 1,
            tokens,
            log_probs,
            ops.logical_or(ended, ops.equal(best, special.end_id)),
            cache,
        )

    first = ops.full((batch, 1, 1), special.start_id, dtype="int32")
    tokens = ops.concatenate(
        [first, ops.full((batch, 1, length), special.pad_id, dtype="int32")], axis=2
    )
    nothing = ops.zeros((batch, 1), dtype="float32")
    cache = network.start(memory, 1, length)
    state = (
        ops.convert_to_tensor(0, "int32"),
        tokens,
        nothing,
        ops.zeros((batch, 1), dtype="bool"),
        cache,
    )
    _, tokens, log_probs, ended, _ = ops.while_loop(going, advance, state)
    written = tokens[:, :, 1:]
    # Up to and with the end, which is not where the padding begins: a network may write
    # the padding token, or end with it.
    lengths = ops.where(
        ended, ops.argmax(ops.equal(written, special.end_id), axis=-1) + 1, length
    )
    return Hypotheses(
        written, log_probs / length_penalty(lengths, config), log_probs, ended
    )
