"""The finished hypotheses of a beam search: which are kept, when they decide a
document, and the final ranking.
"""

from typing import Any

from keras import ops

from precis.model.cache import gather_beams
from precis.model.search.candidates import Candidates
from precis.model.search.config import SearchConfig
from precis.model.search.contract import Hypotheses
from precis.model.search.scores import LOWEST_SCORE, is_possible, length_penalty
from precis.model.search.state import BeamState, Finished, extend


def keep_finished(
    state: BeamState,
    candidates: Candidates,
    bonus: Any,
    config: SearchConfig,
    end_id: int,
) -> Finished:
    """Adds the candidates that ended and keeps the k best finished hypotheses.

    Args:
      state: before the step.
      candidates: only the k best may end.
      bonus: the weighted coverage penalty of each parent, float32 [R, k], or None.
      config: length penalty, and whether hypotheses compete at the maximum length.
      end_id: of the end token.
    """
    width = state.live.tokens.shape[1]
    parents, last, log_probs = (part[:, :width] for part in candidates)
    length = state.index + 1
    scores = log_probs / length_penalty(length, config)
    if bonus is not None:
        scores = scores + gather_beams(bonus, parents)
    has_ended = ops.equal(last, end_id)
    if config.unfinished == "compete":
        has_ended = ops.logical_or(has_ended, length >= config.max_summary_tokens)
    # A forbidden end token is not an end: its log-probability is LOWEST_SCORE.
    counts = ops.logical_and(
        ops.logical_and(has_ended, is_possible(log_probs)),
        ops.logical_not(state.is_done)[:, None],
    )
    scores = ops.where(counts, scores, LOWEST_SCORE)
    tokens = extend(gather_beams(state.live.tokens, parents), last, state.index)

    old = state.finished
    scores, order = ops.top_k(ops.concatenate([old.scores, scores], axis=1), k=width)
    tokens = ops.concatenate([old.tokens, tokens], axis=1)
    log_probs = ops.concatenate([old.log_probs, log_probs], axis=1)
    return Finished(gather_beams(tokens, order), scores, gather_beams(log_probs, order))


def is_decided(
    finished: Finished, live_log_probs: Any, index: Any, config: SearchConfig
) -> Any:
    """Whether no live hypothesis can still win, as `config.early_stopping` defines it.

    never: Log-probabilities only fall, so a live hypothesis ends at best with its
        present log-probability over the largest length penalty.
    bound: It ends at best with its present score.
    first_k: k finished hypotheses are enough.

    Args:
      finished: the finished hypotheses.
      live_log_probs: float32 [R, k].
      index: int32 scalar, the number of tokens written so far.
      config: early stopping and length penalty.

    Returns:
      bool [R], False where fewer than k hypotheses have finished.
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
    state: BeamState, bonus: Any, config: SearchConfig, end_id: int
) -> Hypotheses:
    """Ranks the finished hypotheses of all groups by score, and behind them live ones
    where fewer than K have finished.

    Args:
      state: after the last step.
      bonus: the weighted coverage penalty of each live hypothesis, float32 [R, k], or
          None.
      config: the search.
      end_id: of the end token.
    """
    finished, live = state.finished, state.live
    is_finished = is_possible(finished.scores)
    # Where hypotheses compete at the maximum length, `finished` holds some without an
    # end token. Their tokens fill all places, so padding is not taken for an end.
    has_end = ops.any(ops.equal(finished.tokens[:, :, 1:], end_id), axis=2)
    has_end = ops.logical_and(is_finished, has_end)
    live_log_probs = live.log_probs
    if config.unfinished == "compete":
        # The live hypotheses of the last step are among the finished ones.
        live_log_probs = ops.full_like(live_log_probs, LOWEST_SCORE)
    live_scores = live_log_probs / length_penalty(state.index, config)
    if bonus is not None:
        live_scores = live_scores + bonus

    def join(of_finished: Any, of_live: Any) -> Any:
        """[R, k, ...] twice -> [B, 2K, ...]."""
        both = ops.concatenate([of_finished, of_live], axis=1)
        return ops.reshape(both, (-1, 2 * config.beam_width, *both.shape[2:]))

    # 2 finished, 1 live, 0 empty.
    kinds = join(
        2 * ops.cast(is_finished, "int32"),
        ops.cast(is_possible(live_log_probs), "int32"),
    )
    hypotheses = Hypotheses(
        tokens=join(finished.tokens, live.tokens)[:, :, 1:],
        scores=join(finished.scores, live_scores),
        log_probs=join(finished.log_probs, live_log_probs),
        finished=join(has_end, ops.zeros_like(has_end)),
    )
    _, by_score = ops.top_k(hypotheses.scores, k=2 * config.beam_width)
    # top_k keeps the order of equals, here the order of the scores.
    _, by_kind = ops.top_k(gather_beams(kinds, by_score), k=config.beam_width)
    order = gather_beams(by_score, by_kind)
    return Hypotheses(*(gather_beams(part, order) for part in hypotheses))
