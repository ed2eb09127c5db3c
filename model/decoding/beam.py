"""Beam search as a pure function over a shaped state.

Live and finished hypotheses are kept apart, so that a finished one neither grows nor takes the place of a live one. Each step looks at the
2K best continuations: at most K of them end, so K live ones are always left.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from model.config import DecodingConfig
from model.decoding.rules import LOWEST_SCORE, Hypotheses, continuation_log_probs, is_possible, length_penalty

# Puts every unfinished hypothesis behind every finished one, whatever their scores.
UNFINISHED = -1e6


class _Finished(NamedTuple):
    tokens: Any  # int32 [B, K, T + 1]
    scores: Any  # float32 [B, K]
    log_probs: Any  # float32 [B, K]


class _State(NamedTuple):
    index: Any  # int32 scalar: tokens written so far, without the start token
    tokens: Any  # int32 [B, K, T + 1], live, start token first
    log_probs: Any  # float32 [B, K], live
    finished: _Finished
    cache: Any


def beam_search(
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    cache: Any,
    *,
    batch: int,
    config: DecodingConfig,
    start_id: int,
    end_id: int,
    pad_id: int,
    suppressed: Any,
) -> Hypotheses:
    """Finds the most likely summaries of each document.

    Args:
      step: a network's step, tokens int32 [B, K], cache, index -> logits float32 [B, K, V], cache.
      cache: what the network's `start` gave for K beams and `config.max_summary_tokens` steps.
      batch: B, a number or a scalar tensor.
      config: width, penalties and bounds.
      start_id, end_id, pad_id: special ids.
      suppressed: bool [V], True where a token is never written.

    Returns:
      K hypotheses per document, finished ones first, then by score.
    """
    beams, length = config.beam_width, config.max_summary_tokens
    first = ops.full((batch, beams, 1), start_id, dtype="int32")
    tokens = ops.concatenate([first, ops.full((batch, beams, length), pad_id, dtype="int32")], axis=2)
    # All beams begin alike: only the first may be extended, or K copies of one hypothesis would live.
    log_probs = ops.tile(ops.where(ops.arange(beams) == 0, 0.0, LOWEST_SCORE)[None], (batch, 1))
    nothing = ops.full((batch, beams), LOWEST_SCORE, dtype="float32")
    state = _State(ops.convert_to_tensor(0, "int32"), tokens, log_probs, _Finished(tokens, nothing, nothing), cache)

    def going(*values: Any) -> Any:
        state = _State(*values)
        return ops.logical_and(state.index < length, ops.logical_not(ops.all(_is_decided(state, config))))

    def advance(*values: Any) -> _State:
        state = _State(*values)
        total, cache = _score_continuations(step, state, config, end_id, suppressed)
        candidates = _choose_candidates(state, total, beams)
        finished = _keep_finished(state.finished, candidates, state.index, config, end_id)
        tokens, log_probs, cache = _keep_live(candidates, cache, beams, end_id)
        return _State(state.index + 1, tokens, log_probs, finished, cache)

    return _rank(_State(*ops.while_loop(going, advance, state)), config)


class _Candidates(NamedTuple):
    tokens: Any  # int32 [B, 2K, T + 1]
    log_probs: Any  # float32 [B, 2K]
    parent: Any  # int32 [B, 2K], the live beam each comes from
    last: Any  # int32 [B, 2K], the token each was extended by


def _is_decided(state: _State, config: DecodingConfig) -> Any:
    """bool [B]: no live hypothesis can still overtake the worst of K finished ones.

    Log-probabilities only fall and the penalty only grows with length, so a live hypothesis ends at best with its present log-probability
    over the largest penalty.
    """
    best_live = ops.max(state.log_probs, axis=1) / length_penalty(config.max_summary_tokens, config.length_penalty)
    return ops.min(state.finished.scores, axis=1) >= best_live


def _score_continuations(step: Any, state: _State, config: DecodingConfig, end_id: int, suppressed: Any) -> tuple[Any, Any]:
    """Log-probabilities of every live hypothesis with every next token, float32 [B, K, V], and the new cache."""
    last = ops.take(state.tokens, state.index, axis=2)  # [B, K]
    logits, cache = step(last, state.cache, state.index)
    log_probs = continuation_log_probs(logits, state.tokens, state.index, config=config, end_id=end_id, suppressed=suppressed)
    return log_probs + state.log_probs[..., None], cache


def _choose_candidates(state: _State, total: Any, beams: int) -> _Candidates:
    """The 2K best continuations of each document."""
    size = total.shape[-1]
    log_probs, flat = ops.top_k(ops.reshape(total, (-1, beams * size)), k=2 * beams)
    parent, last = ops.cast(flat // size, "int32"), ops.cast(flat % size, "int32")
    tokens = _gather(state.tokens, parent)
    tokens = ops.slice_update(tokens, [0, 0, state.index + 1], last[..., None])
    return _Candidates(tokens, log_probs, parent, last)


def _keep_finished(finished: _Finished, candidates: _Candidates, index: Any, config: DecodingConfig, end_id: int) -> _Finished:
    """The K best of the finished hypotheses and the candidates that just ended."""
    scores = candidates.log_probs / length_penalty(index + 1, config.length_penalty)
    # A forbidden end is no end: its log-probability is LOWEST_SCORE and stays below every real one.
    ended = ops.logical_and(ops.equal(candidates.last, end_id), is_possible(candidates.log_probs))
    scores = ops.where(ended, scores, LOWEST_SCORE)
    both = ops.concatenate([finished.scores, scores], axis=1)  # [B, 3K]
    best, order = ops.top_k(both, k=config.beam_width)
    tokens = _gather(ops.concatenate([finished.tokens, candidates.tokens], axis=1), order)
    log_probs = _gather(ops.concatenate([finished.log_probs, candidates.log_probs], axis=1), order)
    return _Finished(tokens, best, log_probs)


def _keep_live(candidates: _Candidates, cache: Any, beams: int, end_id: int) -> tuple[Any, Any, Any]:
    """The K best candidates that did not end, with the caches of the beams they come from."""
    open_scores = ops.where(ops.equal(candidates.last, end_id), LOWEST_SCORE, candidates.log_probs)
    log_probs, order = ops.top_k(open_scores, k=beams)
    parent = _gather(candidates.parent, order)
    own = keras.tree.map_structure(lambda past: _gather(past, parent), cache.beams)
    return _gather(candidates.tokens, order), log_probs, cache._replace(beams=own)


def _rank(state: _State, config: DecodingConfig) -> Hypotheses:
    """Finished hypotheses first, then the live ones where fewer than K finished."""
    is_finished = is_possible(state.finished.scores)
    open_scores = state.log_probs / length_penalty(state.index, config.length_penalty)
    ranks = ops.concatenate([state.finished.scores, open_scores + UNFINISHED], axis=1)  # [B, 2K]
    _, order = ops.top_k(ranks, k=config.beam_width)
    tokens = _gather(ops.concatenate([state.finished.tokens, state.tokens], axis=1), order)
    scores = _gather(ops.concatenate([state.finished.scores, open_scores], axis=1), order)
    log_probs = _gather(ops.concatenate([state.finished.log_probs, state.log_probs], axis=1), order)
    finished = _gather(ops.concatenate([is_finished, ops.zeros_like(is_finished)], axis=1), order)
    return Hypotheses(tokens[:, :, 1:], scores, log_probs, finished)


def _gather(values: Any, order: Any) -> Any:
    """values [B, N, ...] at order [B, M] -> [B, M, ...]."""
    batch, count = ops.shape(values)[:2]
    flat = ops.reshape(values, (batch * count, *values.shape[2:]))
    rows = ops.reshape(order + ops.cast(ops.arange(batch)[:, None] * count, order.dtype), (-1,))
    return ops.reshape(ops.take(flat, rows, axis=0), (batch, ops.shape(order)[1], *values.shape[2:]))
