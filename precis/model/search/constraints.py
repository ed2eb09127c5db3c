"""Which token may come next: suppressed tokens, the minimum length, repeated n-grams,
the repetition penalty, the copy constraint and forced tokens.
"""

from precis.model.backend import Tensor, after, ops
from precis.model.cache import PROMPT, Cache
from precis.model.logits import log_norm, lower_chosen, reduce_logits
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.copy_constraint import lower_new_facts, must_continue
from precis.model.search.scores import LOWEST_SCORE, NextTokenScores


def score_next(
    logits: Tensor,
    tokens: Tensor,
    index: Tensor,
    cache: Cache,
    *,
    config: SearchConfig,
    special: SpecialTokens,
) -> NextTokenScores:
    """Applies all constraints to the logits of the next token.

    Args:
      logits: float32 [B, K, V] after the last token; overwritten in place.
      tokens: int32 [B, K, T + 1], start token first; padding after place `index`.
      index: int32 scalar, the number of tokens written so far.
      cache: the cache after the last token, with the state of the copy constraint.
      config: lengths, n-grams, repetition.
      special: suppressed and forced tokens.
    """
    norm = log_norm(logits)
    logits = after(logits, norm)
    text, place = _behind_prompt(tokens, index, cache)
    if config.repetition_penalty != 1.0:
        logits = _penalise_repetition(logits, norm, text, place, config)
    logits = lower_new_facts(logits, cache)
    logits = _lower_forbidden(logits, text, place, index, cache, config, special)
    return _force_token(NextTokenScores(logits, norm), index, config, special)


def _behind_prompt(
    tokens: Tensor, index: Tensor, cache: Cache
) -> tuple[Tensor, Tensor]:
    """The tokens that the repetition rules read, int32 [B, K, P + T + 1]: the prompt
    and the summary so far; and the place of the last token.

    Args:
      tokens, index: as in `score_next`.
      cache: holds the prompt, padded on the left with negative ids, if the network
        continues its source; for other networks P is 0.
    """
    if PROMPT not in cache.per_document:
        return tokens, index
    prompt = cache.per_document[PROMPT][:, :-1]
    batch, length = ops.shape(prompt)
    shape = (batch, ops.shape(tokens)[1], length)
    prompt = ops.broadcast_to(prompt[:, None], shape)
    return ops.concatenate([prompt, tokens], axis=2), index + length


def _lower_forbidden(
    logits: Tensor,
    tokens: Tensor,
    place: Tensor,
    index: Tensor,
    cache: Cache,
    config: SearchConfig,
    special: SpecialTokens,
) -> Tensor:
    """Logits [B, K, V] with LOWEST_SCORE at forbidden tokens."""
    batch, beams = ops.shape(tokens)[:2]
    ids, is_forbidden = [], []  # int32 and bool, [B, K, M] each
    if special.suppressed:
        shape = (batch, beams, len(special.suppressed))
        suppressed = ops.convert_to_tensor(special.suppressed, dtype="int32")
        ids.append(ops.broadcast_to(suppressed, shape))
        is_forbidden.append(ops.ones(shape, dtype="bool"))
    if config.min_summary_tokens:
        shape = (batch, beams, len(special.end_ids))
        is_too_short = ops.less(index, config.min_summary_tokens)
        ends = ops.convert_to_tensor(special.end_ids, dtype="int32")
        ids.append(ops.broadcast_to(ends, shape))
        is_forbidden.append(ops.broadcast_to(is_too_short, shape))
    if config.no_repeat_ngram:
        ids.append(ops.maximum(tokens, 0))
        is_repeated = completes_ngram(tokens, place, config.no_repeat_ngram)
        is_repeated = ops.logical_and(is_repeated, tokens >= 0)
        is_bound = must_continue(cache)
        if is_bound is not None:
            # An incomplete name must go on, even if that repeats an n-gram.
            is_repeated = is_repeated & ops.logical_not(is_bound)[..., None]
        is_forbidden.append(is_repeated)
    if not ids:
        return logits
    return lower_chosen(
        logits,
        ops.concatenate(ids, axis=-1),
        ops.concatenate(is_forbidden, axis=-1),
        LOWEST_SCORE,
    )


def completes_ngram(tokens: Tensor, index: Tensor, order: int) -> Tensor:
    """Finds the written tokens that would complete a repeated n-gram as next token.

    Args:
      tokens: int32 [B, K, T + 1], start token first; padding after place `index`.
      index: int32 scalar, the number of tokens written so far.
      order: n, at least 1.

    Returns:
      bool [B, K, T + 1].

    With n = 3, a to z tokens and ^ the start:
      ^ a b c a b
            True: "a b c" was written, and "a b" are the last tokens
    """
    place = ops.arange(ops.shape(tokens)[2])
    # same[..., j]: the n - 1 tokens before place j are the last n - 1 tokens.
    same = ops.broadcast_to(
        ops.logical_and(place >= order - 1, place <= index), ops.shape(tokens)
    )
    for back in range(1, order):
        recent = ops.take(tokens, ops.maximum(index + 1 - back, 0), axis=2)  # [B, K]
        before = ops.roll(tokens, back, axis=2)
        same = ops.logical_and(same, ops.equal(before, recent[..., None]))
    return same


def _penalise_repetition(
    logits: Tensor, norm: Tensor, tokens: Tensor, index: Tensor, config: SearchConfig
) -> Tensor:
    """Penalises the tokens of the summary so far, start token included, and of the
    prompt (Keskar et al. 2019, section 4.1).

    The penalty applies to log-probabilities, as in the beam search of Hugging Face, or
    to logits, as in its greedy search.
    """
    penalty = config.repetition_penalty
    is_written = ops.logical_and(ops.arange(ops.shape(tokens)[2]) <= index, tokens >= 0)
    tokens = ops.maximum(tokens, 0)
    before = ops.take_along_axis(logits, tokens, axis=-1)
    if config.repetition_penalty_form == "logits":
        penalised = ops.where(before < 0, before * penalty, before / penalty)
    else:
        penalised = (before - norm) * penalty + norm
    # A token that occurs twice is penalised once: the same value is written twice.
    # At padding the value is infinite, so the reduction ignores it.
    if penalty > 1:
        reduction, ignored = "min", float("inf")
    else:
        reduction, ignored = "max", -float("inf")
    values = ops.where(is_written, penalised, ignored)
    return reduce_logits(logits, tokens, values, reduction)


def _force_token(
    scores: NextTokenScores, index: Tensor, config: SearchConfig, special: SpecialTokens
) -> NextTokenScores:
    """At places of the prefix and of `last_id`, allows only the forced token, with
    log-probability 0.
    """
    length = config.max_summary_tokens
    forced = {} if special.last_id is None else {length - 1: special.last_id}
    forced |= dict(enumerate(special.prefix))
    if not forced:
        return scores
    by_index = [forced.get(place, -1) for place in range(length)]
    token = ops.take(ops.convert_to_tensor(by_index, dtype="int32"), index)

    def force() -> Tensor:
        is_token = ops.arange(ops.shape(scores.logits)[-1]) == token
        logits = ops.where(is_token, scores.norm, LOWEST_SCORE)
        return ops.broadcast_to(logits, ops.shape(scores.logits))

    logits = ops.cond(token >= 0, force, lambda: scores.logits)
    return scores._replace(logits=logits)
