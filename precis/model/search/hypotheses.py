"""The hypotheses of a beam search: how a step extends and finishes them, when a
document is done, and the final ranking.

Finished hypotheses are kept apart from live ones, so they neither grow nor take the
place of a live one. With E end tokens, a step looks at the (1 + E) K best continuations
of a document, so at least K of them do not end; of those that end, only the ones among
the K best count. A greedy search (K = 1) looks only at the best continuation and stops
when it ends. If scores are equal, the smaller token id wins.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model.backend import Tensor, gather_beams, ops
from precis.model.cache import PROMPT, Cache
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.scores import (
    LOWEST_SCORE,
    NextTokenScores,
    is_possible,
    length_penalty,
    top_tokens,
)


class LiveHypotheses(NamedTuple):
    """Hypotheses that have not ended.

    Attributes:
      tokens: int32 [B, K, T + 1], start token first.
      log_probs: float32 [B, K].
      min_log_probs: float32 [B, K], the log-probability of the least likely token.
    """

    tokens: Tensor
    log_probs: Tensor
    min_log_probs: Tensor


class FinishedHypotheses(NamedTuple):
    """Hypotheses that have ended, best first.

    Attributes:
      tokens: int32 [B, K, T + 1], start token first.
      scores: float32 [B, K], LOWEST_SCORE at empty places.
      log_probs, min_log_probs: float32 [B, K], as in `LiveHypotheses`.
    """

    tokens: Tensor
    scores: Tensor
    log_probs: Tensor
    min_log_probs: Tensor


class BeamState(NamedTuple):
    """All that a step changes.

    Attributes:
      index: int32 scalar, the number of tokens written so far.
      live: hypotheses that may be extended.
      finished: hypotheses that have ended.
      is_done: bool [B], whether no later hypothesis can count.
      cache: the network's cache, with the hypotheses in the order of `live`.
    """

    index: Tensor
    live: LiveHypotheses
    finished: FinishedHypotheses
    is_done: Tensor
    cache: Cache


class Candidates(NamedTuple):
    """Continuations of live hypotheses, best first; E is the number of end tokens.

    Attributes:
      parents: int32 [B, (1 + E) K], the live hypothesis that is continued.
      tokens: int32 [B, (1 + E) K], the token that it is continued with.
      log_probs: float32 [B, (1 + E) K], log-probabilities of the continuations.
    """

    parents: Tensor
    tokens: Tensor
    log_probs: Tensor


class Hypotheses(NamedTuple):
    """Ranked hypotheses, best first.

    If fewer than K are possible, the last places are empty: `is_possible(log_probs)` is
    False there.

    Attributes:
      tokens: int32 [B, K, T], up to the end token inclusive, then padding.
      scores: float32 [B, K], the log-probability divided by the length penalty.
      log_probs: float32 [B, K], the sum of the tokens' log-probabilities.
      min_log_probs: float32 [B, K], the log-probability of the least likely token.
      finished: bool [B, K], False where the maximum length was reached before the end
          token.
    """

    tokens: Tensor
    scores: Tensor
    log_probs: Tensor
    min_log_probs: Tensor
    finished: Tensor


def start_state(
    cache: Cache, *, batch: Any, config: SearchConfig, special: SpecialTokens
) -> BeamState:
    """The state before the first step of B documents."""
    length, width = config.max_summary_tokens, config.beam_width
    start = ops.full((batch, width, 1), special.start_id, dtype="int32")
    if PROMPT in cache.per_document:
        last = cache.per_document[PROMPT][:, None, -1:]
        start = ops.broadcast_to(last, (batch, width, 1))
    padding = ops.full((batch, width, length), special.pad_id, dtype="int32")
    tokens = ops.concatenate([start, padding], axis=2)
    # All hypotheses of a document are equal at first. Only the first may be extended,
    # or the beam would hold copies of one hypothesis.
    first = ops.where(ops.arange(width) == 0, 0.0, LOWEST_SCORE)
    empty = ops.full((batch, width), LOWEST_SCORE, dtype="float32")
    return BeamState(
        index=ops.convert_to_tensor(0, "int32"),
        live=LiveHypotheses(
            tokens, ops.tile(first[None], (batch, 1)), ops.zeros_like(empty)
        ),
        finished=FinishedHypotheses(tokens, empty, empty, empty),
        is_done=ops.zeros((batch,), dtype="bool"),
        cache=cache,
    )


def extend(tokens: Tensor, last: Tensor, index: Tensor) -> Tensor:
    """Writes tokens [B, K] at place `index` + 1 of tokens [B, K, T + 1]."""
    is_next = ops.arange(tokens.shape[2]) == index + 1
    return ops.where(is_next, last[..., None], tokens)


def choose_candidates(
    scores: NextTokenScores, live_log_probs: Tensor, width: int, ends: int = 1
) -> Candidates:
    """Chooses the (1 + E) K best continuations of each document, so that at least K do
    not end; in a greedy search, the best. It is enough to look at the (1 + E) K best
    tokens of each hypothesis.

    Args:
      scores: the scores of the next tokens, [B, K, V].
      live_log_probs: float32 [B, K].
      width: K.
      ends: E, the number of end tokens.
    """
    count = (1 + ends) * width if width > 1 else 1
    values, ids = top_tokens(scores.logits, count)  # [B, K, (1 + E) K]
    totals = values - scores.norm + live_log_probs[..., None]
    totals = ops.reshape(totals, (-1, width * count))
    parents = ops.arange(width, dtype="int32")[:, None]
    # Sorted by token, then by parent, because top_k is stable.
    keys = ops.reshape(ids * width + parents, (-1, width * count))
    order = ops.argsort(keys, axis=-1)
    totals, keys = gather_beams(totals, order), gather_beams(keys, order)
    log_probs, best = ops.top_k(totals, k=count)
    keys = gather_beams(keys, best)
    return Candidates(parents=keys % width, tokens=keys // width, log_probs=log_probs)


def _is_end(tokens: Tensor, end_ids: Sequence[int]) -> Tensor:
    """Whether tokens, of any shape, are end tokens; bool of the same shape."""
    ends = ops.convert_to_tensor(end_ids, dtype="int32")
    return ops.any(ops.equal(tokens[..., None], ends), axis=-1)


def _lowest_of(live: LiveHypotheses, parents: Tensor, log_probs: Tensor) -> Tensor:
    """The log-probability of the least likely token of continuations, float32 [B, N].

    Args:
      live: the live hypotheses before the step.
      parents: int32 [B, N], the hypothesis that each continuation extends.
      log_probs: float32 [B, N], log-probabilities of the continuations.
    """
    of_token = log_probs - gather_beams(live.log_probs, parents)
    return ops.minimum(gather_beams(live.min_log_probs, parents), of_token)


def _join(some: Tensor, others: Tensor) -> Tensor:
    """Concatenates hypotheses [B, M, ...] and [B, N, ...] to [B, M + N, ...]."""
    return ops.concatenate([some, others], axis=1)


def keep_live(
    state: BeamState, candidates: Candidates, end_ids: Sequence[int]
) -> tuple[LiveHypotheses, Tensor]:
    """Chooses the K best candidates that did not end.

    Returns:
      The new live hypotheses, and their parents, int32 [B, K].
    """
    log_probs = ops.where(
        _is_end(candidates.tokens, end_ids), LOWEST_SCORE, candidates.log_probs
    )
    log_probs, order = ops.top_k(log_probs, k=state.live.tokens.shape[1])
    parents = gather_beams(candidates.parents, order)
    tokens = extend(
        gather_beams(state.live.tokens, parents),
        gather_beams(candidates.tokens, order),
        state.index,
    )
    lowest = _lowest_of(state.live, parents, log_probs)
    return LiveHypotheses(tokens, log_probs, lowest), parents


def keep_finished(
    state: BeamState,
    candidates: Candidates,
    config: SearchConfig,
    end_ids: Sequence[int],
) -> FinishedHypotheses:
    """Adds the candidates that ended among the K best, and keeps the K best finished
    hypotheses.

    Args:
      state: the state before the step.
      candidates: the candidates of the step.
      config: length penalty, and whether hypotheses compete at the maximum length.
      end_ids: the ids of the end tokens.
    """
    width = config.beam_width
    parents, last, log_probs = (part[:, :width] for part in candidates)
    length = state.index + 1
    scores = log_probs / length_penalty(length, config)
    has_ended = _is_end(last, end_ids)
    if config.unfinished == "compete":
        has_ended = ops.logical_or(has_ended, length >= config.max_summary_tokens)
    # A forbidden end token is not an end: its log-probability is LOWEST_SCORE.
    counts = ops.logical_and(
        ops.logical_and(has_ended, is_possible(log_probs)),
        ops.logical_not(state.is_done)[:, None],
    )
    scores = ops.where(counts, scores, LOWEST_SCORE)
    tokens = extend(gather_beams(state.live.tokens, parents), last, state.index)
    lowest = _lowest_of(state.live, parents, log_probs)
    new = FinishedHypotheses(tokens, scores, log_probs, lowest)
    both = FinishedHypotheses(*map(_join, state.finished, new))
    _, order = ops.top_k(both.scores, k=width)
    return FinishedHypotheses(*(gather_beams(part, order) for part in both))


def is_decided(
    finished: FinishedHypotheses,
    live_log_probs: Tensor,
    index: Tensor,
    config: SearchConfig,
) -> Tensor:
    """Whether a document is done, by the rule of `config.early_stopping`.

    never: No live hypothesis can win, even if its log-probability falls no further and
        it ends at the length with the largest penalty.
    bound: No live hypothesis would win if it ended now.
    first_k: K hypotheses have finished.

    Args:
      finished: the finished hypotheses.
      live_log_probs: float32 [B, K].
      index: int32 scalar, the number of tokens written so far.
      config: early stopping and length penalty.

    Returns:
      bool [B], False while fewer than K hypotheses have finished.
    """
    worst = ops.min(finished.scores, axis=1)
    if config.early_stopping == "first_k":
        return is_possible(worst)
    length = index
    if config.early_stopping == "never" and config.length_penalty > 0:
        length = config.max_summary_tokens
    best_live = ops.max(live_log_probs, axis=1) / length_penalty(length, config)
    return ops.logical_and(is_possible(worst), best_live <= worst)


def rank_hypotheses(
    state: BeamState, config: SearchConfig, end_ids: Sequence[int]
) -> Hypotheses:
    """Ranks the finished hypotheses by score, followed by live ones if fewer than K
    have finished.

    Args:
      state: the state after the last step.
      config: the search settings.
      end_ids: the ids of the end tokens.
    """
    finished, live = state.finished, state.live
    is_finished = is_possible(finished.scores)
    # If hypotheses compete at the maximum length, some in `finished` have no end token.
    # Their tokens fill all places, so padding is not mistaken for an end token.
    has_end = ops.any(_is_end(finished.tokens[:, :, 1:], end_ids), axis=2)
    has_end = ops.logical_and(is_finished, has_end)
    live_log_probs = live.log_probs
    if config.unfinished == "compete":
        # The live hypotheses of the last step are among the finished ones.
        live_log_probs = ops.full_like(live_log_probs, LOWEST_SCORE)
    live_scores = live_log_probs / length_penalty(state.index, config)
    # 2: finished, 1: live, 0: empty.
    kinds = _join(
        2 * ops.cast(is_finished, "int32"),
        ops.cast(is_possible(live_log_probs), "int32"),
    )
    hypotheses = Hypotheses(
        tokens=_join(finished.tokens, live.tokens)[:, :, 1:],
        scores=_join(finished.scores, live_scores),
        log_probs=_join(finished.log_probs, live_log_probs),
        min_log_probs=_join(finished.min_log_probs, live.min_log_probs),
        finished=_join(has_end, ops.zeros_like(has_end)),
    )
    _, by_score = ops.top_k(hypotheses.scores, k=2 * config.beam_width)
    # top_k is stable: within a kind, the order by score remains.
    _, by_kind = ops.top_k(gather_beams(kinds, by_score), k=config.beam_width)
    order = gather_beams(by_score, by_kind)
    return Hypotheses(*(gather_beams(part, order) for part in hypotheses))
