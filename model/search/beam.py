"""Beam search as a pure function over a shaped state.

Live and finished hypotheses are kept apart, so that a finished one neither grows nor
takes the place of a live one. Each step looks at the
2K best continuations: only the K best of them may end, so K live ones are always left.
    Equal scores go to the smaller token id.

With G groups (Vijayakumar et al. 2018) each is a beam of K/G of its own, from which the
tokens chosen by the groups before it in the same step take away. G is an axis like that
of the documents: R = B * G rows of k = K/G hypotheses.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.backend import has_static_shapes, with_unknown_size
from precis.model.cache import grow, reorder_beams, select_documents
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.rules import (
    LOWEST_SCORE,
    Hypotheses,
    Network,
    Scores,
    is_possible,
    length_penalty,
    score_next,
)
from precis.model.search.top_k import top_tokens

# Steps that room is made for at once: a step costs time for all the room there is.
# Between segments, documents that are done leave.
SEGMENT = 8


class _Finished(NamedTuple):
    tokens: Any  # int32 [R, k, T + 1]
    scores: Any  # float32 [R, k]
    log_probs: Any  # float32 [R, k]


class _State(NamedTuple):
    index: Any  # int32 scalar: tokens written so far, without the start token
    tokens: Any  # int32 [R, k, T + 1], live, start token first
    log_probs: Any  # float32 [R, k], live
    finished: _Finished
    done: Any  # bool [R]: nothing that is found later counts
    cache: Any


class _Candidates(NamedTuple):
    parent: Any  # int32 [R, 2k], the live hypothesis each comes from
    last: Any  # int32 [R, 2k], the token it is extended by
    log_probs: Any  # float32 [R, 2k], falling


def beam_search(
    network: Network,
    memory: Any,
    *,
    batch: Any,
    config: SearchConfig,
    special: SpecialTokens,
    coverage: Callable[[Any], Any] | None = None,
) -> Hypotheses:
    """Finds the most likely summaries of each document.

    Args:
      network: gives the logits of next tokens.
      memory: what the network's `encode` made of B sources.
      batch: B, a number or a scalar tensor.
      config: width, penalties and bounds.
      special: the ids of special tokens.
      coverage: after a step, the coverage penalty of each live hypothesis from the
        cache, float32 [B, K], at most 0 (Wu et al. 2016, equation 14); times
        `config.coverage_penalty` it is added to the score of a hypothesis that ends.

    Returns:
      K hypotheses per document, finished ones first or by score alone, as
      `config.unfinished` says.
    """
    beams, groups, length = (
        config.beam_width,
        config.beam_groups,
        config.max_summary_tokens,
    )
    rows, width = batch * groups, beams // groups
    first = ops.full((rows, width, 1), special.start_id, dtype="int32")
    tokens = ops.concatenate(
        [first, ops.full((rows, width, length), special.pad_id, dtype="int32")], axis=2
    )
    # All beams begin alike: only the first may be extended, or copies of one hypothesis
    # would live.
    log_probs = ops.tile(
        ops.where(ops.arange(width) == 0, 0.0, LOWEST_SCORE)[None], (rows, 1)
    )
    nothing = ops.full((rows, width), LOWEST_SCORE, dtype="float32")
    state = _State(
        ops.convert_to_tensor(0, "int32"),
        tokens,
        log_probs,
        _Finished(tokens, nothing, nothing),
        ops.zeros((rows,), dtype="bool"),
        network.start(
            memory,
            beams,
            min(SEGMENT, length),
            **({"counts_coverage": True} if coverage else {}),
        ),
    )

    def advance(*values: Any) -> _State:
        state = _State(*values)
        written = ops.reshape(state.tokens, (-1, beams, length + 1))
        logits, cache = network.step(
            ops.take(written, state.index, axis=2), state.cache, state.index
        )
        scores = score_next(
            logits, written, state.index, config=config, special=special
        )
        candidates = _choose_candidates(scores, state.log_probs, config)
        bonus = (
            ops.reshape(coverage(cache), (-1, width)) * config.coverage_penalty
            if coverage
            else None
        )
        finished = _keep_finished(state, candidates, bonus, config, special.end_id)
        tokens, log_probs, parent = _keep_live(state, candidates, special.end_id)
        cache = reorder_beams(cache, _across_groups(parent, groups))
        index = state.index + 1
        done = ops.logical_or(
            state.done, _is_decided(finished, log_probs, index, config)
        )
        return _State(index, tokens, log_probs, finished, done, cache)

    def run(state: _State, end: Any) -> _State:
        """Takes steps until `end` tokens are written or every document is done."""

        def going(*values: Any) -> Any:
            state = _State(*values)
            return ops.logical_and(
                state.index < end, ops.logical_not(ops.all(state.done))
            )

        return _State(*ops.while_loop(going, advance, state))

    def rank(state: _State) -> Hypotheses:
        return _rank(state, coverage, config, special.end_id)

    if has_static_shapes():
        for begin in range(SEGMENT, length, SEGMENT):
            state = run(state, begin)
            state = state._replace(
                cache=grow(
                    state.cache, written=begin, more=min(SEGMENT, length - begin)
                )
            )
        return rank(run(state, length))
    return _run_smaller_and_smaller(
        run, rank, state, batch=batch, network=network, config=config
    )


class _Search(NamedTuple):
    state: _State  # of the documents that are not done
    documents: Any  # int32 [N], which they are
    found: Hypotheses  # of all documents


def _run_smaller_and_smaller(
    run: Callable[[_State, Any], _State],
    rank: Callable[[_State], Hypotheses],
    state: _State,
    *,
    batch: Any,
    network: Network,
    config: SearchConfig,
) -> Hypotheses:
    """Runs segment after segment; between them documents that are done leave and the
    caches drop what nobody reads.
    """
    length = config.max_summary_tokens

    def going(*values: Any) -> Any:
        state = _Search(*values).state
        return ops.logical_and(
            state.index < length, ops.logical_not(ops.all(state.done))
        )

    def advance(*values: Any) -> _Search:
        state, documents, found = _Search(*values)
        end = ops.minimum(state.index + SEGMENT, length)
        state = run(state, end)
        ranked = rank(state)
        found = Hypotheses(
            *(
                ops.scatter_update(old, documents[:, None], new)
                for old, new in zip(found, ranked, strict=True)
            )
        )
        state, documents = _leave(state, documents, network, config)
        # Also behind the last segment, where it is not needed: one of many, and the
        # loop stays one.
        state = state._replace(cache=grow(state.cache, written=end, more=SEGMENT))
        return _Search(state, documents, found)

    search = _Search(state, ops.arange(batch, dtype="int32"), rank(state))
    return _Search(
        *ops.while_loop(
            going, advance, keras.tree.map_structure(with_unknown_size, search)
        )
    ).found


def _leave(
    state: _State, documents: Any, network: Network, config: SearchConfig
) -> tuple[_State, Any]:
    """The state without the documents that are done."""
    groups = config.beam_groups
    is_done = ops.all(ops.reshape(state.done, (-1, groups)), axis=1)  # [B]
    # One is always left: a network need not know how to step with none.
    is_last = ops.logical_and(ops.all(is_done), ops.arange(ops.shape(is_done)[0]) == 0)

    def leave() -> tuple[_State, Any]:
        (stay,) = ops.nonzero(ops.logical_or(ops.logical_not(is_done), is_last))
        stay = ops.cast(stay, "int32")
        rows = ops.reshape(
            stay[:, None] * groups + ops.arange(groups, dtype="int32"), (-1,)
        )
        tokens, log_probs, finished, done = keras.tree.map_structure(
            lambda part: ops.take(part, rows, axis=0),
            (state.tokens, state.log_probs, state.finished, state.done),
        )
        smaller = _State(
            state.index,
            tokens,
            log_probs,
            finished,
            done,
            select_documents(state.cache, stay),
        )
        return smaller, ops.take(documents, stay, axis=0)

    return ops.cond(ops.any(is_done), leave, lambda: (state, documents))


def _choose_candidates(
    scores: Scores, log_probs: Any, config: SearchConfig
) -> _Candidates:
    """The 2k best continuations of each row, group by group."""
    groups, width = config.beam_groups, config.beam_width // config.beam_groups
    if groups == 1:
        return _best_continuations(scores, log_probs, width)
    by_group = ops.reshape(log_probs, (-1, groups, width))  # [B, G, k]
    found: list[_Candidates] = []
    for group in range(groups):
        of_group = slice(group * width, (group + 1) * width)
        own = Scores(scores.logits[:, of_group], scores.norm[:, of_group])
        if found:
            own = own._replace(
                logits=_take_away(own.logits, found, width, config.diversity_penalty)
            )
        found.append(_best_continuations(own, by_group[:, group], width))
    return _Candidates(
        *(
            ops.reshape(ops.stack(part, axis=1), (-1, 2 * width))
            for part in zip(*found, strict=True)
        )
    )


def _take_away(
    logits: Any, earlier: list[_Candidates], width: int, penalty: float
) -> Any:
    """Logits [B, k, V] less the penalty for each time an earlier group chose a token."""
    chosen = ops.concatenate(
        [candidates.last[:, :width] for candidates in earlier], axis=1
    )  # [B, g * k]
    # What must not be written fills the places of candidates that there are not; nobody
    # chose it.
    real = is_possible(
        ops.concatenate(
            [candidates.log_probs[:, :width] for candidates in earlier], axis=1
        )
    )
    counts = ops.sum(
        ops.one_hot(ops.where(real, chosen, -1), logits.shape[-1], dtype="float32"),
        axis=1,
    )  # [B, V]
    return logits - penalty * counts[:, None]


def _best_continuations(scores: Scores, log_probs: Any, width: int) -> _Candidates:
    """The 2k best continuations: of each of the k hypotheses the 2k best tokens, and of
    those the best.
    """
    values, ids = top_tokens(scores.logits, 2 * width)  # [R, k, 2k]
    totals = ops.reshape(
        values - scores.norm + log_probs[..., None], (-1, 2 * width * width)
    )
    parents = ops.broadcast_to(
        ops.arange(width, dtype="int32")[:, None], (width, 2 * width)
    )
    keys = ops.reshape(
        ids * width + parents, (-1, 2 * width * width)
    )  # by token, then by hypothesis
    order = ops.argsort(keys, axis=-1)
    totals, keys = _gather(totals, order), _gather(keys, order)
    # The best of equals is the first: top_k keeps their order.
    best, places = ops.top_k(totals, k=2 * width)
    keys = _gather(keys, places)
    return _Candidates(keys % width, keys // width, best)


def _keep_finished(
    state: _State,
    candidates: _Candidates,
    bonus: Any,
    config: SearchConfig,
    end_id: int,
) -> _Finished:
    """The k best of the finished hypotheses and of those among the k best candidates
    that just ended.
    """
    width = state.tokens.shape[1]
    parent, last, log_probs = (part[:, :width] for part in candidates)
    scores = log_probs / length_penalty(state.index + 1, config)
    if bonus is not None:
        scores = scores + _gather(bonus, parent)
    ended = ops.equal(last, end_id)
    if config.unfinished == "compete":
        ended = ops.logical_or(ended, state.index + 1 >= config.max_summary_tokens)
    # A forbidden end is no end: its log-probability is LOWEST_SCORE and stays below
    # every real one.
    counts = ops.logical_and(
        ops.logical_and(ended, is_possible(log_probs)),
        ops.logical_not(state.done)[:, None],
    )
    scores = ops.where(counts, scores, LOWEST_SCORE)
    best, order = ops.top_k(
        ops.concatenate([state.finished.scores, scores], axis=1), k=width
    )
    tokens = _extend(_gather(state.tokens, parent), last, state.index)
    return _Finished(
        _gather(ops.concatenate([state.finished.tokens, tokens], axis=1), order),
        best,
        _gather(ops.concatenate([state.finished.log_probs, log_probs], axis=1), order),
    )


def _keep_live(
    state: _State, candidates: _Candidates, end_id: int
) -> tuple[Any, Any, Any]:
    """Tokens, log-probabilities and parents of the k best candidates that did not end."""
    open_scores = ops.where(
        ops.equal(candidates.last, end_id), LOWEST_SCORE, candidates.log_probs
    )
    log_probs, order = ops.top_k(open_scores, k=state.tokens.shape[1])
    parent = _gather(candidates.parent, order)
    return (
        _extend(
            _gather(state.tokens, parent), _gather(candidates.last, order), state.index
        ),
        log_probs,
        parent,
    )


def _extend(tokens: Any, last: Any, index: Any) -> Any:
    """Tokens [R, k, T + 1] with one more [R, k] behind place `index`."""
    return ops.where(ops.arange(tokens.shape[2]) == index + 1, last[..., None], tokens)


def _is_decided(
    finished: _Finished, log_probs: Any, index: Any, config: SearchConfig
) -> Any:
    """bool [R]: k hypotheses have finished, and as `config.early_stopping` sees it no
    live one can still win.

    never: log-probabilities only fall, so a live hypothesis ends at best with its
        present one over the largest penalty to come.
    bound: over the penalty of its present length. first_k: k finished are enough.
    """
    worst = ops.min(finished.scores, axis=1)
    if config.early_stopping == "first_k":
        return is_possible(worst)
    at_best = (
        config.max_summary_tokens
        if config.early_stopping == "never" and config.length_penalty > 0
        else index
    )
    return ops.logical_and(
        is_possible(worst),
        ops.max(log_probs, axis=1) / length_penalty(at_best, config) <= worst,
    )


def _rank(
    state: _State,
    coverage: Callable[[Any], Any] | None,
    config: SearchConfig,
    end_id: int,
) -> Hypotheses:
    """Finished hypotheses of all groups by score, then the live ones where fewer than K
    finished.
    """
    is_kept = is_possible(state.finished.scores)
    # Those that compete though they were cut hold no end; they fill all places, so
    # there is no padding that could be taken for one.
    has_ended = ops.logical_and(
        is_kept, ops.any(ops.equal(state.finished.tokens[:, :, 1:], end_id), axis=2)
    )
    # Where they compete, the live ones of the last step are among the finished already.
    open_log_probs = (
        state.log_probs
        if config.unfinished == "last"
        else ops.full_like(state.log_probs, LOWEST_SCORE)
    )
    open_scores = open_log_probs / length_penalty(state.index, config)
    if coverage:
        bonus = (
            ops.reshape(coverage(state.cache), ops.shape(open_scores))
            * config.coverage_penalty
        )
        open_scores = open_scores + bonus
    kinds, tokens, scores, log_probs, finished = (
        ops.reshape(part, (-1, 2 * config.beam_width, *part.shape[2:]))
        for part in (
            ops.concatenate(
                [
                    2 * ops.cast(is_kept, "int32"),
                    ops.cast(is_possible(open_log_probs), "int32"),
                ],
                axis=1,
            ),
            ops.concatenate([state.finished.tokens, state.tokens], axis=1),
            ops.concatenate([state.finished.scores, open_scores], axis=1),
            ops.concatenate([state.finished.log_probs, open_log_probs], axis=1),
            ops.concatenate([has_ended, ops.zeros_like(has_ended)], axis=1),
        )
    )
    _, by_score = ops.top_k(scores, k=2 * config.beam_width)
    # top_k keeps the order of equals, here that of the scores.
    _, by_kind = ops.top_k(_gather(kinds, by_score), k=config.beam_width)
    order = _gather(by_score, by_kind)
    return Hypotheses(
        *(
            _gather(part, order)
            for part in (tokens[:, :, 1:], scores, log_probs, finished)
        )
    )


def _across_groups(parent: Any, groups: int) -> Any:
    """Parents [R, k] within their groups as parents [B, K] within the whole beam."""
    width = parent.shape[1]
    by_group = (
        ops.reshape(parent, (-1, groups, width))
        + width * ops.arange(groups, dtype="int32")[:, None]
    )
    return ops.reshape(by_group, (-1, groups * width))


def _gather(values: Any, order: Any) -> Any:
    """values [R, N, ...] at order [R, M] -> [R, M, ...]."""
    rows, count, *inner = ops.shape(values)
    flat = ops.reshape(values, (rows * count, *inner))
    places = ops.reshape(
        order + ops.cast(ops.arange(rows)[:, None] * count, order.dtype), (-1,)
    )
    return ops.reshape(
        ops.take(flat, places, axis=0), (rows, ops.shape(order)[1], *inner)
    )
