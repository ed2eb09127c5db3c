"""What every search shares: which token may come next, how a hypothesis is scored, what
a search returns.
"""

from typing import Any, NamedTuple, Protocol

from keras import ops

from precis.model.logits import log_norm, places
from precis.model.search.config import SearchConfig, SpecialTokens

# The log-probability of what must not be written. Finite, so that sums stay free of
# NaN; far below every real one.
LOWEST_SCORE = -1e9


class Network(Protocol):
    """What a search needs of a network; shapes and meaning stand in `model.network`."""

    def start(
        self, memory: Any, beams: int, length: int, **counts_coverage: bool
    ) -> Any: ...

    def grow(self, cache: Any, *, written: Any, more: int) -> Any: ...

    def narrow(self, cache: Any, documents: Any) -> Any: ...

    def step(self, tokens: Any, cache: Any, index: Any) -> tuple[Any, Any]: ...


class Hypotheses(NamedTuple):
    """Ranked hypotheses, best first. Where fewer than K can be written at all, the last
    ones are none: `is_possible(log_probs)` tells.

    Attributes:
      tokens: int32 [B, K, T], up to and with the end token, then padding.
      scores: float32 [B, K], the log-probability over the length penalty, plus the
          coverage penalty.
      log_probs: float32 [B, K], the sum of the tokens' log-probabilities.
      finished: bool [B, K], False where the length ran out before the end token.
    """

    tokens: Any
    scores: Any
    log_probs: Any
    finished: Any


class Scores(NamedTuple):
    """What may come next, without a pass over the vocabulary to normalise it: log P(v)
    = logits[v] - norm.

    Attributes:
      logits: float32 [B, K, V], LOWEST_SCORE or below where a token must not come.
      norm: float32 [B, K, 1], log of the sum of exp over the logits before any rule.
    """

    logits: Any
    norm: Any


def is_possible(log_probs: Any) -> Any:
    """Whether hypotheses hold no forbidden token, bool of the same shape."""
    return log_probs > LOWEST_SCORE / 2


def length_penalty(length: Any, config: SearchConfig) -> Any:
    """What the log-probability of a hypothesis of `length` tokens, the end token among
    them, is divided by.

    wu ((5 + n) / 6)^alpha (Wu et al. 2016, equation 14); average n^alpha, the
    convention of Hugging Face; none 1.
    """
    length = ops.cast(length, "float32")
    if config.length_penalty_form == "none":
        return ops.ones_like(length)
    return ops.power(
        (5.0 + length) / 6.0 if config.length_penalty_form == "wu" else length,
        config.length_penalty,
    )


def score_next(
    logits: Any,
    tokens: Any,
    index: Any,
    *,
    config: SearchConfig,
    special: SpecialTokens,
) -> Scores:
    """Applies the rules to the logits of the next token.

    Args:
      logits: float32 [B, K, V] after the last token.
      tokens: int32 [B, K, T + 1], start token first; places from index + 1 on are
          padding.
      index: int32 scalar, tokens written so far.
      config: lengths, n-grams, repetition.
      special: suppressed and forced tokens.
    """
    norm = log_norm(logits)
    if config.repetition_penalty != 1.0:
        logits = _penalise_repetition(logits, norm, tokens, index, config)
    forbidden = _forbidden(tokens, index, config, special)
    if forbidden is not None:
        logits = ops.scatter_update(logits, *forbidden, reduction="min")
    return _force(Scores(logits, norm), index, config, special)


