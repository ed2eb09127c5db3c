"""What every search shares: which token may come next, how a hypothesis is scored, what a search returns."""

from typing import Any, NamedTuple

from keras import ops

from model.config import DecodingConfig

# The log-probability of what must not be written. Finite, so that sums stay free of NaN; far below every real one.
LOWEST_SCORE = -1e9


class Hypotheses(NamedTuple):
    """Ranked hypotheses, best first. Where fewer than K can be written at all, the last ones are none: `is_possible(log_probs)` tells.

    Attributes:
      tokens: int32 [B, K, T], up to and with the end token, then padding.
      scores: float32 [B, K], the length-normalised log-probability.
      log_probs: float32 [B, K], the sum of the tokens' log-probabilities.
      finished: bool [B, K], False where the length ran out before the end token.
    """

    tokens: Any
    scores: Any
    log_probs: Any
    finished: Any


def is_possible(log_probs: Any) -> Any:
    """Whether hypotheses hold no forbidden token, bool of the same shape."""
    return log_probs > LOWEST_SCORE / 2


def continuation_log_probs(logits: Any, tokens: Any, index: Any, *, config: DecodingConfig, end_id: int, suppressed: Any) -> Any:
    """Log-probabilities of each next token, LOWEST_SCORE where it must not come.

    Args:
      logits: [B, K, V] after the last token.
      tokens: int32 [B, K, T + 1], start token first.
      index: int32 scalar, tokens written so far.
      config: the least length and the n-gram rule.
      end_id: the end token.
      suppressed: bool [V], True where a token is never written.

    Returns:
      float32 [B, K, V].
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    size = log_probs.shape[-1]
    forbidden = suppressed
    if config.min_summary_tokens:
        too_early = index < config.min_summary_tokens
        forbidden = ops.logical_or(forbidden, ops.logical_and(ops.arange(size) == end_id, too_early))
    if config.no_repeat_ngram:
        forbidden = ops.logical_or(forbidden, repeats_ngram(tokens, index, config.no_repeat_ngram, size))
    return ops.where(forbidden, LOWEST_SCORE, log_probs)


def length_penalty(length: Any, alpha: float) -> Any:
    """What a hypothesis's log-probability is divided by: ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14)."""
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, alpha)


def repeats_ngram(tokens: Any, index: Any, order: int, vocabulary_size: int) -> Any:
    """Which next tokens would repeat a sequence of `order` tokens.

    Args:
      tokens: int32 [B, K, T + 1], start token first.
      index: int32 scalar, tokens written so far; those from position index + 1 on are padding.
      order: n, at least 2.
      vocabulary_size: V.

    Returns:
      bool [B, K, V].

    With n = 3 and "a b c a b" written, c is True: "a b c" stands there already.
    """
    batch, beams, length = ops.shape(tokens)
    places = ops.arange(length)
    # same[..., j]: the n - 1 tokens that end before position j are the last n - 1 tokens written.
    same = ops.broadcast_to(ops.logical_and(places >= order, places <= index)[None, None], (batch, beams, length))
    for back in range(1, order):
        recent = ops.take(tokens, ops.maximum(index + 1 - back, 0), axis=2)[..., None]  # [B, K, 1]
        earlier = ops.roll(tokens, back, axis=2)  # [B, K, T + 1]
        same = ops.logical_and(same, ops.equal(earlier, recent))
    rows = ops.broadcast_to(ops.arange(batch * beams)[:, None], (batch * beams, length))
    index_pairs = ops.stack([rows, ops.reshape(tokens, (batch * beams, length))], axis=-1)
    hits = ops.scatter(ops.reshape(index_pairs, (-1, 2)), ops.reshape(ops.cast(same, "int32"), (-1,)), (batch * beams, vocabulary_size))
    return ops.reshape(hits > 0, (batch, beams, vocabulary_size))
