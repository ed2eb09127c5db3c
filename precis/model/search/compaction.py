"""Runs a search in segments of a few steps, and drops finished documents between them.

A step costs time for every document of the batch and for every slot of the cache. So
after each segment the documents that are done leave the state, the slots that no
hypothesis reads are dropped, and room is made for one segment more.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from precis.model.backend import Tensor, ops, tree, with_unknown_size
from precis.model.cache import grow, select_documents
from precis.model.search.config import SearchConfig
from precis.model.search.hypotheses import BeamState, Hypotheses

# The number of steps in a segment.
SEGMENT = 8


class _Progress(NamedTuple):
    """A search between two segments.

    Attributes:
      state: of the N documents that are not done.
      documents: int32 [N], their places in the batch.
      results: of all documents; not final for those that are not done.
    """

    state: BeamState
    documents: Tensor
    results: Hypotheses


def run_in_segments(
    state: BeamState,
    *,
    advance: Callable[[BeamState], BeamState],
    rank: Callable[[BeamState], Hypotheses],
    batch: Any,
    config: SearchConfig,
) -> Hypotheses:
    """Runs a search until every document is done.

    Args:
      state: of B documents, with room for the steps of a segment.
      advance: takes one step.
      rank: ranks the hypotheses of a state.
      batch: B, a number or a scalar tensor.
      config: the maximum length.
    """
    length = config.max_summary_tokens

    def run_segment(*values: Any) -> _Progress:
        state, documents, results = _Progress(*values)
        end = ops.minimum(state.index + SEGMENT, length)
        state = _run_until(end, state, advance)
        results = _update_results(results, documents, rank(state))
        state, documents = _drop_done(state, documents)
        # Useless after the last segment, but a condition would cost more.
        cache = grow(state.cache, written=end, more=SEGMENT)
        return _Progress(state._replace(cache=cache), documents, results)

    progress = tree.map_structure(
        with_unknown_size,
        _Progress(state, ops.arange(batch, dtype="int32"), rank(state)),
    )
    progress = ops.while_loop(
        lambda *values: _is_running(_Progress(*values).state, length),
        run_segment,
        progress,
    )
    return _Progress(*progress).results


def _run_until(
    end: Tensor, state: BeamState, advance: Callable[[BeamState], BeamState]
) -> BeamState:
    """Takes steps until `end` tokens are written or every document is done."""
    return BeamState(
        *ops.while_loop(
            lambda *values: _is_running(BeamState(*values), end),
            lambda *values: advance(BeamState(*values)),
            state,
        )
    )


def _is_running(state: BeamState, end: Tensor) -> Tensor:
    any_open = ops.logical_not(ops.all(state.is_done))
    return ops.logical_and(state.index < end, any_open)


def _update_results(
    results: Hypotheses, documents: Tensor, new: Hypotheses
) -> Hypotheses:
    """Replaces the results of some documents, int32 [N]."""
    return Hypotheses(
        *(
            ops.scatter_update(old_part, documents[:, None], new_part)
            for old_part, new_part in zip(results, new, strict=True)
        )
    )


def _drop_done(state: BeamState, documents: Tensor) -> tuple[BeamState, Tensor]:
    """Drops the documents that are done."""
    is_done = state.is_done  # [B]
    # One document always stays: a network need not support a step without any.
    is_first = ops.arange(ops.shape(is_done)[0]) == 0
    is_needed = ops.logical_and(ops.all(is_done), is_first)

    def drop() -> tuple[BeamState, Tensor]:
        (kept,) = ops.nonzero(ops.logical_or(ops.logical_not(is_done), is_needed))
        kept = ops.cast(kept, "int32")
        live, finished, still_done = tree.map_structure(
            lambda part: ops.take(part, kept, axis=0),
            (state.live, state.finished, state.is_done),
        )
        cache = select_documents(state.cache, kept)
        smaller = BeamState(state.index, live, finished, still_done, cache)
        return smaller, ops.take(documents, kept, axis=0)

    return ops.cond(ops.any(is_done), drop, lambda: (state, documents))