def _forbidden(
    tokens: Any, index: Any, config: SearchConfig, special: SpecialTokens
) -> tuple[Any, Any] | None:
    """Places of the logits that must not win, int32 [N, 3], and what they are lowered
    to [N]: infinity where a place is free after all.
    """
    batch, beams = ops.shape(tokens)[:2]
    ids, values = [], []  # [B, K, M] each
    if special.suppressed:
        shape = (batch, beams, len(special.suppressed))
        ids.append(
            ops.broadcast_to(
                ops.convert_to_tensor(special.suppressed, dtype="int32"), shape
            )
        )
        values.append(ops.full(shape, LOWEST_SCORE, dtype="float32"))
    if config.min_summary_tokens:
        ids.append(ops.full((batch, beams, 1), special.end_id, dtype="int32"))
        lowered = ops.where(
            index < config.min_summary_tokens, LOWEST_SCORE, float("inf")
        )
        values.append(ops.broadcast_to(ops.cast(lowered, "float32"), (batch, beams, 1)))
    if config.no_repeat_ngram:
        ids.append(tokens)
        values.append(
            ops.where(
                completes_ngram(tokens, index, config.no_repeat_ngram),
                LOWEST_SCORE,
                float("inf"),
            )
        )
    if not ids:
        return None
    all_ids = ops.concatenate(ids, axis=-1)
    return places(all_ids), ops.reshape(
        ops.concatenate([ops.cast(value, "float32") for value in values], axis=-1),
        (-1,),
    )


def completes_ngram(tokens: Any, index: Any, order: int) -> Any:
    """Which of the tokens written so far would, written again, complete a sequence of
    `order` tokens that stands there already.

    Args:
      tokens: int32 [B, K, T + 1], start token first.
      index: int32 scalar, tokens written so far; those from place index + 1 on are
          padding.
      order: n, at least 1.

    Returns:
      bool [B, K, T + 1].

    With n = 3, a to z tokens and ^ the start:
      ^ a b c a b
            True: "a b c" stands there, and "a b" was written last
    """
    at = ops.arange(ops.shape(tokens)[2])
    # same[..., j]: the n - 1 tokens before place j are the last n - 1 tokens.
    same = ops.broadcast_to(
        ops.logical_and(at >= order - 1, at <= index), ops.shape(tokens)
    )
    for back in range(1, order):
        recent = ops.take(tokens, ops.maximum(index + 1 - back, 0), axis=2)[
            ..., None
        ]  # [B, K, 1]
        same = ops.logical_and(same, ops.equal(ops.roll(tokens, back, axis=2), recent))
    return same


def _penalise_repetition(
    logits: Any, norm: Any, tokens: Any, index: Any, config: SearchConfig
) -> Any:
    """Penalises the tokens that stand there already, the start token too (Keskar et al.
    2019, section 4.1).

    Their log-probabilities are multiplied, as in the beam search of Hugging Face, or
    their logits, as in its greedy search.
    """
    penalty = config.repetition_penalty
    written = ops.broadcast_to(
        ops.arange(ops.shape(tokens)[2]) <= index, ops.shape(tokens)
    )
    before = ops.take_along_axis(logits, tokens, axis=-1)
    if config.repetition_penalty_form == "logits":
        penalised = ops.where(before < 0, before * penalty, before / penalty)
    else:
        penalised = (before - norm) * penalty + norm
    # A token that occurs twice is penalised once: the same value is written twice.
    reduction, free = ("min", float("inf")) if penalty > 1 else ("max", -float("inf"))
    return ops.scatter_update(
        logits,
        places(tokens),
        ops.reshape(ops.where(written, penalised, free), (-1,)),
        reduction=reduction,
    )


def _force(
    scores: Scores, index: Any, config: SearchConfig, special: SpecialTokens
) -> Scores:
    """Leaves one token, with log-probability 0, where the prefix or the last token
    stands.
    """
    forced = (
        {config.max_summary_tokens - 1: special.last_id}
        if special.last_id is not None
        else {}
    )
    forced |= dict(enumerate(special.prefix))
    if not forced:
        return scores
    size = scores.logits.shape[-1]
    by_index = [forced.get(place, -1) for place in range(config.max_summary_tokens)]
    token = ops.take(ops.convert_to_tensor(by_index, dtype="int32"), index)

    def one() -> Any:
        return ops.broadcast_to(
            ops.where(ops.arange(size) == token, scores.norm, LOWEST_SCORE),
            ops.shape(scores.logits),
        )

    return scores._replace(logits=ops.cond(token >= 0, one, lambda: scores.logits))
