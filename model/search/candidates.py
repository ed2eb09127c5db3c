"""The best continuations of the live hypotheses, and those that stay live.

Each step looks at the 2k best continuations of a row. Only the k best of them may end,
so k live hypotheses are always left. Equal scores go to the smaller token id.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.cache import gather_beams
from precis.model.search.config import SearchConfig
from precis.model.search.scores import LOWEST_SCORE, NextTokenScores, is_possible
from precis.model.search.state import BeamState, Live, extend
from precis.model.search.top_k import top_tokens


class Candidates(NamedTuple):
    """Continuations of live hypotheses, best first.

    Attributes:
      parents: int32 [R, 2k], the live hypothesis that is continued.
      tokens: int32 [R, 2k], the token that it is continued with.
      log_probs: float32 [R, 2k], of the continuation.
    """

    parents: Any
    tokens: Any
    log_probs: Any


def choose_candidates(
    scores: NextTokenScores, live_log_probs: Any, config: SearchConfig
) -> Candidates:
    """Chooses the 2k best continuations of each row.

    With groups (Vijayakumar et al. 2018), a token costs the diversity penalty for each
    time that an earlier group of the document chose it in this step.

    Args:
      scores: of the next tokens, [B, K, V].
      live_log_probs: float32 [R, k].
      config: groups and the diversity penalty.
    """
    groups, width = config.beam_groups, config.beam_width // config.beam_groups
    if groups == 1:
        return _best_continuations(scores, live_log_probs, width)
    log_probs = ops.reshape(live_log_probs, (-1, groups, width))  # [B, G, k]
    by_group: list[Candidates] = []
    for group in range(groups):
        hypotheses = slice(group * width, (group + 1) * width)
        logits = scores.logits[:, hypotheses]
        if by_group:
            logits = _penalise_chosen(logits, by_group, config.diversity_penalty)
        group_scores = NextTokenScores(logits, scores.norm[:, hypotheses])
        by_group.append(_best_continuations(group_scores, log_probs[:, group], width))
    return Candidates(
        *(
            ops.reshape(ops.stack(part, axis=1), (-1, 2 * width))
            for part in zip(*by_group, strict=True)
        )
    )


def keep_live(
    state: BeamState, candidates: Candidates, end_id: int
) -> tuple[Live, Any]:
    """Chooses the k best candidates that did not end.

    Returns:
      The new live hypotheses, and their parents, int32 [R, k].
    """
    log_probs = ops.where(
        ops.equal(candidates.tokens, end_id), LOWEST_SCORE, candidates.log_probs
    )
    log_probs, order = ops.top_k(log_probs, k=state.live.tokens.shape[1])
    parents = gather_beams(candidates.parents, order)
    tokens = extend(
        gather_beams(state.live.tokens, parents),
        gather_beams(candidates.tokens, order),
        state.index,
    )
    return Live(tokens, log_probs), parents


def across_groups(parents: Any, groups: int) -> Any:
    """Turns parents [R, k] within their groups into parents [B, K] within the beam."""
    width = parents.shape[1]
    by_group = ops.reshape(parents, (-1, groups, width))
    first = width * ops.arange(groups, dtype="int32")[:, None]
    return ops.reshape(by_group + first, (-1, groups * width))


def _penalise_chosen(logits: Any, earlier: list[Candidates], penalty: float) -> Any:
    """Subtracts the penalty from logits [B, k, V] for each time that an earlier group
    chose a token.
    """
    width = logits.shape[1]
    chosen, log_probs = (
        ops.concatenate(part, axis=1)  # [B, g * k]
        for part in (
            [candidates.tokens[:, :width] for candidates in earlier],
            [candidates.log_probs[:, :width] for candidates in earlier],
        )
    )
    # Forbidden tokens fill the places where there are too few candidates. They were not
    # chosen.
    chosen = ops.where(is_possible(log_probs), chosen, -1)
    counts = ops.sum(
        ops.one_hot(chosen, ops.shape(logits)[-1], dtype="float32"), axis=1
    )  # [B, V]
    return logits - penalty * counts[:, None]


def _best_continuations(
    scores: NextTokenScores, live_log_probs: Any, width: int
) -> Candidates:
    """The 2k best continuations of each row: the 2k best tokens of each of its k
    hypotheses, and of those the best.
    """
    count = 2 * width
    values, ids = top_tokens(scores.logits, count)  # [R, k, 2k]
    totals = values - scores.norm + live_log_probs[..., None]
    totals = ops.reshape(totals, (-1, width * count))
    parents = ops.arange(width, dtype="int32")[:, None]
    # Sorted by token, then by parent, because top_k keeps the order of equals.
    keys = ops.reshape(ids * width + parents, (-1, width * count))
    order = ops.argsort(keys, axis=-1)
    totals, keys = gather_beams(totals, order), gather_beams(keys, order)
    log_probs, best = ops.top_k(totals, k=count)
    keys = gather_beams(keys, best)
    return Candidates(parents=keys % width, tokens=keys // width, log_probs=log_probs)
